"""Signals as rules on the values of two consecutive bars: one definition for arrays and for streams.

A rule function takes the values at the previous bar and at the current bar, and returns the condition and the value of each
signal. In a stream every value is a float; over arrays it holds one value per bar. Values before warm-up, and those before
the first bar, are NaN: no comparison with them is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import nan
from typing import Any, TypeVar

import numpy as np

from openbell.indicators.channels import BarSignal, Signal
from openbell.indicators.dots import Mask, dots
from openbell.market.bars import Values

Number = TypeVar("Number", float, Values)
Condition = bool | Mask
Rule = tuple[str, Any, Any]
"""Label, condition and value of a signal. A constant value may be a float in both forms."""
Rules = Callable[..., Sequence[Rule]]
"""(values at the previous bar, values at the current bar, *settings)."""


def crosses_above(value_before: Number, other_before: Number, value: Number, other: Number) -> Condition:
    """True if a value is above another at this bar and was not at the previous one; both must be known at both bars."""
    return (value_before <= other_before) & (value > other)


def becomes(before: Condition, now: Condition) -> Condition:
    """True if a condition holds at this bar and did not at the previous one."""
    return now & negated(before)


def negated(condition: Condition) -> Condition:
    """`not` for a bool and for a mask."""
    return condition ^ True


def array_signals(rules: Rules, lines: Sequence[Values], *settings: object) -> Iterator[list[Signal]]:
    """The signals over whole lines, one list per label."""
    before = [np.concatenate(([nan], line))[:-1] for line in lines]
    for label, condition, value in rules(before, lines, *settings):
        yield dots(label, condition, np.broadcast_to(value, condition.shape))


class RunningRules:
    """The rules of one stream, with its values at the latest two bars."""

    __slots__ = ("_before", "_now", "_rules", "_settings")

    def __init__(self, rules: Rules, width: int, *settings: object) -> None:
        """`width` is the number of values per bar."""
        self._rules = rules
        self._settings = settings
        self._before = self._now = (nan,) * width

    def update(self, *values: float) -> tuple[float, ...]:
        """Add the values at the next bar and return them."""
        self._before, self._now = self._now, values
        return values

    def signals(self) -> tuple[BarSignal, ...]:
        """The signals of the latest bar."""
        found = self._rules(self._before, self._now, *self._settings)
        return tuple([BarSignal(label, value) for label, condition, value in found if condition])
