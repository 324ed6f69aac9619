"""Numbers as text: one form for all labels of a panel, so that they can be compared at a glance."""

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
"""Decimals of a panel's labels; what would need more is written with an exponent."""
_ENORMOUS = 1e16
_PLAIN = 1e4
"""Up to here a number is written out, beyond in thousands, millions, …"""


@dataclass(frozen=True, slots=True)
class Form:
    """How a panel writes its values."""

    decimals: int = 2
    unit: float = 1.0
    suffix: str = ""
    base: float | None = None
    """Set where values are told as their distance from it in per cent."""
    exponent: bool = False

    def text(self, value: float) -> str:
        """One value."""
        if self.base is not None:
            return percent((value / self.base - 1) * 100, self.decimals)
        if self.exponent:
            return f"{value:.2e}".replace("-", "−") if value else "0"
        return number(value / self.unit, self.decimals) + (self.suffix if value else "")


def number(value: float, decimals: int) -> str:
    """A number with thousands separated, a real minus, and none before a zero."""
    text = f"{value:,.{decimals}f}"
    if text[0] != "-":
        return text
    return f"−{text[1:]}" if text.strip("-0.,") else text[1:]


def percent(value: float, decimals: int = 2) -> str:
    """A change with its sign; nothing has none."""
    text = number(value, decimals)
    return f"{text}%" if text[0] == "−" or not text.strip("0.,") else f"+{text}%"


def short(value: float) -> str:
    """An amount in few characters: 1.23M, 999, 0.0012."""
    size = abs(value)
    for limit, unit in _UNITS:
        if size >= limit * 0.999995:
            return number(value / limit, 2) + unit
    if size >= 99.995:
        return number(value, 0)
    return number(value, max(2, 1 - floor(log10(size))) if size else 2)


def decimals_for(prices: Values) -> int:
    """How many decimals prices really have, but no more than six digits in all."""
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
    return max(found, 1 if largest >= _PLAIN else 2)


def price_form(decimals: int, ticks: Sequence[float], base: float | None) -> Form:
    """Of prices: their own decimals, and those that tell the ticks apart."""
    if base is None:
        return Form(max(decimals, _exact(ticks)))
    return Form(max(2, _exact([(tick / base - 1) * 100 for tick in ticks])), base=base)


def value_form(low: float, high: float, ticks: Sequence[float]) -> Form:
    """Of an indicator with values from `low` to `high`: three digits of what they differ by."""
    largest = max(abs(low), abs(high))
    unit, suffix = next((u for u in _UNITS if largest >= u[0]), (1.0, "")) if largest >= _PLAIN else (1.0, "")
    form = Form(_decimals(low / unit, high / unit, [tick / unit for tick in ticks]), unit, suffix)
    if form.decimals > 3 and unit > 1:
        form = Form(_decimals(low, high, ticks))
    return Form(exponent=True) if form.decimals > _LONGEST or largest >= _ENORMOUS else form


def _decimals(low: float, high: float, ticks: Sequence[float]) -> int:
    span = high - low
    return max(2, 2 - floor(log10(span)) if span > 0 else 0, _exact(ticks))


def _exact(ticks: Sequence[float]) -> int:
    """The decimals that round ticks need to be written exactly."""
    step = min((after - before for before, after in pairwise(ticks)), default=1.0)
    if step <= 0:
        return 0
    least = min(max(0, -floor(log10(step) + 1e-6)), _MOST_DECIMALS)
    shifted = step * 10.0**least
    return least if isclose(shifted, round(shifted), rel_tol=1e-6) else least + 1
