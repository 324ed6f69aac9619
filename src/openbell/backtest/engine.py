"""The engine: the trades of a strategy over bars, and its equity at each close.

Conditions are decided at the close of a bar, and orders fill at the open of the next one; a decision at the last bar does
not trade. Entries are ignored while a position is held; at a close where entry and exit hold, a position is closed.

All cash is invested: the quantity is cash / (price × (1 + fee)). A short position sells the same value, and the cash is its
collateral. No position is opened after the cash is used up.

Stops fill inside a bar, also in the bar of the entry. Of several that one bar reaches, the first of stop loss, trailing
stop and target counts. A stop fills at its level, or at the open if the open is beyond it. A target fills only if the price
trades through it, and at the open if that is better. A trailing stop follows the best price of earlier bars and of the
entry. Slippage applies to market and stop orders.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from openbell.backtest.kernel import Found, Kernel, KernelBars, walk
from openbell.backtest.rules import END, Setup, factors
from openbell.backtest.trades import Trades, sign_of
from openbell.market.bars import Bars, Values
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import ConditionType, PositionSide

MOST_CASH = 1e200
"""No position is opened with more: the sums of a run must be finite numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The result of a run."""

    trades: Trades
    equity: Values
    """Cash and the value of the position at each close, before the fee of selling it."""


def simulate(
    bars: Bars,
    conditions: Conditions,
    side: PositionSide,
    stops: Mapping[ConditionType, float],
    setup: Setup,
    kernel: Kernel | None = None,
) -> Run:
    """Returns the run of a strategy's conditions over the bars that they were evaluated on.

    `stops` are distances in per cent. `kernel` is the fastest one by default; all return the same.
    """
    trades, cash = trades_of(bars, conditions, side, stops, setup, kernel or fastest(stops=bool(stops)))
    return Run(trades, equity_of(trades, cash, bars.close))


@lru_cache(maxsize=2)
def fastest(*, stops: bool) -> Kernel:
    """Returns the kernel of numba for a run with stops if it can be imported, else that of numpy.

    Without stops numpy is as fast, and loading numba takes a second.
    """
    if stops:
        with suppress(ImportError):
            from openbell.backtest import kernel_numba

            return kernel_numba.walk
    return walk


def trades_of(
    bars: Bars,
    conditions: Conditions,
    side: PositionSide,
    stops: Mapping[ConditionType, float],
    setup: Setup,
    kernel: Kernel,
) -> tuple[Trades, Values]:
    """Returns the trades of a run, and the cash before each of them and after the last."""
    opened, low, high, closed = (np.ascontiguousarray(each) for each in (bars.open, bars.low, bars.high, bars.close))
    if side is PositionSide.SHORT:
        opened, low, high, closed = -opened, -high, -low, -closed
    entry, leaving = (np.ascontiguousarray(each) for each in (conditions.entry, conditions.exit))
    if not len(entry) == len(leaving) == len(bars):
        raise ValueError(f"{len(bars)} bars, but {len(entry)} entry and {len(leaving)} exit conditions")
    series = KernelBars(opened, low, high, closed, entry, leaving)
    return _account(kernel(series, factors(side, stops, setup)), side, setup)


def _account(found: Found, side: PositionSide, setup: Setup) -> tuple[Trades, Values]:
    """Returns trades whose bars and prices are known, and the cash: it is compounded from trade to trade."""
    entered, left, reason, entry, leave = found
    sign = sign_of(side)
    entry, leave, ended = entry * sign, leave * sign, reason == END
    if setup.closes_at_end:
        leave[ended] *= factors(side, {}, setup).leave
        ended = np.zeros_like(ended)
    per_cash = 1.0 / (entry * (1.0 + setup.fee))
    entry_fee, exit_fee = entry * setup.fee, np.where(ended, 0.0, leave * setup.fee)
    profit = sign * (leave - entry) - entry_fee - exit_fee
    with np.errstate(over="ignore", invalid="ignore"):
        cash = setup.cash * np.cumprod(np.append(1.0, 1.0 + profit * per_cash))
        usable = (cash > 0.0) & (cash < MOST_CASH)
    count = len(entered) if usable.all() else int(usable.argmin())
    kept = slice(0, count)
    quantity = cash[kept] * per_cash[kept]
    trades = Trades(
        side,
        entered[kept],
        left[kept],
        reason[kept],
        entry[kept],
        leave[kept],
        quantity,
        quantity * entry_fee[kept],
        quantity * exit_fee[kept],
        quantity * profit[kept],
    )
    return trades, cash[: count + 1]


def equity_of(trades: Trades, cash: Values, close: Values) -> Values:
    """Returns the equity at each close. `cash`: before each trade, and after the last."""
    count = len(trades)
    lengths = np.empty(2 * count + 1, np.int64)
    # Stretches of bars without and with a position alternate.
    lengths[1::2] = trades.exit_index - trades.entry_index
    lengths[::2] = np.append(trades.entry_index, len(close)) - np.append(0, trades.exit_index)
    held, bought, quantity = (np.zeros(2 * count + 1) for _ in range(3))
    held[::2], held[1::2] = cash, cash[:-1] - trades.entry_fee
    bought[1::2], quantity[1::2] = trades.entry_price, sign_of(trades.side) * trades.quantity
    held, bought, quantity = (each.repeat(lengths) for each in (held, bought, quantity))
    return np.asarray(held + quantity * (close - bought))
