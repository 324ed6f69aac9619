"""Oscillators from 0 to 100, used by several indicators. They are 50 while the price does not move."""

from __future__ import annotations

import numpy as np

from openbell.indicators.catalogue.rsi import rsi
from openbell.indicators.float_ties import at_least, at_most
from openbell.indicators.windows import highest, highest_so_far, lowest, window_sum
from openbell.market.bars import Bars, Values

ROUNDING = 1e-10
"""An RSI whose range in a window is below this counts as constant: the range is rounding."""


def stochastic(bars: Bars, length: int, smooth: int, d: int) -> tuple[Values, Values]:
    """%K: the position of the close between the lowest low and the highest high, smoothed; and %D, the average of %K."""
    return _smoothed(_place(bars.close, highest(bars.high, length), lowest(bars.low, length)), smooth, d)


def stochastic_rsi(close: Values, rsi_length: int, length: int, smooth: int, d: int) -> tuple[Values, Values]:
    """%K and %D of the RSI within its own range.

    As in TradingView: the range is that of the values so far until there are `length` of them, and there are `length` bars.
    """
    strength = rsi(close, rsi_length)
    place = np.full(len(close), np.nan)
    known = strength[rsi_length:]
    if len(known):
        place[rsi_length:] = _place(known, highest_so_far(known, length), -highest_so_far(-known, length), ROUNDING)
    place[: stochastic_rsi_start(rsi_length, length)] = np.nan
    return _smoothed(place, smooth, d)


def stochastic_rsi_start(rsi_length: int, length: int) -> int:
    """The index of the first bar with a place of the RSI in its range: a single value has no range."""
    return max(rsi_length + 1, length - 1)


def money_flow_index(bars: Bars, length: int) -> Values:
    """Turnover of bars with a rising typical price, in per cent of that of bars with a rising or falling one.

    The first bar has no change. As in TradingView it counts as both a rise and a fall.
    """
    price = (bars.high + bars.low + bars.close) / 3.0
    change = np.diff(price, prepend=np.nan)
    turnover = price * bars.volume
    rising = window_sum(np.where(at_most(change, 0.0, price), 0.0, turnover), length)
    moved = rising + window_sum(np.where(at_least(change, 0.0, price), 0.0, turnover), length)
    share: Values = np.divide(rising, moved, out=np.full(len(moved), 0.5), where=moved != 0.0)
    return 100.0 * share


def _place(values: Values, high: Values, low: Values, flat: float = 0.0) -> Values:
    height = high - low
    place: Values = np.divide(values - low, height, out=np.full(len(values), 0.5), where=~(height <= flat))
    place *= 100.0
    return place


def _smoothed(values: Values, smooth: int, d: int) -> tuple[Values, Values]:
    k = window_sum(values, smooth) / smooth
    return k, window_sum(k, d) / d
