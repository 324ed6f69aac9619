"""TTM squeeze: Bollinger bands within a Keltner channel tell of calm, the momentum which way it may end."""

from __future__ import annotations

from collections import deque
from math import isnan, nan

import numpy as np

from openbell.indicators.catalogue.atr import true_range
from openbell.indicators.channels import Channels, Direction, Line, Signal
from openbell.indicators.dots import Mask, becomes, dots, in_order
from openbell.indicators.highs_and_lows import RunningExtremes, middle
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import mean_and_deviation, total
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values


def line_end(length: int) -> list[float]:
    """The weights that give the newest point of the straight line of least squares, those of the oldest first."""
    return [1.0 / length + (6.0 * age - 3.0 * (length - 1)) / (length * (length + 1)) for age in range(length)]


def _momentum(bars: Bars, average: Values, length: int) -> Values:
    """Where the close's distance from the middle of its range and its average is heading."""
    distance = bars.close - (middle(bars.high, bars.low, length) + average) / 2.0
    out = np.full(len(bars), np.nan)
    count = len(bars) - length + 1
    if count > 0:
        weighed = (distance[age : age + count] * weight for age, weight in enumerate(line_end(length)))
        out[length - 1 :] = total(weighed)
    return out


def _compute(bars: Bars, length: int, bb_mult: float, kc_mult: float) -> Channels:
    average, deviation = mean_and_deviation(bars.close, length)
    # Both have the same middle, so one lies within the other where it is narrower.
    squeezed = bb_mult * deviation < kc_mult * (window_sum(true_range(bars), length) / length)
    return Channels(
        histogram=(Line("Momentum", _momentum(bars, average, length)),),
        signals=_signals(squeezed),
        hlines=(0.0,),
    )


def _signals(squeezed: Mask) -> tuple[Signal, ...]:
    """On the zero line: where a squeeze begins and where it ends."""
    ended = becomes(~squeezed)
    ended[:1] = False  # what never began
    zero = np.zeros(len(squeezed))
    return in_order((dots("squeeze_on", becomes(squeezed), zero), dots("squeeze_off", ended, zero)))


class _Stream:
    def __init__(self, length: int, bb_mult: float, kc_mult: float) -> None:  # noqa: ARG002 - takes every parameter
        self._extremes = RunningExtremes(length)
        self._closes: deque[float] = deque(maxlen=length)
        self._distances: deque[float] = deque(maxlen=length)
        self._weights = line_end(length)
        self._length = length

    def update(self, bar: Bar) -> tuple[float, ...]:
        high, low = self._extremes.update(bar.high, bar.low)
        close = bar.close
        self._closes.append(close)
        if isnan(high):
            return (nan,)
        average = close + sum([each - close for each in self._closes]) / self._length
        self._distances.append(close - ((high + low) / 2.0 + average) / 2.0)
        if len(self._distances) < self._length:
            return (nan,)
        heading = 0.0
        for distance, weight in zip(self._distances, self._weights, strict=True):
            heading += distance * weight
        return (heading,)


INDICATOR = Indicator(
    name="squeeze",
    title="Squeeze",
    description="TTM squeeze: momentum by linear regression; on while the Bollinger bands lie within the Keltner channel",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, bb_mult, kc_mult: 2 * length - 1,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("length", 20, 2, 500),
        Parameter("bb_mult", 2.0, 0.1, 10.0),
        Parameter("kc_mult", 1.5, 0.1, 10.0),
    ),
    inputs=("high", "low", "close"),
    signals={"squeeze_on": Direction.NEITHER, "squeeze_off": Direction.NEITHER},
)
