"""Signals as rules on the values of two consecutive bars: one definition for arrays and for streams.

A rule function takes the values at the previous bar and at the current bar, and returns the condition and the value of each
signal. In a stream every value is a float; over arrays it holds one value per bar. Values before warm-up, and those before
the first bar, are NaN: no comparison with NaN is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from math import nan
from operator import attrgetter
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from openbell.indicators.channels import BarSignal, Signal
from openbell.indicators.ties import OSCILLATOR, above, at_least
from openbell.market.bars import Values

Value = TypeVar("Value", float, Values)
Mask = npt.NDArray[np.bool_]
Condition = bool | Mask
Rule = tuple[str, Any, Any]
"""Label, condition and value of a signal. A constant value may be a float in both forms."""
Rules = Callable[..., Sequence[Rule]]
"""(values at the previous bar, values at the current bar, *settings)."""


def crosses_above(value_before: Value, other_before: Value, value: Value, other: Value) -> Condition:
    """Returns True if an oscillator is above another at this bar and was not above it at the previous bar."""
    return at_least(other_before, value_before, OSCILLATOR) & above(value, other, OSCILLATOR)


def becomes(before: Condition, now: Condition) -> Condition:
    """Returns True if a condition holds at this bar and did not hold at the previous bar."""
    return now & negated(before)


def negated(condition: Condition) -> Condition:
    """`not` for a bool and for a mask."""
    return condition ^ True


def array_signals(rules: Rules, lines: Sequence[Values], *settings: object) -> Sequence[Signal]:
    """The signals over whole lines, sorted by bar. Strategies read only the lines."""
    return LazySignals(lambda: sort_by_bar(signals_by_label(rules, lines, *settings)))


class LazySignals(Sequence[Signal]):
    """Signals that are found when first read."""

    def __init__(self, find: Callable[[], tuple[Signal, ...]]) -> None:
        self._find = find

    @cached_property
    def _found(self) -> tuple[Signal, ...]:
        with np.errstate(all="ignore"):  # differences of values that are not finite are no signals
            return self._find()

    @overload
    def __getitem__(self, at: int) -> Signal: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Signal]: ...
    def __getitem__(self, at: int | slice) -> Signal | Sequence[Signal]:
        return self._found[at]

    def __len__(self) -> int:
        return len(self._found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._found == tuple(other)

    def __hash__(self) -> int:
        return hash(self._found)


def signals_by_label(rules: Rules, lines: Sequence[Values], *settings: object) -> Iterator[list[Signal]]:
    """The signals over whole lines, one list per label."""
    before = [np.concatenate(([nan], line))[:-1] for line in lines]
    for label, condition, value in rules(before, lines, *settings):
        yield signals_at(label, np.flatnonzero(condition), np.broadcast_to(value, condition.shape))


def signals_at(label: str, indexes: npt.NDArray[np.intp], values: Values) -> list[Signal]:
    """A signal at each of the bars, with the value of that bar."""
    pairs = zip(indexes.tolist(), values[indexes].tolist(), strict=True)
    return [Signal(index, value, label) for index, value in pairs]


def sort_by_bar(groups: Iterable[list[Signal]]) -> tuple[Signal, ...]:
    """All signals of the groups, sorted by bar; signals of one bar keep the order of the groups."""
    return tuple(sorted(chain.from_iterable(groups), key=attrgetter("index")))


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
