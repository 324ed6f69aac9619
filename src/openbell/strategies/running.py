"""Evaluates strategies bar by bar, with the indicators' streams: a new bar costs microseconds, and the result is that of
`evaluation` over all bars since the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from math import isfinite, nan

from openbell.indicators.regular_hours import regular_part, session_days
from openbell.indicators.spec import Bar
from openbell.market.bars import Bars
from openbell.strategies.checks import exceeds
from openbell.strategies.compiled import Compiled
from openbell.strategies.indicator_names import COLUMNS
from openbell.strategies.plan import Plan, PlannedStep
from openbell.strategies.spec import Line


class RunningGroup:
    """The strategies of a plan on the closed bars of one series. Streams that strategies have in common run once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._steps: list[_RunningStep] = []
        self._before, self._now = plan.first_row.copy(), plan.first_row.copy()

    def update(self, bars: Bars, regular: Bars | None = None) -> Iterator[list[tuple[bool, bool]]]:
        """Yields for each new bar a pair per strategy: whether its entry and whether its exit conditions hold.

        `regular` is as in `evaluate`.
        """
        if not self._steps:
            self._steps = [_RunningStep(step, bars) for step in self.plan.steps]
        part = (regular_part(bars) if regular is None else regular) if self.plan.regular else bars
        days = session_days(bars).tolist() if self.plan.by_day else repeat(-1, len(bars))
        columns = [column.tolist() for column in bars.columns()]
        regular_columns = columns if part is bars else [column.tolist() for column in part.columns()]
        rows = zip(zip(*columns, strict=True), zip(*regular_columns, strict=True), days, strict=True)
        for row, regular_row, day in rows:
            yield self._next(Bar._make((*row, day)), Bar._make((*regular_row, day)))

    def _next(self, bar: Bar, regular: Bar) -> list[tuple[bool, bool]]:
        before, now = self._now, self._before
        self._before, self._now = before, now
        now[: len(COLUMNS)] = bar[1 : 1 + len(COLUMNS)]
        for step in self._steps:
            step.update(bar, regular, now)
        for moves in self.plan.moves:
            older, newer = before[moves.value], now[moves.value]
            moved = exceeds(newer, older) if moves.rising else exceeds(older, newer)
            now[moves.place] = before[moves.place] + 1.0 if moved else 0.0
        return [(each.entry(before, now), each.exit(before, now)) for each in self.plan.strategies]

    def values(self, number: int) -> dict[Line, float]:
        """The value of every line of a strategy of the plan at the latest bar."""
        return {line: self._now[place] for line, place in self.plan.strategies[number].places.items()}


class Running:
    """One strategy on the closed bars of one series."""

    def __init__(self, strategy: Compiled) -> None:
        self.strategy = strategy
        self._group = RunningGroup(Plan([strategy]))

    def update(self, bars: Bars, regular: Bars | None = None) -> Iterator[tuple[bool, bool]]:
        """Yields for each new bar whether its entry and its exit conditions hold. `regular` is as in `evaluate`."""
        for (pair,) in self._group.update(bars, regular):
            yield pair


class _RunningStep:
    """One indicator. With another line as its input it begins at that line's first value; missing ones repeat the last."""

    __slots__ = ("_input", "_last", "_places", "_regular", "_update")

    def __init__(self, planned: PlannedStep, bars: Bars) -> None:
        """`bars` are some of the series that is followed."""
        step = planned.step
        self._update = step.indicator.start(bars.instrument, bars.timeframe, **step.settings).update
        self._regular = planned.step.indicator.regular
        self._input, self._places = planned.input, planned.places
        self._last = nan

    def update(self, bar: Bar, regular: Bar, values: list[float]) -> None:
        if self._input is not None:
            price = values[self._input]
            if not isfinite(price):
                price = self._last
                if not isfinite(price):
                    return
            self._last = price
            bar = Bar(bar.time, price, price, price, price, bar.volume, bar.day)
        values[self._places] = self._update(regular if self._regular else bar)
