"""The volume below each price in the windows of the latest bars.

The range of a window is divided into rows of equal height, and the volume of a bar is spread evenly between its low and its
high.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.highs_and_lows import highest, lowest
from openbell.indicators.profiles import Indices
from openbell.market.bars import Bars, Values

FLAT = 1e-8
"""The volume of a bar whose range is at most this share of its price belongs to one row."""
EDGE = 1.0 + TOLERANCE
"""The factor that moves such a bar to the upper side of an edge between rows at its price."""
_LONGEST = 16
"""Windows that share one sum over the bars that are in all of them."""
_CHUNK = 128
"""Stretches that are computed at once: their cells fit into the processor's cache."""


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
