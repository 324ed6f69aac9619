"""Evaluates a strategy bar by bar, with the indicators' streams: a new bar costs microseconds, and the result is that of
`evaluation` over all bars since the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from math import isfinite, nan

from openbell.indicators.regular_hours import regular_part, session_days
from openbell.indicators.spec import Bar, Stream
from openbell.market.bars import Bars
from openbell.strategies.compiled import Compiled, Step, used_lines
from openbell.strategies.evaluation import ROUNDING, UPWARD
from openbell.strategies.indicator_names import COLUMNS
from openbell.strategies.spec import Comparison, Condition, ConditionType, Group, Line, Trend

Now = Mapping[Line, float]
Check = Callable[[Now], bool]
"""Called once at each bar, in order: it may remember the bar before."""


class Running:
    """A strategy on the closed bars of one series."""

    def __init__(self, strategy: Compiled) -> None:
        self.strategy = strategy
        self._steps = [_RunningStep(step) for step in strategy.steps]
        self._entry = _all(strategy.entry)
        self._exit = _all(strategy.exit)
        self._by_day = any(step.indicator.by_day for step in strategy.steps)
        self._regular = any(step.indicator.regular for step in strategy.steps)
        self.values: dict[Line, float] = {}
        """The value of every line at the latest bar."""

    def update(self, bars: Bars, regular: Bars | None = None) -> Iterator[tuple[bool, bool]]:
        """Yields for each new bar whether its entry and its exit conditions hold. `regular` is as in `evaluate`."""
        part = (regular_part(bars) if regular is None else regular) if self._regular else bars
        days = session_days(bars).tolist() if self._by_day else repeat(-1, len(bars))
        columns = [column.tolist() for column in bars.columns()]
        regular_columns = columns if part is bars else [column.tolist() for column in part.columns()]
        rows = zip(zip(*columns, strict=True), zip(*regular_columns, strict=True), days, strict=True)
        for row, regular_row, day in rows:
            yield self._next(Bar._make((*row, day)), Bar._make((*regular_row, day)))

    def _next(self, bar: Bar, regular: Bar) -> tuple[bool, bool]:
        values = self.values
        for name in COLUMNS:
            values[_COLUMN_LINES[name]] = getattr(bar, name)
        for step in self._steps:
            step.update(bar, regular, values)
        return self._entry(values), self._exit(values)


_COLUMN_LINES = {name: Line(None, name) for name in COLUMNS}


@dataclass(slots=True)
class _RunningStep:
    """One indicator. With another line as its input it begins at that line's first value; missing ones repeat the last."""

    step: Step
    _stream: Stream
    _last: float

    def __init__(self, step: Step) -> None:
        make = step.indicator.stream
        assert make is not None  # indicators without a stream are refused in specs
        self.step = step
        self._stream = make(**step.settings)
        self._last = nan

    def update(self, bar: Bar, regular: Bar, values: dict[Line, float]) -> None:
        step = self.step
        if step.input is not None:
            source = values[step.input]
            self._last = source if isfinite(source) else self._last
            if not isfinite(self._last):
                values.update(dict.fromkeys(step.lines, nan))
                return
            price = self._last
            bar = Bar(bar.time, price, price, price, price, bar.volume, bar.day)
        found = self._stream.update(regular if step.indicator.regular else bar)
        values.update(zip(step.lines, found, strict=True))


def _all(conditions: tuple[Condition, ...]) -> Check:
    """Whether all conditions hold and every line that they compare has a value; never if there is no condition."""
    if not conditions:
        return lambda _now: False
    checks, needed = [_check(each) for each in conditions], used_lines(conditions)

    def check(now: Now) -> bool:
        results = [each(now) for each in checks]  # all are called: they remember the bar
        return all(results) and all(isfinite(now[line]) for line in needed)

    return check


def _check(condition: Condition) -> Check:
    if isinstance(condition, Group):
        return _group(condition)
    return _trend(condition) if isinstance(condition, Trend) else _comparison(condition)


def _group(condition: Group) -> Check:
    checks = [_check(each) for each in condition.conditions]
    if condition.type is ConditionType.NOT:
        return lambda now: not checks[0](now)
    combine = all if condition.type is ConditionType.AND else any
    return lambda now: combine([each(now) for each in checks])


def _comparison(condition: Comparison) -> Check:
    line, other = condition.line, condition.other

    def pair(now: Now) -> tuple[float, float]:
        return now[line], now[other] if isinstance(other, Line) else float(other)  # type: ignore[arg-type]

    upward = condition.type in UPWARD
    if condition.type in {ConditionType.OVER, ConditionType.UNDER}:
        return lambda now: _exceeds(*pair(now)) if upward else _exceeds(*reversed(pair(now)))
    was_above = True
    """Whether it was above at the bar before; True if that is not known."""

    def crossed(now: Now) -> bool:
        nonlocal was_above
        upper, lower = pair(now) if upward else reversed(pair(now))
        before, above = was_above, _exceeds(upper, lower)
        was_above = above or not (isfinite(upper) and isfinite(lower))
        return above and not before

    return crossed


def _exceeds(value: float, other: float) -> bool:
    """Returns True if a value is greater than another by more than rounding."""
    return value - other > ROUNDING * max(abs(value), abs(other))


def _trend(condition: Trend) -> Check:
    line, length = condition.line, int(condition.bars)  # type: ignore[arg-type]
    rising = condition.type is ConditionType.IS_RISING
    before, moved = nan, 0

    def check(now: Now) -> bool:
        nonlocal before, moved
        value = now[line]
        moved = moved + 1 if (_exceeds(value, before) if rising else _exceeds(before, value)) else 0
        before = value
        return moved >= length

    return check
