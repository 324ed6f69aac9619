"""Commodity channel index: distance of the typical price from its average in units of its mean deviation."""

from __future__ import annotations

from collections import deque
from math import nan

import numpy as np

from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import Offsets, total
from openbell.indicators.ties import above
from openbell.market.bars import Bars, Values

UNIT = 0.015


def cci(bars: Bars, length: int) -> Values:
    """0 while the price does not move. Computed relative to the latest price, so that equal prices give exactly 0."""
    price = (bars.high + bars.low + bars.close) / 3.0
    out = np.full(len(price), np.nan)
    if len(price) >= length:
        apart = Offsets(price, length)
        mean = total(apart) / length
        spread = total(np.abs(each - mean) for each in apart) / length
        moving = above(spread, 0.0, price[length - 1 :])
        out[length - 1 :] = np.divide(-mean, UNIT * spread, out=np.zeros(len(mean)), where=moving)
    return out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("CCI", cci(bars, length)),), hlines=bounds(-100.0, 100.0))


class _Stream:
    def __init__(self, length: int) -> None:
        self._length = length
        self._prices: deque[float] = deque(maxlen=length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        newest = (bar.high + bar.low + bar.close) / 3.0
        self._prices.append(newest)
        if len(self._prices) < self._length:
            return (nan,)
        apart = [price - newest for price in self._prices]
        mean = spread = 0.0
        for each in apart:  # not sum(): since Python 3.12 it compensates for rounding
            mean += each
        mean /= self._length
        for each in apart:
            spread += abs(each - mean)
        spread /= self._length
        return (-mean / (UNIT * spread) if above(spread, 0.0, newest) else 0.0,)


INDICATOR = Indicator(
    name="cci",
    title="CCI",
    description="Distance of the typical price from its simple average, in units of 0.015 mean deviations",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 20, 2, 500, aliases=("period",)),),
    aliases=("commodity_channel_index",),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is 0, where TradingView has no value.",
)
