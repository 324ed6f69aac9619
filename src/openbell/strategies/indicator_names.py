"""Names of indicators, their parameters and lines in specs, and the indicators that a spec may use.

Specs of other systems write `EMA` and `timePeriod`; the registry has `ema_line` and `length`.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from openbell.indicators.registry import get
from openbell.indicators.spec import Indicator
from openbell.market.bars import make
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe

COLUMNS = ("open", "high", "low", "close", "volume")
"""The columns of bars, which conditions may name like lines."""

_OF_ANY_LINE = frozenset(
    "bbands cmo dema dpo ema_line ema_stack hma linreg macd momentum rsi sma stoch_rsi tema wma".split()
)
"""Indicators that are defined for any numbers. Others divide by the price or take its logarithm."""
_SAME = (
    ("length", "period", "time_period", "bar_count", "window", "lookback"),
    ("fast", "fast_period", "fast_length", "short", "short_period", "short_length"),
    ("slow", "slow_period", "slow_length", "long", "long_period", "long_length"),
    ("signal", "signal_period", "signal_length", "smoothing", "smooth_period"),
    ("std_dev", "deviations", "multiplier", "mult", "k", "standard_deviations", "num_std_dev", "factor"),
    ("k", "k_period", "k_length", "length", "period"),
    ("d", "d_period", "d_length"),
)
"""Names of parameters that mean the same."""


def snake(name: str) -> str:
    """A name in lower case with underscores: `timePeriod` and `Time Period` are `time_period`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def indicator_of(name: str) -> Indicator:
    """The indicator of a type in a spec. Raises `InvalidParameter` if there is none, or if it cannot be traded on."""
    found = get("ema_line" if snake(name) == "ema" else name)
    if found.needs:
        raise InvalidParameter(
            f"{found.name} needs data beyond bars ({', '.join(found.needs)}), which has no history here"
        )
    if found.profile or not lines(found):
        raise InvalidParameter(f"{found.name} has no line with one value per bar, so no condition can use it")
    return found


def takes_line(indicator: Indicator) -> bool:
    """Returns True if an indicator can be computed from a line of another one instead of prices."""
    return indicator.name in _OF_ANY_LINE


def parameter_of(indicator: Indicator, name: str) -> str:
    """The registry's name of an indicator's parameter. Raises `InvalidParameter` if it has none of that name."""
    try:
        return indicator.parameter(name).name
    except InvalidParameter:
        known, plain = [each.name for each in indicator.parameters], snake(name)
        for group in _SAME:
            same = [each for each in known if each in group]
            if plain in group and len(same) == 1:
                return same[0]
        raise


def lines(indicator: Indicator) -> tuple[str, ...]:
    """The names of an indicator's lines and histograms, in the order of its result."""
    return _lines(indicator.name)


@cache
def _lines(name: str) -> tuple[str, ...]:
    times = 1_700_000_400 + 3600 * np.arange(4)
    prices = np.array([1.0, 2.0, 3.0, 4.0])
    sample = make(parse("BTC/USD"), Timeframe.H1, times // 3600 * 3600, *([prices] * 5))
    channels = get(name).run(sample)
    return tuple(_line_name(line.label) for line in (*channels.lines, *channels.histogram))


def known_lines(indicator: Indicator) -> tuple[str, ...]:
    """The names of the lines whose value is known when their bar closes."""
    later = {_line_name(label) for label in indicator.displaced}
    return tuple(each for each in lines(indicator) if each not in later)


def _line_name(label: str) -> str:
    """`Span A` is `span_a`, `+DI` is `plus_di`, `VI-` is `vi_minus`, `%R` is `r`."""
    signed = re.sub(r"^\+", "plus_", re.sub(r"^-", "minus_", label))
    signed = re.sub(r"\+$", "_plus", re.sub(r"-$", "_minus", signed))
    return snake(signed)
