"""A kernel finds the trades of a run: at which bars, at which prices, and why each was closed. The one here uses numpy.

It jumps from trade to trade, and searches the bars of a trade for stops in growing pieces. `kernel_numba` is used if numba
is installed (the extra `fast`); both return equal bits. They know only long positions. For short ones all prices are
negated: then a higher number is a better price for both sides, and because floats are symmetric around 0, nothing is rounded
differently.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import isnan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.backtest.rules import END, SIGNAL, STOP_LOSS, TARGET, TRAILING_STOP, Factors
from openbell.backtest.trades import Indexes
from openbell.market.bars import Values

Mask = npt.NDArray[np.bool_]
Found = tuple[Indexes, Indexes, Indexes, Values, Values]
"""One value per trade: entry bar, exit bar, reason (a position in `REASONS`), entry price and exit price."""
_FIRST_PIECE = 32
"""Bars that are searched first; each further piece is twice as long."""


class KernelBars(NamedTuple):
    """The bars and conditions of a run, one value per bar."""

    opened: Values
    adverse: Values
    """The worst price of each bar: the low, or the negated high."""
    favourable: Values
    """The best price of each bar: the high, or the negated low."""
    closed: Values
    entry: Mask
    leaving: Mask


Kernel = Callable[[KernelBars, Factors], Found]
"""Finds the trades of a run."""


def walk(series: KernelBars, by: Factors) -> Found:
    """Implements `Kernel`."""
    opened, count = series.opened, len(series.opened)
    entries, exits = series.entry[:-1].nonzero()[0], series.leaving[:-1].nonzero()[0]
    # The bar at whose open each entry would be left by a signal; `count` if none follows.
    signals = np.append(exits + 1, count)[exits.searchsorted(entries + 1)]
    if isnan(by.loss) and isnan(by.trail) and isnan(by.target):
        chosen = _without_stops(entries.searchsorted(signals).tolist())
        left = signals[chosen]
        reason = np.full(len(chosen), SIGNAL)
        price = opened[np.minimum(left, count - 1)] * by.leave
    else:
        chosen, left, reason, price = _with_stops(entries.tolist(), signals.tolist(), series, by)
    entered = entries[chosen] + 1
    if len(left) and left[-1] == count:
        left[-1], reason[-1], price[-1] = count - 1, END, series.closed[-1]
    return entered, left, reason, opened[entered] * by.enter, price


def _without_stops(following: list[int]) -> list[int]:
    """Returns which entries open a position. `following`: for each entry, the first one after the exit."""
    chosen, at = [], 0
    while at < len(following):
        chosen.append(at)
        at = following[at]
    return chosen


def _with_stops(
    entries: list[int], signals: list[int], series: KernelBars, by: Factors
) -> tuple[list[int], Indexes, Indexes, Values]:
    chosen, left, reasons, prices = [], [], [], []
    at, last = 0, len(series.opened) - 1
    while at < len(entries):
        signal = signals[at]
        bar, reason, price = _first_stop(entries[at] + 1, signal, series, by)
        if bar == signal:
            price = float(series.opened[min(signal, last)]) * by.leave
        chosen.append(at)
        left.append(bar)
        reasons.append(reason)
        prices.append(price)
        at = bisect_left(entries, bar, at + 1)
    return chosen, np.array(left, dtype=np.int64), np.array(reasons, dtype=np.int64), np.array(prices)


def _first_stop(start: int, end: int, series: KernelBars, by: Factors) -> tuple[int, int, float]:
    """Returns bar, reason and price of the first stop that a position from bar `start` reaches before bar `end`.

    Returns `end` as the bar if it reaches none.
    """
    price = float(series.opened[start]) * by.enter
    loss, target = price * by.loss, price * by.target
    best, size = price, _FIRST_PIECE
    while start < end:
        piece = slice(start, min(start + size, end))
        low, high = series.adverse[piece], series.favourable[piece]
        bests = np.maximum.accumulate(np.concatenate(((best,), high)))
        reached = (low <= loss) | (low <= bests[:-1] * by.trail) | (high > target)
        at = int(reached.argmax())
        if reached[at]:
            bar, opened = start + at, float(series.opened[start + at])
            for reason, level in ((STOP_LOSS, loss), (TRAILING_STOP, float(bests[at]) * by.trail)):
                if low[at] <= level:
                    return bar, reason, min(opened, level) * by.leave
            return bar, TARGET, max(opened, target)
        best, start, size = float(bests[-1]), piece.stop, size * 2
    return end, SIGNAL, 0.0
