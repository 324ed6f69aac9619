"""Finds trades bar by bar with code that numba compiles: about 1 s, once, because numba stores it beside the byte code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit, types

from openbell.backtest.kernel import Found, Mask, Series
from openbell.backtest.rules import END, SIGNAL, STOP_LOSS, TARGET, TRAILING_STOP, Factors
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


_PRICES = types.Array(types.float64, 1, "C", readonly=True)
_MASK = types.Array(types.boolean, 1, "C", readonly=True)
_ARGUMENTS = (_PRICES,) * 4 + (_MASK,) * 2 + (types.float64,) * 5


def compiled(function: Callable[..., Any], arguments: Any) -> Any:
    """Returns a function that numba compiles for these types of arguments. It divides as numpy does, without errors."""
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return njit(arguments, cache=True, **options)(function)
    except RuntimeError:  # no folder can be written: it is compiled again in each process
        return njit(arguments, **options)(function)


_walk_compiled = cast("Callable[..., Found]", compiled(_walk, _ARGUMENTS))


def walk(series: Series, by: Factors) -> Found:
    """Implements `Kernel`."""
    return _walk_compiled(*series, *by)
