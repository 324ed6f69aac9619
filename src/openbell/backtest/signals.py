"""The current signal of a strategy: what its position at the last closed bar advises.

A strategy advises BUY from the close at which it decides to enter until it decides to leave, and SELL for a few bars after
that; then it holds. A strategy that sells short has both the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openbell.backtest.engine import Run
from openbell.backtest.rules import END, SIGNAL
from openbell.market.bars import Bars, bucket_bounds
from openbell.strategies.consensus import Action
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import Side

LEAVING_BARS = 5
"""For so many bars after a strategy has left, it advises against the position; then it holds."""


@dataclass(frozen=True, slots=True)
class Signal:
    """What a strategy advises at the last closed bar."""

    action: Action
    index: int
    """The bar at whose close it was decided."""
    at: int
    """When that bar closed."""


def signal_of(run: Run, conditions: Conditions, bars: Bars, side: Side) -> Signal | None:
    """Returns the signal after a run over all closed bars of a series; None if it has never traded."""
    enter, leave = (Action.BUY, Action.SELL) if side is Side.LONG else (Action.SELL, Action.BUY)
    last, trades = len(bars) - 1, run.trades
    if last < 0:
        return None
    holding = len(trades) > 0 and int(trades.reason[-1]) == END
    if holding:
        if conditions.exit[last]:
            return _at(leave, last, bars)
        return _at(enter, int(trades.entry_index[-1]) - 1, bars)
    if conditions.entry[last]:
        return _at(enter, last, bars)
    if not len(trades):
        return None
    # A signal is decided one bar before its order fills; a stop fills in its own bar.
    left = int(trades.exit_index[-1]) - int(trades.reason[-1] == SIGNAL)
    return _at(leave if last - left < LEAVING_BARS else Action.HOLD, left, bars)


def confidence_of(right: int, closed: int) -> float:
    """Returns (right + 1) / (closed + 2): the share of profitable trades, drawn towards one half while there are few."""
    return (right + 1) / (closed + 2)


def _at(action: Action, index: int, bars: Bars) -> Signal:
    end = bucket_bounds(bars.instrument, bars.timeframe, np.asarray(bars.time[index : index + 1]))[1]
    return Signal(action, index, int(end[0]))
