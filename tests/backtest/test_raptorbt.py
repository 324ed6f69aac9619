"""On real prices, trades and returns equal those of raptorbt to 1e-9."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from openbell.backtest.engine import simulate
from openbell.backtest.rules import Setup
from openbell.backtest.trades import Trades
from openbell.strategies.evaluation import evaluate
from openbell.strategies.spec import PositionSide
from tests.backtest import raptor
from tests.backtest.real_strategies import FILES, SPECS, real_bars, strategy
from tests.desk.importing.test_real_files import RealFile

COSTS = [Setup(fee=0.0), Setup(fee=0.001), Setup(fee=0.001, slippage=0.0005)]
NEAR = 1e-9
OURS = ("entry_index", "exit_index", "entry_price", "exit_price", "quantity", "profit", "entry_fee", "exit_fee")
THEIRS = ("entry_idx", "exit_idx", "entry_price", "exit_price", "size", "pnl", "entry_fees", "exit_fees")
Columns = dict[str, npt.NDArray[np.float64]]


def same_trades(ours: Trades, theirs: Sequence[Any]) -> tuple[Columns, Columns]:
    """Returns the figures of trades as columns; they have the same bars, reasons and prices."""
    assert len(ours) == len(theirs)
    our, their = (
        {name: np.array([getattr(trade, name) for trade in trades], float) for name in names}
        for trades, names in ((ours, OURS), (theirs, THEIRS))
    )
    np.testing.assert_array_equal(our["entry_index"], their["entry_idx"])
    np.testing.assert_array_equal(our["exit_index"], their["exit_idx"])
    assert [trade.reason for trade in ours] == [raptor.REASONS[trade.exit_reason] for trade in theirs]
    assert_near(our["entry_price"], their["entry_price"])
    assert_near(our["exit_price"], their["exit_price"])
    return our, their


def assert_near(ours: Any, theirs: Any, absolute: Any = 1e-12) -> None:
    """The larger of a relative and an absolute difference is allowed."""
    far = np.abs(ours - theirs) > np.maximum(NEAR * np.abs(theirs), absolute)
    assert not np.any(far), (ours, theirs)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("file", FILES, ids=str)
def test_long_trades_and_equity_equal_raptorbts(file: RealFile, name: str) -> None:
    bars = real_bars(file)
    conditions = evaluate(strategy(name), bars)
    for setup in COSTS:
        ours, theirs = (
            simulate(bars, conditions, PositionSide.LONG, {}, setup),
            raptor.run(bars, conditions, PositionSide.LONG, setup),
        )

        assert len(ours.trades) == len(theirs.trades) > 5
        our, their = same_trades(ours.trades, theirs.trades)
        assert_near(our["quantity"], their["size"])
        assert_near(our["profit"], their["pnl"], absolute=our["quantity"] * our["entry_price"] * NEAR)
        assert_near(our["entry_fee"], their["entry_fees"])
        assert_near(our["exit_fee"], their["exit_fees"])
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
        ours = simulate(bars, conditions, PositionSide.SHORT, {}, setup)
        theirs = raptor.run(bars, conditions, PositionSide.SHORT, setup)

        # A short in a coin that doubles uses up the cash: the run ends, and raptorbt's does not.
        assert len(ours.trades) == len(theirs.trades) > 5 or ours.equity[-1] <= 0
        our, their = same_trades(ours.trades, theirs.trades[: len(ours.trades)])
        growth = their["pnl"] / (their["size"] * their["entry_price"] * (1 + setup.fee))
        cash = our["quantity"] * our["entry_price"] * (1 + setup.fee)
        assert_near(our["profit"] / cash, growth, absolute=NEAR)
        assert_near(
            our["entry_fee"] / cash, their["entry_fees"] / their["size"] / their["entry_price"] / (1 + setup.fee)
        )
        assert_near(our["quantity"][:1], their["size"][:1])
        assert_near(our["profit"][:1], their["pnl"][:1])
        assert_near(ours.equity[-1] / setup.cash, np.prod(1 + growth))
