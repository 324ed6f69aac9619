"""Trend strength index: the correlation of the latest closes with the bar number, from −1 to 1. 0 while nothing moves."""

from __future__ import annotations

from collections import deque
from functools import reduce
from math import nan, sqrt
from operator import add

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.regression import places
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import Offsets, total, weighted_sum_of
from openbell.market.bars import Bars, Values


def correlation(close: Values, length: int) -> Values:
    """NaN for the first `length − 1` bars."""
    out = np.full(len(close), np.nan)
    if len(close) >= length:
        distances, squares = places(length)
        apart = Offsets(close, length)
        mean = total(apart) / length
        scale = np.sqrt(squares * total(np.square(each - mean) for each in apart))
        along = total((each - mean) * place for each, place in zip(apart, distances, strict=True))
        share = np.divide(along, scale, out=np.zeros(len(scale)), where=scale > 0.0)
        out[length - 1 :] = np.clip(share, -1.0, 1.0)
    return out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("TSI", correlation(bars.close, length)),), hlines=(ZERO,), y_range=(-1.0, 1.0))


class _Stream:
    def __init__(self, length: int) -> None:
        self._closes: deque[float] = deque(maxlen=length)
        self._places, self._squares = places(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        closes, length = self._closes, len(self._places)
        closes.append(bar.close)
        if len(closes) < length:
            return (nan,)
        apart = [close - bar.close for close in closes]
        mean = reduce(add, apart) / length
        away = [each - mean for each in apart]
        scale = sqrt(self._squares * reduce(add, [each * each for each in away]))
        return (max(-1.0, min(1.0, weighted_sum_of(away, self._places) / scale)) if scale > 0.0 else 0.0,)


INDICATOR = Indicator(
    name="trend_strength",
    title="Trend Strength",
    description="Correlation of the latest closes with the bar number: 1 in a steady rise, -1 in a steady fall",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 9, 2, 500, tradingview=14),),
    aliases=("trend_strength_index",),
    differs="While the price does not move it is 0, where TradingView has no value.",
)
