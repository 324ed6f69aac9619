"""Rolling volume profile: where the latest bars traded, computed from bars up to each bar only.

The range of the window is divided into rows of equal height, and the volume of a bar is spread evenly between its low and
its high. `poc` is the middle of the row with the most volume, the lowest of such rows; `val` and `vah` are the ends of the
value area around it, which holds 70 per cent of the volume. `mean` is the mean price, weighted by the volume so spread;
`upper` and `lower` are `mult` standard deviations of that distribution away. All are NaN if the window has no volume.
"""

from __future__ import annotations

from math import nan, sqrt

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.highs_and_lows import RunningExtremes, highest, lowest
from openbell.indicators.latest import Latest, sum_of
from openbell.indicators.profiles import Indices
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import total
from openbell.indicators.value_area import control_row, value_area, value_areas
from openbell.market.bars import Bars, Values

LINES = ("poc", "vah", "val", "mean", "upper", "lower")
THINNEST = 1e-9
"""Least height of a bar, as a share of the window's range: the volume of a bar without a range belongs to one row."""
_CHUNK = 128
"""Stretches that are computed at once: their cells fit into the processor's cache."""


def _edges(bottom: Values | float, height: Values | float, bins: int) -> Values:
    """The prices between the rows: a row per edge and a column per window."""
    return bottom + height * np.arange(1.0, bins)[:, None]


def _densities(tall: Values, volume: Values, height: Values | float, bins: int) -> Values:
    """The volume of each bar per unit of price; 0 if the window has no range."""
    tall = np.maximum(tall, THINNEST * bins * height)
    return np.divide(volume, tall, out=np.zeros_like(tall), where=tall > 0.0)


def _below(edges: Values, low: Values | float, density: Values | float, volume: Values | float) -> Values:
    """The volume of a bar (or of one bar per column) below each edge."""
    part = edges - low
    part *= density
    np.maximum(part, 0.0, out=part)
    return np.minimum(part, volume, out=part)


class _Windows:
    """The volume below each edge in every window: a row per edge, from 0 to all the volume, and a column per window.

    Consecutive windows with the same range have the same edges. The bars of the first window of such a stretch are added
    newest first: the sum without its oldest bars is a part of the next windows, to which only their new bars are added. A
    stretch has at most `length` windows. The stream adds in the same order, because a difference in the last digit could
    move a level to another row.
    """

    def __init__(self, bars: Bars, length: int, bins: int) -> None:
        self._length, self._bins = length, bins
        self._low, self._tall, self._volume = bars.low, bars.high - bars.low, bars.volume
        top = highest(bars.high, length)[length - 1 :]
        self.bottom = lowest(bars.low, length)[length - 1 :]
        self.height = (top - self.bottom) / bins
        self.below = np.zeros((bins + 1, len(top)))
        first, count = _stretches(self.bottom, top, length)
        for begin in range(0, len(first), _CHUNK):
            self._fill(first[begin : begin + _CHUNK], count[begin : begin + _CHUNK])

    def _fill(self, first: Indices, count: Indices) -> None:
        """Fill in some stretches, the longest first: `first` is the first window of each, `count` its windows."""
        length = self._length
        height = self.height[first]
        edges = _edges(self.bottom[first], height, self._bins)
        reached = np.searchsorted(-count, -np.arange(count[0])).tolist()  # stretches that have a window of each age
        bars = np.minimum(first + np.arange(length + count[0] - 1)[:, None], len(self._low) - 1)
        low, volume = self._low[bars], self._volume[bars]
        density = _densities(self._tall[bars], volume, height, self._bins)
        sums = np.zeros((self._bins, len(first)))
        for age in range(length - 1, -1, -1):
            sums[:-1] += _below(edges, low[age], density[age], volume[age])
            sums[-1] += volume[age]
            if age < len(reached):
                some = slice(reached[age])
                self.below[1:, first[some] + age] = sums[:, some]
        sums[:] = 0.0
        for age, end in enumerate(reached[1:], start=1):
            new, some = length + age - 1, slice(end)
            sums[:-1, some] += _below(edges[:, some], low[new, some], density[new, some], volume[new, some])
            sums[-1, some] += volume[new, some]
            self.below[1:, first[some] + age] += sums[:, some]


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


def _bands(bars: Bars, length: int, mult: float, traded: Values) -> Values:
    """The mean price and the lines `mult` deviations from it, in two passes relative to the latest bar."""
    tall, middle = bars.high - bars.low, (bars.high + bars.low) / 2.0
    within = tall * tall / 12.0  # the square deviation within a bar
    base = middle[length - 1 :]
    parts = [slice(age, age + len(base)) for age in range(length)]
    with np.errstate(invalid="ignore"):  # 0 / 0 if the window has no volume
        apart = total(bars.volume[part] * (middle[part] - base) for part in parts) / traded
        away = ((part, middle[part] - base - apart) for part in parts)
        squares = total(bars.volume[part] * (each * each + within[part]) for part, each in away) / traded
    mean, room = base + apart, mult * np.sqrt(squares)
    return np.stack((mean, mean + room, mean - room))


def _compute(bars: Bars, length: int, bins: int, mult: float) -> Channels:
    out = np.full((len(LINES), len(bars)), np.nan)
    if len(bars) >= length:
        windows = _Windows(bars, length, bins)
        below = windows.below
        control = control_row(below[1:] - below[:-1], below[-1])
        first, last = value_areas(below, control)
        rows = np.stack((control + 0.5, last + 1.0, first))
        rows[:, ~(below[-1] > 0.0)] = np.nan
        out[:3, length - 1 :] = windows.bottom + windows.height * rows
        out[3:, length - 1 :] = _bands(bars, length, mult, below[-1])
    return Channels(lines=tuple(map(Line, LINES, out)))


class _Stream:
    def __init__(self, length: int, bins: int, mult: float) -> None:
        self._length, self._bins, self._mult = length, bins, mult
        self._extremes, self._latest = RunningExtremes(length), Latest(length, 5)
        self._age = 0
        self._range = (nan, nan)
        self._edges, self._new = np.zeros(bins - 1), np.zeros(bins + 1)
        self._sums: Values = np.zeros((length, bins + 1))

    def update(self, bar: Bar) -> tuple[float, ...]:
        top, bottom = self._extremes.update(bar.high, bar.low)
        tall, middle = bar.high - bar.low, (bar.high + bar.low) / 2.0
        window = self._latest.update(bar.low, tall, bar.volume, middle, tall * tall / 12.0)
        if window is None:
            return (nan,) * len(LINES)
        height = (top - bottom) / self._bins
        below = self._add(window, bottom, top, height)
        if not below[-1] > 0.0:
            return (nan,) * len(LINES)
        control = int(control_row(below[1:] - below[:-1], below[-1]))
        first, last = value_area(below.tolist(), control)
        levels = (bottom + height * (control + 0.5), bottom + height * (last + 1.0), bottom + height * first)
        return *levels, *_bands_of(window, self._mult, below.item(-1))

    def _add(self, window: Values, bottom: float, top: float, height: float) -> Values:
        """Add the latest bar. Returns the volume below each edge, as in `_Windows`."""
        self._age += 1
        if (bottom, top) == self._range and self._age < self._length:
            low, tall, volume = window[:3, -1].tolist()
            tall = max(tall, THINNEST * self._bins * height)
            self._new[1:-1] += _below(self._edges, low, volume / tall if tall > 0.0 else 0.0, volume)
            self._new[-1] += volume
            below: Values = self._sums[self._age] + self._new
            return below
        self._age, self._range = 0, (bottom, top)
        self._edges = _edges(bottom, height, self._bins)[:, 0]
        self._new[:] = 0.0
        low, tall, volume = window[:3, ::-1, None]
        parts = np.zeros((self._length, self._bins + 1))
        parts[:, 1:-1] = _below(self._edges, low, _densities(tall, volume, height, self._bins), volume)
        parts[:, -1:] = volume
        self._sums = parts.cumsum(axis=0)[::-1]
        return np.asarray(self._sums[0])


def _bands_of(window: Values, mult: float, traded: float) -> tuple[float, float, float]:
    """`_bands` of one window, bit for bit equal."""
    _, _, volume, middle, within = window
    base = middle.item(-1)
    away = middle - base
    apart = sum_of(volume * away) / traded
    away -= apart
    away *= away
    away += within
    away *= volume
    mean, room = base + apart, mult * sqrt(sum_of(away) / traded)
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
