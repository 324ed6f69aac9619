"""The forward performance at each close: it is that of the bars up to it, whatever comes later."""

from __future__ import annotations

import pytest

from openbell.backtest.current_signals import ImplementationOnSeries, course_of, courses, part_of
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.strategies.compiled import compiled
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from tests.strategies.specs import crossover, walk

FIRST = 150


@pytest.mark.parametrize("name", ["SMA_RSI", "DOUBLE_TOP_BOTTOM", "MACD_CROSSOVER"])
def test_each_close_has_the_figures_of_the_bars_up_to_it(name: str) -> None:
    bars, strategy = walk(21, 500), compiled(canonical()[name])
    course = course_of(backtest(strategy, bars, Setup()).run, bars, FIRST, 0.25)
    assert len(course) == 500 - FIRST
    for last in (FIRST + 1, FIRST + 40, 300, 499):
        part = bars.take(slice(0, last + 1))
        expected = part_of(backtest(strategy, part, Setup()).run, part, FIRST, last + 1)
        at, found = course[last - FIRST]
        assert at == bars.time[last] + 3600
        assert found.trades == expected.closed
        assert found.drawdown == pytest.approx(expected.metrics.max_drawdown, abs=1e-12)
        assert found.drawdown_before == 0.25
        if expected.metrics.sharpe is None:
            assert found.sharpe is None
        else:
            assert found.sharpe == pytest.approx(expected.metrics.sharpe, rel=1e-6)


def test_later_bars_change_nothing() -> None:
    bars, spec = walk(22, 600), read_spec(crossover())
    placed = [ImplementationOnSeries(spec, spec.defaults(), int(bars.time[100]), float(bars.time[FIRST]))]
    (whole,) = courses(placed, [None], bars, Setup())
    for last in (FIRST + 2, 333, 598):
        (part,) = courses(placed, [None], bars.take(slice(0, last)), Setup())
        assert len(part) == last - FIRST
        for (at, found), (expected_at, expected) in zip(part, whole, strict=False):
            assert (at, found.trades) == (expected_at, expected.trades)
            # The last bits depend on whether a position is still open at the end.
            assert found.sharpe == (None if expected.sharpe is None else pytest.approx(expected.sharpe, rel=1e-9))
            assert found.drawdown == pytest.approx(expected.drawdown, rel=1e-9)


def test_nothing_before_it_was_found() -> None:
    bars, spec = walk(23, 300), read_spec(crossover())
    after = float(bars.time[-1]) + 10_000_000
    assert courses([ImplementationOnSeries(spec, {}, int(bars.time[10]), after)], [None], bars, Setup()) == [[]]
