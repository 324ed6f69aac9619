"""Numbers as text: all labels of a panel have the same format, so that they are easy to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, isclose, log10

import numpy as np

from openbell.market.bars import Values

_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))
_MOST_DECIMALS = 16
_LONGEST = 10
"""Decimals of a panel's labels; values that need more are written with an exponent."""
_ENORMOUS = 1e16
_PLAIN = 1e4
"""Smaller numbers are written in full, others in thousands, millions, …; larger prices may have no decimals."""


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """The number format of a panel's values."""

    decimals: int = 2
    unit: float = 1.0
    suffix: str = ""
    base: float | None = None
    """If set, values are written as the change from `base` in per cent."""
    exponent: bool = False
    tick_decimals: int | None = None
    """The decimals of ticks; None for those of other values. Large round prices have none."""

    def text(self, value: float) -> str:
        """Returns a value as text."""
        return self._text(value, self.decimals)

    def tick(self, value: float) -> str:
        """Returns the value of a tick as text."""
        return self._text(value, self.decimals if self.tick_decimals is None else self.tick_decimals)

    def _text(self, value: float, decimals: int) -> str:
        if self.base is not None:
            return percent((value / self.base - 1) * 100, decimals)
        if self.exponent:
            return f"{value:.2e}".replace("-", "−") if value else "0"
        return number(value / self.unit, decimals) + (self.suffix if value else "")


def number(value: float, decimals: int) -> str:
    """Returns a number with thousands separators and a true minus sign; zero has no sign."""
    text = f"{value:,.{decimals}f}"
    if text[0] != "-":
        return text
    return f"−{text[1:]}" if text.strip("-0.,") else text[1:]


def percent(value: float, decimals: int = 2) -> str:
    """Returns a change in per cent with its sign; zero has no sign."""
    text = number(value, decimals)
    return f"{text}%" if text[0] == "−" or not text.strip("0.,") else f"+{text}%"


def short(value: float) -> str:
    """Returns an amount in few characters: 1.23M, 999, 0.0012."""
    size = abs(value)
    for limit, unit in _UNITS:
        if size >= limit * 0.999995:
            return number(value / limit, 2) + unit
    if size >= 99.995:
        return number(value, 0)
    return number(value, max(2, 1 - floor(log10(size))) if size else 2)


def decimals_for(prices: Values) -> int:
    """Returns the number of decimals that the prices have, limited to six digits in total."""
    sample = prices[-60:]
    sample = sample[np.isfinite(sample)]
    largest = float(np.abs(sample).max(initial=0))
    if not largest:
        return 2
    most = min(max(2, 5 - floor(log10(largest))), _MOST_DECIMALS)
    found = next(
        (d for d in range(most) if np.abs(sample - np.round(sample, d)).max() <= 1e-9 * largest),
        most,
    )
    return max(found, 0 if largest >= _PLAIN else 2)


def price_format(decimals: int, ticks: Sequence[float], base: float | None) -> NumberFormat:
    """Returns the format of a price panel: the decimals of the prices, and more if the ticks need them.

    Ticks of 10,000 and more have only the decimals that they need.
    """
    if base is not None:
        return NumberFormat(max(2, _exact([(tick / base - 1) * 100 for tick in ticks])), base=base)
    exact = _exact(ticks)
    large = max((abs(tick) for tick in ticks), default=0.0) >= _PLAIN
    return NumberFormat(max(decimals, exact), tick_decimals=exact if large else None)


def indexed_format(ticks: Sequence[float], base: float) -> NumberFormat:
    """Returns the format of a price panel whose values are written with `base` as 100."""
    return NumberFormat(max(2, _exact([100 * tick / base for tick in ticks])), base / 100)


def value_format(low: float, high: float, ticks: Sequence[float]) -> NumberFormat:
    """Returns the format of an indicator panel: three significant digits of the difference between `low` and `high`."""
    largest = max(abs(low), abs(high))
    unit, suffix = next((u for u in _UNITS if largest >= u[0]), (1.0, "")) if largest >= _PLAIN else (1.0, "")
    number_format = NumberFormat(_decimals(low / unit, high / unit, [tick / unit for tick in ticks]), unit, suffix)
    if number_format.decimals > 3 and unit > 1:
        number_format = NumberFormat(_decimals(low, high, ticks))
    return NumberFormat(exponent=True) if number_format.decimals > _LONGEST or largest >= _ENORMOUS else number_format


def _decimals(low: float, high: float, ticks: Sequence[float]) -> int:
    span = high - low
    return max(2, 2 - floor(log10(span)) if span > 0 else 0, _exact(ticks))


def _exact(ticks: Sequence[float]) -> int:
    """Returns the decimals that are needed to write the ticks exactly."""
    step = min((after - before for before, after in pairwise(ticks)), default=1.0)
    if step <= 0:
        return 0
    least = min(max(0, -floor(log10(step) + 1e-6)), _MOST_DECIMALS)
    shifted = step * 10.0**least
    return least if isclose(shifted, round(shifted), rel_tol=1e-6) else least + 1
