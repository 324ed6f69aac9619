"""Evaluates a strategy over bars as arrays: at which closes its entry and its exit conditions hold.

The values at a bar depend on that bar and earlier ones only. While any line that a list of conditions compares has no value
yet, the list does not hold, so that NOT is not true before warm-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.indicators.regular_hours import regular_part
from openbell.market.bars import Bars, Values
from openbell.strategies.compiled import Compiled, IndicatorStep, used_lines
from openbell.strategies.indicator_names import COLUMNS
from openbell.strategies.spec import Comparison, Condition, ConditionGroup, ConditionType, LineOperand, Trend

ROUNDING = 1e-12
"""Numbers that differ by less, relative to the larger one, are equal: the last digits of computed values are noise."""
UPWARD = frozenset({ConditionType.OVER, ConditionType.CROSSED_UP})
Mask = npt.NDArray[np.bool_]
Arrays = Mapping[LineOperand, Values]
Known = MutableMapping[object, tuple[npt.NDArray[Any], ...]]
"""Lines and masks that were computed before on the same bars, for sweeps. Lines are found by indicator, settings and input,
masks by condition."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """One value per bar."""

    entry: Mask
    exit: Mask


def evaluate(
    strategy: Compiled,
    bars: Bars,
    regular: Bars | None = None,
    known: Known | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Conditions:
    """The closes at which all entry conditions hold, and those at which all exit conditions do.

    `regular` is the regular-hours part of each bar; if it is None, it is derived from the bars. `on_step` is called with
    the number of computed steps of the strategy; it may raise an exception to stop the work.
    """
    masks = _Masks(*_computed_lines(strategy, bars, regular, known, on_step), {} if known is None else known, len(bars))
    return Conditions(masks.all(strategy.entry), masks.all(strategy.exit))


def lines_over(strategy: Compiled, bars: Bars, regular: Bars | None = None, known: Known | None = None) -> Arrays:
    """The values of every line of a strategy, and of the columns of the bars."""
    return _computed_lines(strategy, bars, regular, known)[0]


def _computed_lines(
    strategy: Compiled,
    bars: Bars,
    regular: Bars | None,
    known: Known | None,
    on_step: Callable[[int], None] | None = None,
) -> tuple[Arrays, Mapping[LineOperand, object]]:
    """Returns the values of every line, and what it was computed from: equal names have equal values."""
    found: dict[LineOperand, Values] = {LineOperand(None, name): getattr(bars, name) for name in COLUMNS}
    names: dict[LineOperand, object] = {line: line.name for line in found}
    cache = {} if known is None else known
    with np.errstate(all="ignore"):
        for number, step in enumerate(strategy.steps, 1):
            source = names[step.input] if step.input else None
            key = (step.indicator.name, tuple(sorted(step.settings.items())), source)
            computed = cache.get(key)
            if computed is None:
                computed = cache[key] = _computed(step, bars, regular, found)
            for at, (line, values) in enumerate(zip(step.lines, computed, strict=True)):
                found[line], names[line] = values, (key, at)
            if on_step is not None:
                on_step(number)
    return found, names


def _computed(step: IndicatorStep, bars: Bars, regular: Bars | None, arrays: Arrays) -> tuple[Values, ...]:
    if step.input is None:
        part = (regular_part(bars) if regular is None else regular) if step.indicator.regular else None
        channels = step.indicator.run(bars, None, part, **step.settings)
        return tuple(line.values for line in (*channels.lines, *channels.histogram))
    source = arrays[step.input]
    first = first_value(source)
    series = filled(source[first:])
    given = bars.take(slice(first, None))
    given = replace(given, open=series, high=series, low=series, close=series)
    channels = step.indicator.run(given, **step.settings)
    missing = np.full(first, np.nan)
    return tuple(np.concatenate((missing, line.values)) for line in (*channels.lines, *channels.histogram))


def first_value(values: Values) -> int:
    """The index of the first finite value; the length if there is none."""
    finite = np.isfinite(values)
    return int(finite.argmax()) if finite.any() else len(values)


def filled(values: Values) -> Values:
    """Values with each missing one replaced by the last before it; the first must be finite."""
    finite = np.isfinite(values)
    if finite.all():
        return values
    return values[np.maximum.accumulate(np.where(finite, np.arange(len(values)), 0))]


@dataclass(frozen=True, slots=True)
class _Masks:
    """Where conditions hold. Each mask is computed once and kept in `known`."""

    arrays: Arrays
    names: Mapping[LineOperand, object]
    known: Known
    count: int

    def all(self, conditions: tuple[Condition, ...]) -> Mask:
        """Where all conditions hold and every line that they compare has a value; nowhere if there is no condition."""
        if not conditions:
            return np.zeros(self.count, dtype=bool)
        holds = np.ones(self.count, dtype=bool)
        for line in used_lines(conditions):
            holds &= self._finite(line)
        for each in conditions:
            holds &= self._holds(each)
        return holds

    def _finite(self, line: LineOperand) -> Mask:
        return self._kept(("finite", self.names[line]), lambda: np.isfinite(self.arrays[line]))

    def _holds(self, condition: Condition) -> Mask:
        return self._kept(self._name(condition), lambda: self._computed(condition))

    def _kept(self, name: object, compute: Callable[[], Mask]) -> Mask:
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = (compute(),)
        return found[0]

    def _name(self, condition: Condition) -> object:
        """Returns a name of a condition: equal names have equal masks."""
        if isinstance(condition, ConditionGroup):
            return (condition.type, *(self._name(each) for each in condition.conditions))
        if isinstance(condition, Trend):
            return (condition.type, self.names[condition.line], condition.bars)
        other = condition.other
        return (
            condition.type,
            self.names[condition.line],
            self.names[other] if isinstance(other, LineOperand) else other,
        )

    def _computed(self, condition: Condition) -> Mask:
        if isinstance(condition, ConditionGroup):
            masks = np.stack([self._holds(each) for each in condition.conditions])
            if condition.type is ConditionType.NOT:
                return np.asarray(~masks[0])
            return np.asarray(masks.all(axis=0) if condition.type is ConditionType.AND else masks.any(axis=0))
        values = self.arrays[condition.line]
        if isinstance(condition, Trend):
            return _trend(values, condition)
        return _comparison(values, condition, self.arrays)


def _comparison(values: Values, condition: Comparison, arrays: Arrays) -> Mask:
    other = (
        arrays[condition.other] if isinstance(condition.other, LineOperand) else np.full(len(values), condition.other)
    )
    upper, lower = (values, other) if condition.type in UPWARD else (other, values)
    above = _exceeds(upper, lower)
    if condition.type in {ConditionType.OVER, ConditionType.UNDER}:
        return above
    holds = np.zeros(len(values), dtype=bool)
    holds[1:] = above[1:] & ~above[:-1] & np.isfinite(upper[:-1]) & np.isfinite(lower[:-1])
    return holds


def _exceeds(values: Values, other: Values) -> Mask:
    """Where a value is greater than another by more than rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        larger = np.abs(values)
        rounding = np.abs(other)
        np.maximum(larger, rounding, out=rounding)
        rounding *= ROUNDING
        return np.asarray(np.subtract(values, other, out=larger) > rounding)


def _trend(values: Values, condition: Trend) -> Mask:
    """Where the last `bars` changes all have the same direction."""
    holds, length = np.zeros(len(values), dtype=bool), int(condition.bars)  # type: ignore[arg-type]
    before, now = values[:-1], values[1:]
    moved = _exceeds(now, before) if condition.type is ConditionType.IS_RISING else _exceeds(before, now)
    if len(moved) >= length:
        total = np.concatenate(([0], np.cumsum(moved)))
        holds[length:] = total[length:] - total[:-length] == length
    return holds
