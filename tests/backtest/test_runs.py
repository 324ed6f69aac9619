"""Backtests of strategies: the range of dates is honoured to the bar, and nothing outside of it is traded."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from openbell.backtest.engine import simulate
from openbell.backtest.metrics import measure
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, backtest
from openbell.market.bars import Bars
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.evaluation import Conditions, evaluate
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import PositionSide
from tests.strategies.specs import crossover, walk

BARS = walk(11, 2000)
STRATEGY = compiled(read_spec(crossover()))


def image(found: Backtest) -> bytes:
    return pickle.dumps((list(found.run.trades), found.run.equity.tobytes(), found.metrics))


def shifted(bars: Bars, first: int, last: int, factor: float) -> Bars:
    """The same bars with the prices of some multiplied."""
    prices = np.ones(len(bars))
    prices[first:last] = factor
    return replace(
        bars,
        open=bars.open * prices,
        high=bars.high * prices,
        low=bars.low * prices,
        close=bars.close * prices,
    )


def test_over_all_bars_it_is_the_run_of_its_conditions() -> None:
    found = backtest(STRATEGY, BARS, Setup())
    run = simulate(BARS, evaluate(STRATEGY, BARS), PositionSide.LONG, {}, Setup())
    assert len(run.trades) > 50
    assert image(found) == image(Backtest(BARS, run, measure(run, BARS)))
    assert found.bars.same_as(BARS)


def test_a_range_is_honoured_to_the_bar() -> None:
    start, end = BARS.time[500], BARS.time[900]
    found = backtest(STRATEGY, BARS, Setup(), float(start), float(end))
    assert found.bars.same_as(BARS.take(slice(500, 900)))
    whole = evaluate(STRATEGY, BARS)
    part = Conditions(whole.entry[500:900], whole.exit[500:900])
    run = simulate(found.bars, part, PositionSide.LONG, {}, Setup())
    assert image(found) == image(Backtest(found.bars, run, measure(run, found.bars)))
    # A bar is in the range if it opens in [start, end).
    assert len(backtest(STRATEGY, BARS, Setup(), float(start) + 1, float(end)).bars) == 399
    assert len(backtest(STRATEGY, BARS, Setup(), float(start), float(end) + 1).bars) == 401
    # An entry at the close before the range is not traded, nor is one at its last close.
    entries = np.flatnonzero(whole.entry)
    first = int(entries[10])
    after = backtest(STRATEGY, BARS, Setup(), float(BARS.time[first + 1]))
    assert next(iter(after.run.trades)).entry_index == entries[11] - first
    upto = backtest(STRATEGY, BARS, Setup(), end=float(BARS.time[first + 1]))
    assert len(upto.run.trades) == 10
    assert len(upto.run.equity) == first + 1


def test_later_bars_change_nothing_and_earlier_ones_only_warm_up() -> None:
    start, end = float(BARS.time[500]), float(BARS.time[900])
    found = backtest(STRATEGY, BARS, Setup(), start, end)
    assert image(found) == image(backtest(STRATEGY, shifted(BARS, 900, 2000, 3.0), Setup(), start, end))
    assert image(found) == image(backtest(STRATEGY, BARS.take(slice(0, 900)), Setup(), start, end))
    # Warmed up at the first bar of the range, while a range without earlier bars warms up in it.
    assert len(found.run.trades) > len(backtest(STRATEGY, BARS.take(slice(500, 520)), Setup()).run.trades)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (700, 700), (700, 600), (700, 701), (1999, 2000)])
def test_ranges_of_no_or_one_bar(first: int, last: int) -> None:
    times = np.append(BARS.time, BARS.time[-1] + 3600)
    found = backtest(STRATEGY, BARS, Setup(), float(times[first]), float(times[last]))
    assert len(found.bars) == len(found.run.equity) == max(0, last - first)
    assert len(found.run.trades) == 0


def test_the_same_backtest_twice_gives_the_same_bytes() -> None:
    assert image(backtest(STRATEGY, BARS, Setup())) == image(backtest(STRATEGY, BARS, Setup()))


def with_stops() -> Compiled:
    raw = crossover()
    raw["side"] = "SHORT"
    stops = [
        {"type": kind, "params": {"percentage": percentage}}
        for kind, percentage in (("STOP_LOSS", 2.0), ("TRAILING_STOP_LOSS", 1.5), ("STOP_GAIN", 3.0))
    ]
    raw["exitConditions"] = [{"type": "OR", "conditions": [*raw["exitConditions"], *stops]}]
    return compiled(read_spec(raw))


def test_the_side_and_the_stops_are_those_of_the_spec() -> None:
    strategy = with_stops()
    found = backtest(strategy, BARS, Setup())
    assert {trade.side for trade in found.run.trades} == {PositionSide.SHORT}
    assert {str(trade.reason) for trade in found.run.trades} >= {"STOP_LOSS", "TRAILING_STOP", "TARGET"}
    run = simulate(BARS, evaluate(strategy, BARS), strategy.side, strategy.stops, Setup())
    assert image(found) == image(Backtest(BARS, run, measure(run, BARS)))
