"""The outcome of a run, against loops over its trades and its equity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from openbell.backtest.curve import deepest_fall
from openbell.backtest.engine import simulate
from openbell.backtest.metrics import measure
from openbell.backtest.outcome import Fall, RunOutcome, TradeOutcome, outcome_of
from openbell.backtest.rules import Reason, Setup
from openbell.backtest.runs import Backtest
from openbell.market.bars import Bars
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import PositionSide
from tests.backtest.masks import Case, at, cases
from tests.backtest.test_metrics import FREE, days
from tests.counts import runs

CASES = runs(200, soak=3000)


def traded(bars: Bars, conditions: Conditions, setup: Setup = FREE) -> Backtest:
    run = simulate(bars, conditions, PositionSide.LONG, {}, setup)
    return Backtest(bars, run, measure(run, bars))


def test_an_outcome_by_hand() -> None:
    # Bought at 64, sold at 128; bought at 128, sold at 64. The equity is 1000, 1000, 1500, 2000, 2000, 1000, 1000.
    bars = days([64, 64, 96, 128, 128, 64, 64])
    time = [int(each) for each in bars.time]
    run = traded(bars, at(7, [1, 4], [3, 5]))
    assert outcome_of(run) == RunOutcome(
        metrics=run.metrics,
        start=time[0],
        end=time[-1],
        initial_equity=1000.0,
        final_equity=1000.0,
        buy_and_hold_return=0.0,
        beats_buy_and_hold=False,
        average_trade_return=0.25,
        best_trade=TradeOutcome(1.0, time[2], time[4]),
        worst_trade=TradeOutcome(-0.5, time[5], time[6]),
        average_days_held=1.5,
        fall=Fall(time[4], time[5], None),
    )


def test_a_fall_that_was_made_good_and_a_position_that_is_open() -> None:
    # Bought at 64 at the second bar, and never sold.
    bars = days([64, 64, 48, 56, 96, 80])
    time = [int(each) for each in bars.time]
    found = outcome_of(traded(bars, at(6, [0], [])))
    assert found.fall == Fall(time[1], time[2], time[4])
    assert found.best_trade == found.worst_trade == TradeOutcome(0.25, time[1], None)


def test_without_trades_there_is_nothing_to_average() -> None:
    found = outcome_of(traded(days([100, 101, 102]), at(3, [], [])))
    assert (found.best_trade, found.worst_trade, found.average_trade_return, found.average_days_held, found.fall) == (
        None,
    ) * 5
    assert (found.initial_equity, found.final_equity, found.beats_buy_and_hold) == (1000.0, 1000.0, False)


@given(cases())
@settings(max_examples=CASES)
def test_every_fact_is_that_of_a_loop(case: Case) -> None:
    bars = case[0]
    assume(len(bars))
    run = simulate(*case)
    found = outcome_of(Backtest(bars, run, measure(run, bars)))
    time = [int(each) for each in bars.time]
    rows = [
        (
            trade.profit / (trade.quantity * trade.entry_price),
            time[trade.entry_index],
            None if trade.reason is Reason.END else time[trade.exit_index],
        )
        for trade in run.trades
    ]
    if rows:
        assert found.best_trade is not None
        assert found.worst_trade is not None
        assert found.best_trade.trade_return == max(row[0] for row in rows)
        assert found.worst_trade.trade_return == min(row[0] for row in rows)
        for each in (found.best_trade, found.worst_trade):
            assert (each.trade_return, each.entry_time, each.exit_time) in rows
        assert found.average_trade_return == pytest.approx(sum(row[0] for row in rows) / len(rows), rel=1e-9, abs=1e-12)
    # The slowest way to the largest fall: every bar against the highest one before it.
    equity = run.equity.tolist()
    falls = [1.0 - later / max(equity[: index + 1]) for index, later in enumerate(equity)]
    fall = deepest_fall(np.array(equity))
    if fall is None:
        assert max(falls) <= 0.0
        assert found.fall is None
        return
    assert fall.share == pytest.approx(max(falls), rel=1e-12)
    assert 1.0 - equity[fall.lowest] / equity[fall.highest] == pytest.approx(fall.share, rel=1e-12)
    assert max(equity[: fall.lowest + 1]) == equity[fall.highest]
    after = [index for index in range(fall.lowest, len(equity)) if equity[index] >= equity[fall.highest]]
    assert fall.back == (after[0] if after else None)
    assert found.fall == Fall(time[fall.highest], time[fall.lowest], time[after[0]] if after else None)
