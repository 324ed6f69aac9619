"""What people ask about a run beside its figures: the best and the worst trade, when the equity fell most, and holding.

Everything comes from the bars, the trades and the equity, so it is the same for a run of the gRPC backtester.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openbell.backtest.curve import NOISE, deepest_fall
from openbell.backtest.figures import holding_return
from openbell.backtest.rules import END
from openbell.backtest.runs import Backtest
from openbell.backtest.trades import Trades
from openbell.market.bars import Bars, Values

_DAY = 86400


@dataclass(frozen=True, slots=True)
class TradeOutcome:
    """The result of one trade. Times are those of the opens of bars."""

    share: float
    """Profit after both fees, as a share of the value that was bought."""
    entered: int
    left: int | None
    """None if it was open at the end."""


@dataclass(frozen=True, slots=True)
class Fall:
    """The largest fall of the equity. Times are those of the opens of bars."""

    highest: int
    lowest: int
    back: int | None
    """When the equity was back at its maximum. None if it was not."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Facts about a run over at least one bar. Shares are fractions: 0.25 is 25 %."""

    first_equity: float
    last_equity: float
    holding: float
    """The return of buying at the first open and holding until the last close, without costs."""
    beats_holding: bool
    average: float | None
    """Mean return of the trades. None without trades."""
    best: TradeOutcome | None
    worst: TradeOutcome | None
    average_days: float | None
    """Mean days from entry to exit, nights and weekends included. None without trades."""
    fall: Fall | None
    """None if the equity never fell."""


def outcome_of(found: Backtest) -> Outcome:
    """Returns the facts about a run."""
    bars, trades, equity = found.bars, found.run.trades, found.run.equity
    returns = value_returns(trades)
    holding = holding_return(found)
    held = bars.time[trades.exit_index] - bars.time[trades.entry_index]
    traded = len(trades) > 0
    return Outcome(
        first_equity=float(equity[0]),
        last_equity=float(equity[-1]),
        holding=holding,
        beats_holding=(found.metrics.total_return or 0.0) > holding + NOISE,
        average=float(returns.mean()) if traded else None,
        best=_trade(trades, returns, int(returns.argmax()), bars) if traded else None,
        worst=_trade(trades, returns, int(returns.argmin()), bars) if traded else None,
        average_days=float(held.mean()) / _DAY if traded else None,
        fall=_fall(equity, bars),
    )


def value_returns(trades: Trades) -> Values:
    """Returns the profit of each trade after costs, as a share of the value at its entry."""
    return np.asarray(trades.profit / (trades.quantity * trades.entry_price))


def _trade(trades: Trades, returns: Values, index: int, bars: Bars) -> TradeOutcome:
    left = None if trades.reason[index] == END else int(bars.time[trades.exit_index[index]])
    return TradeOutcome(float(returns[index]), int(bars.time[trades.entry_index[index]]), left)


def _fall(equity: Values, bars: Bars) -> Fall | None:
    found = deepest_fall(equity)
    if found is None:
        return None
    back = None if found.back is None else int(bars.time[found.back])
    return Fall(int(bars.time[found.highest]), int(bars.time[found.lowest]), back)
