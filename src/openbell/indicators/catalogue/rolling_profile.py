"""Rolling volume profile: where the latest bars traded, computed from bars up to each bar only.

The range of the window is divided into rows of equal height, and the volume of a bar is spread evenly between its low and
its high. `poc` is the middle of the row with the most volume, the lowest of such rows; `val` and `vah` are the ends of the
value area around it, which holds 70 per cent of the volume. `mean` is the mean price, weighted by the volume so spread;
`upper` and `lower` are `mult` standard deviations of that distribution away. All are NaN if the window has no volume.

For the deviation, sums of distances from a price are added up in blocks, as in `windows`. The squared distances from the
mean are what remains of those sums; if little remains, they are added up in a second pass over the window.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.regression import LITTLE
from openbell.indicators.rolling_volume import RollingVolume
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.sums import total
from openbell.indicators.value_area import control_row, value_areas
from openbell.indicators.windows import bases_of, blocks_of, distances_of, joined, per_bar
from openbell.market.bars import Bars, Values
from openbell.market.session_table import Times

LINES = ("poc", "vah", "val", "mean", "upper", "lower")


def _spread(bars: Bars, length: int) -> tuple[Values, Values, Values]:
    """The volume of the latest bars, the mean price and its deviation. Without volume the latter have no meaning."""
    tall, middle, volume = bars.high - bars.low, (bars.high + bars.low) / 2.0, bars.volume
    blocks, volumes, within = (
        blocks_of(each, length)[1] for each in (middle, volume, volume * (tall * tall / 12.0))
    )  # `within` are the squared distances within the bars
    before, after = distances_of(blocks)
    heavy, inner = volumes[:-1, 1:], within[:-1, 1:]
    sums = joined(
        np.stack((volumes, volumes * before, volumes * (before * before), within), axis=1),
        np.stack((heavy, heavy * after, heavy * (after * after), inner), axis=1),
    )
    traded, apart, squares, inside, base = (
        per_bar(each, 0, len(bars)) for each in (*(sums[:, row] for row in range(4)), bases_of(blocks))
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 if the window has no volume
        offset = apart / traded
        mean = base + offset
        rest = squares - offset * apart
        near = np.flatnonzero(rest < LITTLE * squares)
        if len(near):
            rest[near] = total(_squares(middle, volume, mean, near, age) for age in range(1 - length, 1))
        return traded, mean, np.sqrt((rest + inside) / traded)


def _squares(price: Values, volume: Values, mean: Values, at: Times, age: int) -> Values:
    away: Values = price[at + age] - mean[at]
    away *= away
    away *= volume[at + age]
    return away


def _levels(bars: Bars, length: int, bins: int) -> Values:
    windows = RollingVolume(bars, length, bins)
    below = windows.below.T
    control = control_row(np.diff(windows.below).T.copy(), below[-1])
    first, last = value_areas(below, control)
    return windows.bottom + windows.height * np.stack((control + 0.5, last + 1.0, first))


def _compute(bars: Bars, length: int, bins: int, mult: float) -> Channels:
    out = np.full((len(LINES), len(bars)), np.nan)
    if len(bars) >= length:
        traded, mean, deviation = (each[length - 1 :] for each in _spread(bars, length))
        room = mult * deviation
        found = np.concatenate((_levels(bars, length, bins), (mean, mean + room, mean - room)))
        found[:, ~(traded > 0.0)] = np.nan
        out[:, length - 1 :] = found
    return Channels(lines=tuple(map(Line, LINES, out)))


INDICATOR = Indicator(
    name="rolling_profile",
    title="Rolling Profile",
    description="Point of control, value area, mean and deviation bands of the volume at each price of the latest bars",
    brief="Point of control, value area and bands of latest bars",
    overlay=True,
    compute=_compute,
    warmup=lambda length, **_: length,
    parameters=(Parameter("length", 100, 2, 500), Parameter("bins", 24, 2, 100), Parameter("mult", 2.0, 0.1, 10.0)),
    inputs=("high", "low", "volume"),
)
