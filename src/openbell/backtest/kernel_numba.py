"""Code that numba compiles: finds trades bar by bar, and computes the equity and the returns of trades for sweeps.

Compiling takes about 1 s, once, because numba stores the result beside the byte code. Values are added elsewhere, by numpy:
the order of the additions decides the last bits of a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit, types

from openbell.backtest.curve import NOISE
from openbell.backtest.kernel import Found, KernelBars, Mask
from openbell.backtest.rules import END, SIGNAL, STOP_LOSS, TARGET, TRAILING_STOP, Factors
from openbell.backtest.trades import EquityFacts, Indexes, Trades, sign_of
from openbell.market.bars import Values


def _walk(
    opened: Values,
    adverse: Values,
    favourable: Values,
    closed: Values,
    entry: Mask,
    leaving: Mask,
    enter: float,
    leave: float,
    loss: float,
    trail: float,
    target: float,
) -> Found:
    count, most = len(opened), int(entry.sum())
    entered, left, reasons = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    entry_prices, exit_prices = np.empty(most), np.empty(most)
    at, held, price, best = -1, False, 0.0, 0.0
    stops = not (np.isnan(loss) and np.isnan(trail) and np.isnan(target))
    for bar in range(1, count):
        if held and not stops and not leaving[bar - 1]:
            continue
        if held and leaving[bar - 1]:
            held, left[at], reasons[at], exit_prices[at] = False, bar, SIGNAL, opened[bar] * leave
            continue
        if not held:
            if not entry[bar - 1]:
                continue
            at, held = at + 1, True
            price = best = opened[bar] * enter
            entered[at], entry_prices[at] = bar, price
        low, high, held = adverse[bar], favourable[bar], False
        if low <= price * loss:
            left[at], reasons[at], exit_prices[at] = bar, STOP_LOSS, min(opened[bar], price * loss) * leave
        elif low <= best * trail:
            left[at], reasons[at], exit_prices[at] = bar, TRAILING_STOP, min(opened[bar], best * trail) * leave
        elif high > price * target:
            left[at], reasons[at], exit_prices[at] = bar, TARGET, max(opened[bar], price * target)
        else:
            held, best = True, max(best, high)
    if held:
        left[at], reasons[at], exit_prices[at] = count - 1, END, closed[-1]
    found = at + 1
    return entered[:found], left[:found], reasons[:found], entry_prices[:found], exit_prices[:found]


_Held = tuple[Indexes, Indexes, Values, Values, Values, Values]
"""Of each trade its entry bar, exit bar, entry price, signed quantity and entry fee; and the cash."""


def _fill(close: Values, trades: _Held, equity: Values, returns: Values) -> bool:
    """Compute the equity at each close and its return. Returns True if the equity was always more than 0."""
    entered, left, price, quantity, fee, cash = trades
    at = 0
    for trade in range(len(entered)):
        first, value = entered[trade], cash[trade]
        equity[at:first] = value
        held, bought, size, at = value - fee[trade], price[trade], quantity[trade], left[trade]
        for bar in range(first, at):
            equity[bar] = held + size * (close[bar] - bought)
    equity[at:] = cash[-1]
    returns[0], lost = 0.0, 0
    for bar in range(1, len(close)):
        returns[bar] = (equity[bar] - equity[bar - 1]) / equity[bar - 1]
    for bar in range(len(close)):
        lost |= equity[bar] <= 0.0
    return lost == 0


def _fall(equity: Values) -> tuple[float, int]:
    high, high_at = equity[0], 0
    deepest, deepest_at, from_high, from_at = 0.0, 0, 0.0, 0
    floor = high  # a little above the value of the deepest fall below `high`: only lower ones are divided
    for at in range(1, len(equity)):
        value = equity[at]
        if value >= high:
            high, high_at = value, at
            floor = high * (1.0 - deepest + NOISE)
        elif value < floor:
            fall = 1.0 - value / high
            if fall > deepest:
                deepest, deepest_at, from_high, from_at = fall, at, high, high_at
                floor = high * (1.0 - deepest + NOISE)
    end = deepest_at
    while end < len(equity) - 1 and equity[end] < from_high:
        end += 1
    return deepest, end - from_at


_PRICES = types.Array(types.float64, 1, "C", readonly=True)
_MASK = types.Array(types.boolean, 1, "C", readonly=True)
_ARGUMENTS = (_PRICES,) * 4 + (_MASK,) * 2 + (types.float64,) * 5
_FLOATS, _INTS = types.float64[::1], types.int64[::1]
_HELD = types.Tuple((_INTS, _INTS, *(_FLOATS,) * 4))


def _compiled(function: Callable[..., Any], arguments: Any) -> Any:
    """Returns a function that numba compiles for these types of arguments. It divides as numpy does, without errors."""
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return njit(arguments, cache=True, **options)(function)
    except RuntimeError:  # no folder can be written: it is compiled again in each process
        return njit(arguments, **options)(function)


_walk_compiled = cast("Callable[..., Found]", _compiled(_walk, _ARGUMENTS))
_fill_compiled = _compiled(_fill, (_PRICES, _HELD, _FLOATS, _FLOATS))
_fall_compiled = _compiled(_fall, (_FLOATS,))


def walk(series: KernelBars, by: Factors) -> Found:
    """Implements `Kernel`."""
    return _walk_compiled(*series, *by)


def curve(trades: Trades, cash: Values, close: Values) -> EquityFacts:
    """Returns `equity_of` trades, and its `bar_returns` and `drawdown_of`, with the same bits."""
    signed = sign_of(trades.side) * trades.quantity
    held = trades.entry_index, trades.exit_index, trades.entry_price, signed, trades.entry_fee, cash
    equity, returns = np.empty(len(close)), np.empty(len(close))
    positive = _fill_compiled(close, held, equity, returns)
    return equity, returns if positive and len(close) > 1 else None, _fall_compiled(equity)
