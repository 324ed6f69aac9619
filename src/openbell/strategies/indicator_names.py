"""The names inside a spec: its parameters and indicators, which of them are used, and the indicators that a spec may name.

Specs of other systems write `EMA` and `timePeriod`; the registry has `ema_line` and `length`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isfinite

import numpy as np

from openbell.indicators.registry import get
from openbell.indicators.spec import Indicator
from openbell.market.bars import make
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.market.nearest import did_you_mean
from openbell.market.timeframes import Timeframe
from openbell.strategies.errors import ProblemKind, SpecProblem
from openbell.strategies.spec import LineOperand, Number, Operand, SpecParameter, Use

_USE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LARGEST = 1e12
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


def short(value: object) -> str:
    """A value in an error message."""
    shown = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


@dataclass
class SpecScope:
    """What the parts of one spec may refer to. Problems are added to one list."""

    parameters: Mapping[str, SpecParameter]
    problems: list[SpecProblem]
    indicators: dict[str, Indicator] = field(default_factory=dict)
    """By id."""
    used_parameters: set[str] = field(default_factory=set)
    used_indicators: set[str] = field(default_factory=set)

    def refuse(self, kind: ProblemKind, path: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(SpecProblem(kind, path, message))

    def value(self, raw: object, kind: ProblemKind, path: str) -> Number | Use | None:
        """A number or the use of a parameter; None, after adding a problem, if it is neither."""
        if isinstance(raw, str) and (match := _USE.fullmatch(raw.strip())):
            name = match[1]
            if name not in self.parameters:
                self.refuse(kind, path, f"no parameter {name!r}{did_you_mean(name, self.parameters)}")
                return None
            self.used_parameters.add(name)
            return Use(name)
        if isinstance(raw, bool) or not isinstance(raw, int | float) or not abs(raw) <= _LARGEST or not isfinite(raw):
            self.refuse(kind, path, f"must be a number or ${{parameter}}, not {short(raw)}")
            return None
        return raw

    def bounds(self, value: Number | Use) -> tuple[Number, Number]:
        """The least and the largest number that a value can be."""
        if isinstance(value, Use):
            return self.parameters[value.name].low, self.parameters[value.name].high
        return value, value

    def is_whole(self, value: Number | Use) -> bool:
        """Returns True if a value is always a whole number."""
        return self.parameters[value.name].whole if isinstance(value, Use) else isinstance(value, int)

    def line(self, raw: object, kind: ProblemKind, path: str) -> LineOperand | None:
        """A column of the bars or a line of an indicator; None, after adding a problem, if it is neither."""
        if not isinstance(raw, str):
            self.refuse(kind, path, f"must name an indicator or a column of the bars, not {short(raw)}")
            return None
        name, _, wanted = raw.strip().partition(".")
        if name in self.indicators:
            return self._line_of(name, wanted, kind, path)
        if not wanted and snake(name) in COLUMNS:
            return LineOperand(None, snake(name))
        known = {*self.indicators, *COLUMNS}
        advice = did_you_mean(name, known) or f"; known are {', '.join(sorted(known))}"
        self.refuse(kind, path, f"no indicator {short(name)}{advice}")
        return None

    def _line_of(self, name: str, wanted: str, kind: ProblemKind, path: str) -> LineOperand | None:
        indicator = self.indicators[name]
        known = known_lines(indicator)
        if not wanted and len(known) > 1 and indicator.name not in known:
            self.refuse(
                kind, path, f"{name} has several lines: write {' or '.join(f'{name}.{each}' for each in known)}"
            )
            return None
        chosen = snake(wanted) if wanted else (indicator.name if indicator.name in known else known[0])
        if chosen not in known:
            later = chosen in lines(indicator)
            why = (
                "is drawn at earlier bars than it is known at, so it looks ahead"
                if later
                else "is not one of its lines"
            )
            self.refuse(kind, path, f"{name}.{short(wanted)} {why}: use {', '.join(known)}")
            return None
        self.used_indicators.add(name)
        return LineOperand(name, chosen)

    def operand(self, raw: object, kind: ProblemKind, path: str) -> Operand | None:
        """A line, a number or the use of a parameter; None, after adding a problem, if it is none of them."""
        if isinstance(raw, str) and not raw.strip().startswith("${"):
            return self.line(raw, kind, path)
        return self.value(raw, kind, path)


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
