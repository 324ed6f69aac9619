"""On real prices, trades and returns equal those of raptorbt to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest

from openbell.backtest.engine import simulate
from openbell.backtest.rules import Setup
from openbell.strategies.evaluation import evaluate
from openbell.strategies.spec import Side
from tests.backtest import raptor
from tests.backtest.real_strategies import FILES, SPECS, real_bars, strategy
from tests.desk.importing.test_real_files import RealFile

COSTS = [Setup(fee=0.0), Setup(fee=0.001), Setup(fee=0.001, slippage=0.0005)]
NEAR = 1e-9


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("file", FILES, ids=str)
def test_long_trades_and_equity_equal_raptorbts(file: RealFile, name: str) -> None:
    bars = real_bars(file)
    conditions = evaluate(strategy(name), bars)
    for setup in COSTS:
        ours, theirs = simulate(bars, conditions, Side.LONG, {}, setup), raptor.run(bars, conditions, Side.LONG, setup)

        assert len(ours.trades) == len(theirs.trades) > 5
        for our, their in zip(ours.trades, theirs.trades, strict=True):
            invested = our.quantity * our.entry_price
            assert (our.entry_index, our.exit_index) == (their.entry_idx, their.exit_idx)
            assert our.reason is raptor.REASONS[their.exit_reason]
            assert (our.entry_price, our.exit_price) == pytest.approx((their.entry_price, their.exit_price), rel=NEAR)
            assert our.quantity == pytest.approx(their.size, rel=NEAR)
            assert our.profit == pytest.approx(their.pnl, rel=NEAR, abs=invested * NEAR)
            assert (our.entry_fee, our.exit_fee) == pytest.approx((their.entry_fees, their.exit_fees), rel=NEAR)
        np.testing.assert_allclose(ours.equity, theirs.equity, rtol=NEAR)
        total = ours.equity[-1] / setup.cash - 1
        assert total == pytest.approx(theirs.metrics.total_return_pct / 100, rel=NEAR, abs=NEAR)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("file", FILES, ids=str)
def test_short_trades_and_their_compounded_return_equal_raptorbts(file: RealFile, name: str) -> None:
    """raptorbt 0.13.4 returns the right profit of each short, but its cash changes as if the position had been long.

    So the quantities of later trades and the equity differ; compared are profits as shares of the cash before each trade.
    """
    bars = real_bars(file)
    conditions = evaluate(strategy(name), bars)
    for setup in COSTS:
        ours = simulate(bars, conditions, Side.SHORT, {}, setup)
        theirs = raptor.run(bars, conditions, Side.SHORT, setup)

        # A short in a coin that doubles uses up the cash: the run ends, and raptorbt's does not.
        assert len(ours.trades) == len(theirs.trades) > 5 or ours.equity[-1] <= 0
        compounded = 1.0
        for at, (our, their) in enumerate(zip(ours.trades, theirs.trades, strict=False)):
            assert (our.entry_index, our.exit_index) == (their.entry_idx, their.exit_idx)
            assert our.reason is raptor.REASONS[their.exit_reason]
            assert (our.entry_price, our.exit_price) == pytest.approx((their.entry_price, their.exit_price), rel=NEAR)
            growth = their.pnl / (their.size * their.entry_price * (1 + setup.fee))
            cash = our.quantity * our.entry_price * (1 + setup.fee)
            assert our.profit / cash == pytest.approx(growth, rel=NEAR, abs=NEAR)
            assert our.entry_fee / cash == pytest.approx(
                their.entry_fees / their.size / their.entry_price / (1 + setup.fee)
            )
            compounded *= 1 + growth
            if at == 0:
                assert (our.quantity, our.profit) == pytest.approx((their.size, their.pnl), rel=NEAR)
        assert ours.equity[-1] / setup.cash == pytest.approx(compounded, rel=NEAR)
