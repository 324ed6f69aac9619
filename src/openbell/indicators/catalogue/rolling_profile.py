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
from numpy.lib.stride_tricks import sliding_window_view

from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.profiles import Indices, control_row, value_areas
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import (
    LITTLE,
    bases_of,
    blocks_of,
    distances_of,
    highest,
    joined,
    lowest,
    per_bar,
    total,
)
from openbell.market.bars import Bars, Values
from openbell.market.session_table import Times

LINES = ("poc", "vah", "val", "mean", "upper", "lower")
FLAT = 1e-8
"""The volume of a bar whose range is at most this share of its price belongs to one row."""
EDGE = 1.0 + TOLERANCE
"""The factor that moves such a bar to the upper side of an edge between rows at its price."""
_LONGEST = 16
"""Windows that share one sum over the bars that are in all of them."""
_CHUNK = 128
"""Stretches that are computed at once: their cells fit into the processor's cache."""


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


class RollingVolume:
    """The volume below each edge in every window: a row per window, a column per edge, from 0 to all the volume.

    Consecutive windows with the same range have the same edges. The bars that are in all windows of such a stretch are added
    once. Those that leave it are added up from the newest one on, those that enter it from the oldest one on: nothing is
    subtracted, so that bars outside of a window have no effect on it.
    """

    def __init__(self, bars: Bars, length: int, bins: int) -> None:
        self._length, self._bins = length, bins
        tall = bars.high - bars.low
        flat = tall <= FLAT * bars.high
        self._prices = np.stack((np.where(flat, EDGE * bars.low, bars.low), bars.high))
        self._densities = np.divide(bars.volume, tall, out=np.zeros(len(bars)), where=~flat)
        self._flat = np.where(flat, bars.volume, 0.0)
        top = highest(bars.high, length)[length - 1 :]
        self.bottom = lowest(bars.low, length)[length - 1 :]
        self.height = (top - self.bottom) / bins
        self._per_height = np.divide(1.0, self.height, out=np.zeros(len(top)), where=self.height > 0.0)
        first, count = _stretches(self.bottom, top, min(length, _LONGEST))
        self.below = np.zeros((len(top), bins + 1))
        self.below[:, 1:] = self._in_all(first, count)
        self.below[:, 1:] += self._in_some(first, count)

    def _in_all(self, first: Indices, count: Indices) -> Values:
        """The bars that are in all windows of a stretch, for each window."""
        slopes = np.stack((self._densities, -self._densities))
        prices, slopes, flat = (
            sliding_window_view(each, self._length, axis=-1) for each in (self._prices, slopes, self._flat)
        )
        found, age, flats = np.empty((len(first), self._bins)), np.arange(self._length), self._flat.any()
        for begin in range(0, len(first), _CHUNK):
            some = slice(begin, begin + _CHUNK)
            window, stays = first[some], age >= count[some, None] - 1
            place = prices[:, window]
            place -= self.bottom[window, None]
            place *= self._per_height[window, None]
            cell = place.astype(np.intp)
            cell += np.arange(0, len(window) * (self._bins + 1), self._bins + 1)[:, None]
            sums = self._sums(place, cell, slopes[:, window] * stays)
            sums *= self.height[window, None]
            if flats:
                sums += self._per_row(cell[0], flat[window] * stays)
                sums[:, -2] += sums[:, -1]
            found[some] = sums[:, :-1].cumsum(axis=1)
        order = np.argsort(first)
        return np.repeat(found[order], count[order], axis=0)

    def _sums(self, place: Values, cell: Indices, slopes: Values) -> Values:
        """The volume in each row per unit of its height, of one line of bars per window.

        A bar begins with its density at the place of its low, and ends with it at that of its high. A row has all densities
        that begin or end in it or below it, less their distances from its lower edge if they do so in it.
        """
        begun = self._per_row(cell, slopes)
        place *= slopes
        sums = begun.cumsum(axis=1)
        sums -= self._per_row(cell, place)
        sums += np.arange(self._bins + 1) * begun
        return sums

    def _per_row(self, cell: Indices, amounts: Values) -> Values:
        """The sum of the amounts in each cell: a line per window, a column per row and one for highs at the last edge."""
        columns = self._bins + 1
        sums = np.bincount(cell.ravel(), amounts.ravel(), amounts.shape[-2] * columns)
        return sums.astype(np.float64, copy=False).reshape(-1, columns)

    def _in_some(self, first: Indices, count: Indices) -> Values:
        """The bars that leave each stretch after one of its windows, or enter it at a later one; `count` must fall."""
        inner = np.ones(len(self.bottom), dtype=bool)
        inner[first] = False
        later = np.flatnonzero(inner)
        leaving, entering = np.zeros((2, len(self.bottom), self._bins))
        leaving[later - 1] = self._parts(later - 1, later)
        entering[later] = self._parts(later + self._length - 1, later)
        reached = np.searchsorted(-count, -np.arange(count[0])).tolist()  # stretches that have a window of each age
        for age in range(1, count[0]):
            entered, left = first[: reached[age]] + age, first[: reached[-age]] + count[0] - 1 - age
            entering[entered] += entering[entered - 1]
            leaving[left] += leaving[left + 1]
        leaving += entering
        return leaving

    def _parts(self, bar: Indices, window: Indices) -> Values:
        """The volume of one bar per window below the upper edge of each row."""
        low, high = self._prices[:, bar, None]
        edges = edges_of(self.bottom[window, None], self.height[window, None], self._bins)
        return volume_below(edges, low, high, self._densities[bar, None], self._flat[bar, None])


def edges_of(bottom: Values | float, height: Values | float, bins: int) -> Values:
    """The upper edge of each row. The last one is above all prices, so that rounding cannot leave one outside."""
    edges: Values = bottom + height * np.arange(1.0, bins + 1.0)
    edges[..., -1] = np.inf
    return edges


def volume_below(edges: Values, low: Values, high: Values, density: Values, flat: Values) -> Values:
    """The volume of bars below each edge."""
    part = np.minimum(edges, high)
    part -= low
    part *= density
    np.maximum(part, 0.0, out=part)
    if flat.any():
        part += flat * (edges > low)
    return part


def _stretches(bottom: Values, top: Values, longest: int) -> tuple[Indices, Indices]:
    """The first window and the number of windows of each stretch of windows with the same range, the longest first."""
    changes = np.flatnonzero((bottom[1:] != bottom[:-1]) | (top[1:] != top[:-1])) + 1
    first = np.concatenate((np.zeros(1, dtype=np.intp), changes))
    pieces = -(-np.diff(np.append(first, len(bottom))) // longest)
    number = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = np.repeat(first, pieces) + longest * number
    count = np.diff(np.append(first, len(bottom)))
    order = np.argsort(-count, kind="stable")
    return first[order], count[order]


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
