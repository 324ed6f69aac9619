"""Rolling volume profile: where the latest bars traded, computed from bars up to each bar only.

The range of the window is divided into rows of equal height, and the volume of a bar is spread evenly between its low and
its high. `poc` is the middle of the row with the most volume, the lowest of such rows; `val` and `vah` are the ends of the
value area around it, which holds 70 per cent of the volume. `mean` is the mean price, weighted by the volume so spread;
`upper` and `lower` are `mult` standard deviations of that distribution away. All are NaN if the window has no volume.
"""

from __future__ import annotations

from itertools import accumulate
from math import nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.highs_and_lows import RunningExtremes
from openbell.indicators.price_spread import RunningSpread, spread
from openbell.indicators.rolling_volume import RollingVolume, RunningVolume
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.value_area import control_row, first_of_most, value_area, value_areas
from openbell.market.bars import Bars, Values

LINES = ("poc", "vah", "val", "mean", "upper", "lower")
_NOTHING = (nan,) * len(LINES)


def _levels(bars: Bars, length: int, bins: int) -> Values:
    windows = RollingVolume(bars, length, bins)
    below = windows.below.T
    control = control_row(np.diff(windows.below).T.copy(), below[-1])
    first, last = value_areas(below, control)
    return windows.bottom + windows.height * np.stack((control + 0.5, last + 1.0, first))


def _compute(bars: Bars, length: int, bins: int, mult: float) -> Channels:
    out = np.full((len(LINES), len(bars)), np.nan)
    if len(bars) >= length:
        traded, mean, deviation = (each[length - 1 :] for each in spread(bars, length))
        room = mult * deviation
        found = np.concatenate((_levels(bars, length, bins), (mean, mean + room, mean - room)))
        found[:, ~(traded > 0.0)] = np.nan
        out[:, length - 1 :] = found
    return Channels(lines=tuple(map(Line, LINES, out)))


class _Stream:
    def __init__(self, length: int, bins: int, mult: float) -> None:
        self._bins, self._mult = bins, mult
        self._extremes, self._volume = RunningExtremes(length), RunningVolume(length, bins)
        self._spread = RunningSpread(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        top, bottom = self._extremes.update(bar.high, bar.low)
        volumes = self._volume.update(bar, bottom, top)
        traded, mean, deviation = self._spread.update(bar)
        if not traded > 0.0:
            return _NOTHING
        height, room = (top - bottom) / self._bins, self._mult * deviation
        below = [0.0, *accumulate(volumes)]
        first, last = value_area(below, control := first_of_most(volumes, below[-1]))
        return (
            bottom + height * (control + 0.5),
            bottom + height * (last + 1.0),
            bottom + height * first,
            mean,
            mean + room,
            mean - room,
        )


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
