"""Rolling volume profile: where the latest bars traded, computed from bars up to each bar only.

The range of the window is divided into rows of equal height, and the volume of a bar is spread evenly between its low and
its high. `poc` is the middle of the row with the most volume, the lowest of such rows; `val` and `vah` are the ends of the
value area around it, which holds 70 per cent of the volume. `mean` is the mean price, weighted by the volume so spread;
`upper` and `lower` are `mult` standard deviations of that distribution away. All are NaN if the window has no volume.
"""

from __future__ import annotations

from itertools import accumulate
from math import nan, sqrt

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.highs_and_lows import RunningExtremes
from openbell.indicators.latest import Latest, sum_of
from openbell.indicators.rolling_volume import RollingVolume, RunningVolume
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import total
from openbell.indicators.value_area import EQUAL, control_row, value_area, value_areas
from openbell.indicators.windows import RunningSum, RunningWeightedMean, window_sum, window_weighted_mean
from openbell.market.bars import Bars, Values

LINES = ("poc", "vah", "val", "mean", "upper", "lower")
_NOTHING = (nan,) * len(LINES)


def _levels(bars: Bars, length: int, bins: int) -> Values:
    windows = RollingVolume(bars, length, bins)
    below = windows.below.T
    control = control_row(np.diff(windows.below).T.copy(), below[-1])
    first, last = value_areas(below, control)
    return windows.bottom + windows.height * np.stack((control + 0.5, last + 1.0, first))


def _bands(bars: Bars, length: int, mult: float, traded: Values) -> Values:
    """The mean price and the lines `mult` deviations from it."""
    tall, middle, volume = bars.high - bars.low, (bars.high + bars.low) / 2.0, bars.volume
    mean = window_weighted_mean(middle, volume, length)[length - 1 :]
    within = window_sum(volume * (tall * tall / 12.0), length)[length - 1 :]  # the square deviations within the bars

    def square(part: slice) -> Values:
        away = middle[part] - mean
        away *= away
        away *= volume[part]
        return away

    squares = total(square(slice(age, age + len(mean))) for age in range(length))
    with np.errstate(invalid="ignore"):  # 0 / 0 if the window has no volume
        room = mult * np.sqrt((squares + within) / traded)
    return np.stack((mean, mean + room, mean - room))


def _compute(bars: Bars, length: int, bins: int, mult: float) -> Channels:
    out = np.full((len(LINES), len(bars)), np.nan)
    if len(bars) >= length:
        traded = window_sum(bars.volume, length)[length - 1 :]
        found = np.concatenate((_levels(bars, length, bins), _bands(bars, length, mult, traded)))
        found[:, ~(traded > 0.0)] = np.nan
        out[:, length - 1 :] = found
    return Channels(lines=tuple(map(Line, LINES, out)))


class _Stream:
    def __init__(self, length: int, bins: int, mult: float) -> None:
        self._bins = bins
        self._extremes, self._volume = RunningExtremes(length), RunningVolume(length, bins)
        self._bands, self._traded = _RunningBands(length, mult), RunningSum(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        top, bottom = self._extremes.update(bar.high, bar.low)
        volumes = self._volume.update(bar, bottom, top)
        traded = self._traded.update(bar.volume)
        bands = self._bands.update(bar, traded)
        if not traded > 0.0:
            return _NOTHING
        height = (top - bottom) / self._bins
        below = [0.0, *accumulate(volumes)]
        least = max(volumes) - EQUAL * below[-1]
        control = next(row for row, volume in enumerate(volumes) if volume >= least)  # as `control_row`
        first, last = value_area(below, control)
        return bottom + height * (control + 0.5), bottom + height * (last + 1.0), bottom + height * first, *bands


class _RunningBands:
    """`_bands`, one bar at a time, bit for bit equal."""

    __slots__ = ("_latest", "_mean", "_mult", "_within")

    def __init__(self, length: int, mult: float) -> None:
        self._mean, self._within, self._latest = RunningWeightedMean(length), RunningSum(length), Latest(length, 2)
        self._mult = mult

    def update(self, bar: Bar, traded: float) -> tuple[float, float, float]:
        """The mean and both lines after this bar; `traded` is all the volume of the window."""
        tall, middle, volume = bar.high - bar.low, (bar.high + bar.low) / 2.0, bar.volume
        mean, within = self._mean.update(middle, volume), self._within.update(volume * (tall * tall / 12.0))
        window = self._latest.update(middle, volume)
        if window is None or not traded > 0.0:
            return nan, nan, nan
        away = window[0] - mean
        away *= away
        away *= window[1]
        room = self._mult * sqrt((sum_of(away) + within) / traded)
        return mean, mean + room, mean - room


INDICATOR = Indicator(
    name="rolling_profile",
    title="Rolling Profile",
    description="Point of control, value area, mean and deviation bands of the volume at each price of the latest bars",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, **_: length,
    parameters=(Parameter("length", 100, 2, 500), Parameter("bins", 24, 2, 100), Parameter("mult", 2.0, 0.1, 10.0)),
    inputs=("high", "low", "volume"),
)
