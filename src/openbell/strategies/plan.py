"""What to compute for several strategies of one series: equal indicators of equal settings and input are computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

from openbell.strategies.checks import Check, all_hold
from openbell.strategies.compiled import Compiled, Step
from openbell.strategies.indicator_names import COLUMNS
from openbell.strategies.spec import Line


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """An indicator, the place of the line that is its input, and the places of its lines."""

    step: Step
    input: int | None
    """None for the bars themselves."""
    places: slice


@dataclass(frozen=True, slots=True)
class PlannedMoves:
    """A count of the bars for which a value has moved in one direction."""

    value: int
    rising: bool
    place: int


@dataclass(frozen=True, slots=True)
class PlannedStrategy:
    """A strategy, its checks and the places of its lines."""

    strategy: Compiled
    entry: Check
    exit: Check
    places: dict[Line, int]


class Plan:
    """The steps and checks of strategies. It has no state, so all series can share it."""

    def __init__(self, strategies: Sequence[Compiled]) -> None:
        self.steps: list[PlannedStep] = []
        self.moves: list[PlannedMoves] = []
        self.first_row: list[float] = [nan] * len(COLUMNS)
        """The values before the first bar: NaN, but for constants."""
        self._known: dict[object, int] = {}
        self.strategies = [self._planned(strategy) for strategy in strategies]
        self.by_day = any(each.step.indicator.by_day for each in self.steps)
        self.regular = any(each.step.indicator.regular for each in self.steps)

    def _planned(self, strategy: Compiled) -> PlannedStrategy:
        places = {Line(None, name): place for place, name in enumerate(COLUMNS)}
        for step in strategy.steps:
            places |= self._step(step, None if step.input is None else places[step.input])
        of_strategy = _Places(self, places)
        entry, leave = all_hold(strategy.entry, of_strategy), all_hold(strategy.exit, of_strategy)
        return PlannedStrategy(strategy, entry, leave, places)

    def _step(self, step: Step, source: int | None) -> dict[Line, int]:
        key = (step.indicator.name, tuple(sorted(step.settings.items())), source)
        first = self._known.get(key)
        if first is None:
            first = self._new(key, *[nan] * len(step.lines))
            self.steps.append(PlannedStep(step, source, slice(first, first + len(step.lines))))
        return {line: first + at for at, line in enumerate(step.lines)}

    def number(self, number: float) -> int:
        """The place of a constant."""
        place = self._known.get(number)
        return self._new(number, number) if place is None else place

    def count_moves(self, value: int, rising: bool) -> int:
        """The place of the number of bars for which the value at a place has moved in one direction."""
        key = (value, rising)
        place = self._known.get(key)
        if place is None:
            place = self._new(key, 0.0)
            self.moves.append(PlannedMoves(value, rising, place))
        return place

    def _new(self, key: object, *values: float) -> int:
        """Add places for a key, with the values before the first bar. Returns the first of them."""
        place = self._known[key] = len(self.first_row)
        self.first_row += values
        return place


@dataclass(frozen=True, slots=True)
class _Places:
    """The places for one strategy's conditions."""

    plan: Plan
    lines: dict[Line, int]

    def of_line(self, line: Line) -> int:
        return self.lines[line]

    def of_number(self, number: float) -> int:
        return self.plan.number(number)

    def of_moves(self, line: Line, rising: bool) -> int:
        return self.plan.count_moves(self.lines[line], rising)
