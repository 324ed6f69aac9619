"""The current signal: what the position at the last closed bar advises, and the figures since training."""

from __future__ import annotations

import numpy as np
import pytest

from openbell.backtest.current_signals import (
    LEAVING_BARS,
    ImplementationOnSeries,
    confidence_of,
    current_signals,
    part_of,
    signal_of,
)
from openbell.backtest.engine import simulate
from openbell.backtest.outcome import period_of
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.strategies.compiled import compiled
from openbell.strategies.consensus import Action
from openbell.strategies.evaluation import Conditions, evaluate
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import ConditionType, PositionSide
from openbell.trading.evidence import bar_hash
from tests.strategies.specs import crossover, walk

BARS = walk(3, 40)
HOUR = 3600


def signal_at(
    last: int,
    entries: set[int],
    exits: set[int],
    side: PositionSide = PositionSide.LONG,
    stops: dict[ConditionType, float] | None = None,
) -> tuple[Action, int] | None:
    """The signal after the bars up to `last`, as its action and the bar that decided it."""
    bars = BARS.take(slice(0, last + 1))
    entry, leave = (np.isin(np.arange(last + 1), list(some)) for some in (entries, exits))
    conditions = Conditions(entry, leave)
    found = signal_of(simulate(bars, conditions, side, stops or {}, Setup()), conditions, bars, side)
    if found is None:
        return None
    assert found.at == bars.time[found.index] + HOUR
    return found.action, found.index


def test_a_strategy_advises_to_buy_from_its_entry_to_its_exit_then_to_sell_then_holds() -> None:
    entries, exits = {5}, {12}
    assert signal_at(4, entries, exits) is None
    for last in range(5, 12):
        assert signal_at(last, entries, exits) == (Action.BUY, 5)
    for last in range(12, 12 + LEAVING_BARS):
        assert signal_at(last, entries, exits) == (Action.SELL, 12)
    for last in range(12 + LEAVING_BARS, 40):
        assert signal_at(last, entries, exits) == (Action.HOLD, 12)


def test_a_short_strategy_advises_the_other_way_round() -> None:
    assert signal_at(8, {5}, {12}, PositionSide.SHORT) == (Action.SELL, 5)
    assert signal_at(12, {5}, {12}, PositionSide.SHORT) == (Action.BUY, 12)


def test_a_stop_is_decided_in_the_bar_that_it_fills_in() -> None:
    stops = {ConditionType.STOP_LOSS: 0.1}
    bars = BARS
    entry = np.isin(np.arange(len(bars)), [5])
    run = simulate(bars, Conditions(entry, np.zeros(len(bars), bool)), PositionSide.LONG, stops, Setup())
    (left,) = run.trades.exit_index.tolist()
    assert signal_at(left, {5}, set(), stops=stops) == (Action.SELL, left)


def test_the_signal_of_a_bar_does_not_change_with_later_bars() -> None:
    """As the engine records it at each bar: the decision of an action is the first bar at which it was advised."""
    strategy = compiled(read_spec(crossover()))
    bars = walk(8, 400)
    seen: dict[tuple[Action, int], int] = {}
    for last in range(30, 400):
        part = bars.take(slice(0, last + 1))
        conditions = evaluate(strategy, part)
        found = signal_of(simulate(part, conditions, strategy.side, {}, Setup()), conditions, part, strategy.side)
        if found is not None and found.action is not Action.HOLD and found.index >= 30:
            seen.setdefault((found.action, found.index), last)
    assert len(seen) > 10
    assert all(first == index for (_, index), first in seen.items())


def test_few_trades_say_little() -> None:
    assert confidence_of(0, 0) == 0.5
    assert confidence_of(1, 1) == pytest.approx(2 / 3)
    assert confidence_of(70, 100) == pytest.approx(71 / 102)


def test_a_part_of_a_run_has_the_trades_that_were_entered_there() -> None:
    strategy = compiled(read_spec(crossover()))
    bars = walk(9, 600)
    whole = backtest(strategy, bars, Setup())
    part = part_of(whole.run, bars, 200, 600)
    entered = [each for each in whole.run.trades if each.entry_index >= 200]
    assert part.metrics.trades == len(entered)
    assert part.closed == sum(each.reason.value != "END" for each in entered)
    assert part.right == sum(each.reason.value != "END" and each.profit > 0 for each in entered)
    growth = whole.run.equity[-1] / whole.run.equity[200]
    assert part.metrics.total_return == pytest.approx(growth - 1)


def test_standings_divide_the_bars_at_training_and_at_finding() -> None:
    spec = read_spec(crossover())
    bars = walk(10, 900)
    trained, found = int(bars.time[300]), float(bars.time[600])
    (current,) = current_signals([ImplementationOnSeries(spec, spec.defaults(), trained, found)], bars, Setup())
    assert current is not None
    assert current.until == bars.time[-1] + HOUR
    assert current.untrained.metrics.trades == current.before.metrics.trades + current.forward.metrics.trades
    assert current.before.metrics.trades > 5
    assert current.signal is not None
    assert current.signal_bar == bar_hash(bars, current.signal.index)


def test_standings_of_the_library_are_the_same_together_and_alone() -> None:
    bars = walk(11, 700)
    placed = [
        ImplementationOnSeries(each, each.defaults(), int(bars.time[200]), float(bars.time[500]))
        for each in canonical().values()
    ]
    together = current_signals(placed, bars, Setup())
    assert together == [current_signals([each], bars, Setup())[0] for each in placed]


def test_months_add_up_to_the_period() -> None:
    spec = read_spec(crossover())
    bars = walk(12, 4000)
    start = int(bars.time[1500])
    found = period_of(spec, {}, bars, Setup(), start)
    before = [close for time, close in zip(bars.time.tolist(), bars.close.tolist(), strict=True) if time < start][-1]
    assert found.holding == pytest.approx(bars.close[-1] / before - 1)
    run = backtest(compiled(spec), bars, Setup()).run
    assert found.signals == sum(month.signals for month in found.months)
    assert found.right == sum(month.right for month in found.months)
    grown = np.prod([1 + month.total_return for month in found.months])
    assert grown == pytest.approx(run.equity[-1] / run.equity[1499])
    closed = [each for each in run.trades if each.entry_index >= 1500 and each.reason.value != "END"]
    expected = np.mean([each.profit / (each.quantity * each.entry_price) for each in closed])
    assert found.average_return == pytest.approx(expected)
    assert [month.name for month in found.months] == sorted(month.name for month in found.months)
