"""raptorbt, a backtester in Rust that nobody here wrote: it fills at the next open too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import raptorbt

from openbell.backtest.rules import Reason, Setup
from openbell.market.bars import Bars
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import PositionSide

REASONS = {"Signal": Reason.SIGNAL, "EndOfData": Reason.END}


@dataclass(frozen=True)
class Theirs:
    """raptorbt's result."""

    trades: list[Any]
    equity: Any
    metrics: Any


def run(
    bars: Bars, conditions: Conditions, side: PositionSide, setup: Setup, periods_per_year: float = 252.0
) -> Theirs:
    """Run raptorbt on the same bars and conditions.

    Where entry and exit hold at one close, it keeps a position that the engine closes: such conditions are refused here.
    """
    assert not (conditions.entry & conditions.exit).any()
    config = raptorbt.BacktestConfig(
        initial_capital=setup.cash,
        fees=setup.fee,
        slippage=setup.slippage,
        fill_timing="next_bar_open",
        periods_per_year=periods_per_year,
    )
    result = raptorbt.run_single_backtest(
        bars.time * 10**9,
        *(np.ascontiguousarray(column) for column in bars.columns()[1:]),
        np.ascontiguousarray(conditions.entry),
        np.ascontiguousarray(conditions.exit),
        1 if side is PositionSide.LONG else -1,
        1.0,
        "X",
        config,
    )
    return Theirs(result.trades(), result.equity_curve(), result.metrics)
