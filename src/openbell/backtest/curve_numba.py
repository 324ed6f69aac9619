"""The curve of a run and the sums of its blocks, in one call of code that numba compiles.

The results have the bits of `curve` and `blocks`: values are added in the order in which numpy adds them, in groups of at
most 128 whose sums are added pairwise. That order is not documented, so a sweep compares both before it uses this module.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit, types

from openbell.backtest.blocks import BlockSums, undefined
from openbell.backtest.curve import NOISE, Curve, Holding, Returns
from openbell.backtest.engine import sign_of
from openbell.backtest.kernel_numba import compiled
from openbell.backtest.trades import Indexes, Trades
from openbell.market.bars import Values

_GROUP, _LANES = 128, 8
_WAITING = 64
"""More than the sums that wait to be added at one time, for any number of bars and up to 16 blocks."""
_POSITIVE, _MEAN_EQUITY, _MEAN, _DEVIATION, _DOWNSIDE, _SHARED, _DRAWDOWN, _DRAWDOWN_BARS = range(8)
_inner = njit(nogil=True, error_model="numpy")
_Held = tuple[Indexes, Indexes, Values, Values, Values, Values]
"""Of each trade its entry bar, exit bar, entry price, signed quantity and entry fee; and the cash."""
_Groups = tuple[Indexes, Indexes]
"""The bounds of groups of values, and after each group the number of sums to be added to its own."""


class NumbaCurves:
    """Computes the curves of runs over the same bars. Not for several threads at a time: it reuses its arrays."""

    def __init__(self, close: Values, holding: Holding | None, edges: list[int]) -> None:
        count, self._blocks = len(close), len(edges) - 1
        self._close = np.ascontiguousarray(close)
        self._moved = holding.moved if holding else np.empty(0)
        self._whole, self._parts = _groups([0, count]), _groups(edges)
        self._equity, self._returns, self._facts = np.empty(count), np.empty(count), np.empty(8)

    def __call__(self, trades: Trades, cash: Values) -> tuple[Curve, BlockSums]:
        """Returns the curve of these trades and the sums of its blocks."""
        sums, squares, facts = np.empty(_WAITING), np.empty(_WAITING), self._facts
        held = (
            trades.entry_index,
            trades.exit_index,
            trades.entry_price,
            sign_of(trades.side) * trades.quantity,
            trades.entry_fee,
            cash,
        )
        inputs = self._close, held, self._moved, self._whole, self._parts
        _curve_compiled(*inputs, self._equity, self._returns, facts, sums, squares)
        growth, count = float(self._equity[-1] / self._equity[0]), len(self._close)
        positive, mean_equity, mean, deviation, downside, shared, drawdown, length = facts.tolist()
        curve = Curve(count, growth, mean_equity, drawdown, int(length), Returns(mean, deviation, downside, shared))
        if count < 2 or not positive:
            return curve._replace(returns=None), undefined(self._blocks)
        return curve, BlockSums(sums[: self._blocks] + 0.0, squares[: self._blocks] + 0.0)


def _groups(edges: list[int]) -> _Groups:
    """Returns the groups in which numpy adds the values between edges."""
    bounds: list[int] = [0]
    merges: list[int] = []

    def divide(first: int, count: int) -> None:
        if count <= _GROUP:
            bounds.append(first + count)
            merges.append(0)
            return
        half = count // 2 - count // 2 % _LANES
        divide(first, half)
        divide(first + half, count - half)
        merges[-1] += 1

    for first, end in pairwise(edges):
        divide(first, end - first)
    return np.array(bounds, np.int64), np.array(merges, np.int64)


@_inner  # type: ignore[untyped-decorator]
def _group_sum(values: Values) -> float:
    count = len(values)
    total: float = 0.0
    if count < _LANES:
        for each in values:
            total += each
        return total
    a, b, c, d, e, f, g, h = values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7]
    for row in range(1, count // _LANES):
        at = row * _LANES
        a += values[at]
        b += values[at + 1]
        c += values[at + 2]
        d += values[at + 3]
        e += values[at + 4]
        f += values[at + 5]
        g += values[at + 6]
        h += values[at + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for at in range(count // _LANES * _LANES, count):
        total += values[at]
    return total


@_inner  # type: ignore[untyped-decorator]
def _push(waiting: Values, top: int, total: float, merges: int) -> None:
    """Add the last `merges` of the `top` sums that wait to a sum, and put it in their place."""
    for below in range(merges):
        total = waiting[top - 1 - below] + total
    waiting[top - merges] = total


@_inner  # type: ignore[untyped-decorator]
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


@_inner  # type: ignore[untyped-decorator]
def _above(high: float, fall: float) -> float:
    """Returns a value a little above the one that is `fall` below `high`: only lower ones can be a deeper fall."""
    return high * (1.0 - fall + NOISE)


@_inner  # type: ignore[untyped-decorator]
def _drawdown(equity: Values, facts: Values) -> None:
    high, high_at = equity[0], 0
    deepest, deepest_at, from_high, from_at = 0.0, 0, 0.0, 0
    floor = high
    for at in range(1, len(equity)):
        value = equity[at]
        if value >= high:
            high, high_at = value, at
            floor = _above(high, deepest)
        elif value < floor:
            fall = 1.0 - value / high
            if fall > deepest:
                deepest, deepest_at, from_high, from_at = fall, at, high, high_at
                floor = _above(high, deepest)
    end = deepest_at
    while end < len(equity) - 1 and equity[end] < from_high:
        end += 1
    facts[_DRAWDOWN], facts[_DRAWDOWN_BARS] = deepest, end - from_at


@_inner  # type: ignore[untyped-decorator]
def _returns(returns: Values, moved: Values, groups: _Groups, facts: Values) -> None:
    bounds, merges = groups
    count, top = len(returns), 0
    first, second, buffer = np.empty(_WAITING), np.empty(_WAITING), np.empty(_GROUP)
    for group in range(len(merges)):
        part = returns[bounds[group] : bounds[group + 1]]
        for at in range(len(part)):
            buffer[at] = part[at] * part[at] if part[at] < 0.0 else 0.0
        _push(first, top, _group_sum(part), merges[group])
        _push(second, top, _group_sum(buffer[: len(part)]), merges[group])
        top += 1 - merges[group]
    mean = (first[0] + 0.0) / count
    facts[_MEAN], facts[_DOWNSIDE], facts[_SHARED], top = mean, second[0] / count, 0.0, 0
    for group in range(len(merges)):
        part = returns[bounds[group] : bounds[group + 1]]
        for at in range(len(part)):
            buffer[at] = (part[at] - mean) * (part[at] - mean)
        _push(first, top, _group_sum(buffer[: len(part)]), merges[group])
        if len(moved):
            other = moved[bounds[group] : bounds[group + 1]]
            for at in range(len(part)):
                buffer[at] = (part[at] - mean) * other[at]
            _push(second, top, _group_sum(buffer[: len(part)]), merges[group])
        top += 1 - merges[group]
    if len(moved):
        facts[_SHARED] = second[0] + 0.0  # numpy adds to 0, so that a sum is never −0
    deviation = np.sqrt(first[0] / (count - 1))
    # The root of the sum of squares is at least the largest return, which is searched only if it matters.
    if (
        deviation <= 2.0 * NOISE * np.sqrt(first[0] + count * mean * mean)
        and deviation <= NOISE * np.abs(returns).max()
    ):
        deviation = 0.0
    facts[_DEVIATION] = deviation


def _curve(
    close: Values,
    trades: _Held,
    moved: Values,
    whole: _Groups,
    parts: _Groups,
    equity: Values,
    returns: Values,
    facts: Values,
    sums: Values,
    squares: Values,
) -> None:
    """Compute the facts of a run, and the sum and the sum of squares of the returns of each block."""
    facts[_POSITIVE] = _fill(close, trades, equity, returns)
    _drawdown(equity, facts)
    (bounds, merges), total, buffer, top = whole, np.empty(_WAITING), np.empty(_GROUP), 0
    for group in range(len(merges)):
        _push(total, top, _group_sum(equity[bounds[group] : bounds[group + 1]]), merges[group])
        top += 1 - merges[group]
    facts[_MEAN_EQUITY] = total[0] / len(close)
    _returns(returns, moved, whole, facts)
    (bounds, merges), top = parts, 0
    for group in range(len(merges)):
        part = returns[bounds[group] : bounds[group + 1]]
        for at in range(len(part)):
            buffer[at] = part[at] * part[at]
        _push(sums, top, _group_sum(part), merges[group])
        _push(squares, top, _group_sum(buffer[: len(part)]), merges[group])
        top += 1 - merges[group]


_FLOATS, _INTS = types.float64[::1], types.int64[::1]
_READ = types.Array(types.float64, 1, "C", readonly=True)
_HELD = types.Tuple((_INTS, _INTS, *(_FLOATS,) * 4))
_PAIR = types.UniTuple(_INTS, 2)
_curve_compiled = compiled(_curve, (_READ, _HELD, _READ, _PAIR, _PAIR, *(_FLOATS,) * 5))
