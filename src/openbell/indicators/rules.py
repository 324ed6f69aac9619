"""Signals as rules on the lines of an indicator.

A rule function takes the values at the previous bars and at the bars themselves, and returns the condition and the value of
each signal. Values before warm-up, and those before the first bar, are NaN: no comparison with NaN is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from math import nan
from operator import attrgetter
from typing import overload

import numpy as np
import numpy.typing as npt

from openbell.indicators.channels import Direction, Signal
from openbell.indicators.float_ties import OSCILLATOR, Mask, above, at_least
from openbell.market.bars import Values

Rule = tuple[str, Mask, Values | float]
"""Label, condition and value of a signal. The value may be the same for all bars."""
Rules = Callable[..., Sequence[Rule]]
"""(values at the previous bars, values at the bars, *settings)."""
FLIP_SIGNALS = {"flip_up": Direction.UP, "flip_down": Direction.DOWN}
_UP, _DOWN = FLIP_SIGNALS


def crosses_above(before: Values, other_before: Values, values: Values, other: Values) -> Mask:
    """Returns True where an oscillator is above another at a bar and was not above it at the previous bar."""
    return at_least(other_before, before, OSCILLATOR) & above(values, other, OSCILLATOR)


def becomes(before: Mask, now: Mask) -> Mask:
    """Returns True where a condition holds at a bar and did not hold at the previous bar."""
    return now & ~before


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


def flip_rules(before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """A flip is a change between the sides 1 (up) and −1 (down). The values are the side and the value of the signal."""
    side_before, side, value = before[0], now[0], now[1]
    return (
        (_UP, (side_before < 0.0) & (side > 0.0), value),
        (_DOWN, (side_before > 0.0) & (side < 0.0), value),
    )


def flips(side: Values, values: Values) -> Sequence[Signal]:
    """A signal at each bar whose side differs from the previous side. Bars of side 0 are skipped."""
    taken = np.maximum.accumulate(np.where(side != 0.0, np.arange(len(side)), 0))
    return array_signals(flip_rules, (side[taken], values))
