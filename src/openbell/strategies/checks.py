"""Conditions as functions of the values of two bars, for evaluation bar by bar.

A row holds a number for every value of a bar, each at a place of its own; NaN if there is no value. A check takes the row of
the bar before and that of the latest bar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Protocol

from openbell.strategies.compiled import used_lines
from openbell.strategies.evaluation import ROUNDING, UPWARD
from openbell.strategies.spec import Comparison, Condition, ConditionType, Group, Line, Trend

Row = Sequence[float]
Check = Callable[[Row, Row], bool]


class Places(Protocol):
    """The places of the values that conditions need."""

    def of_line(self, line: Line) -> int:
        """The place of a line's value."""

    def of_number(self, number: float) -> int:
        """The place of a constant."""

    def of_moves(self, line: Line, rising: bool) -> int:
        """The place of the number of bars for which a line has moved in one direction."""


def all_hold(conditions: tuple[Condition, ...], places: Places) -> Check:
    """True if all conditions hold and every line that they compare has a value; never if there is no condition."""
    if not conditions:
        return lambda _before, _now: False
    checks = [_check(each, places) for each in conditions]
    needed = [places.of_line(line) for line in used_lines(conditions)]

    def check(before: Row, now: Row) -> bool:
        for each in checks:
            if not each(before, now):
                return False
        return all(isfinite(now[place]) for place in needed)

    return check


def exceeds(value: float, other: float) -> bool:
    """Returns True if a value is greater than another by more than rounding."""
    apart = value - other
    return apart > 0.0 and apart > ROUNDING * abs(value) and apart > ROUNDING * abs(other)


def _check(condition: Condition, places: Places) -> Check:
    if isinstance(condition, Group):
        return _group(condition, places)
    return _trend(condition, places) if isinstance(condition, Trend) else _comparison(condition, places)


def _group(condition: Group, places: Places) -> Check:
    checks = [_check(each, places) for each in condition.conditions]
    if condition.type is ConditionType.NOT:
        return lambda before, now: not checks[0](before, now)
    combine = all if condition.type is ConditionType.AND else any
    return lambda before, now: combine(each(before, now) for each in checks)


def _comparison(condition: Comparison, places: Places) -> Check:
    line, other = places.of_line(condition.line), condition.other
    limit = places.of_line(other) if isinstance(other, Line) else places.of_number(float(other))  # type: ignore[arg-type]
    upper, lower = (line, limit) if condition.type in UPWARD else (limit, line)
    if condition.type in {ConditionType.OVER, ConditionType.UNDER}:
        return lambda _before, now: exceeds(now[upper], now[lower])

    def crossed(before: Row, now: Row) -> bool:
        if not exceeds(now[upper], now[lower]):
            return False
        high, low = before[upper], before[lower]
        return not exceeds(high, low) and isfinite(high) and isfinite(low)

    return crossed


def _trend(condition: Trend, places: Places) -> Check:
    moves = places.of_moves(condition.line, condition.type is ConditionType.IS_RISING)
    length = int(condition.bars)  # type: ignore[arg-type]
    return lambda _before, now: now[moves] >= length
