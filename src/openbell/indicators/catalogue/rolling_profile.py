"""Rolling volume profile: where the latest bars traded, computed from bars up to each bar only.

The range of the window is divided into rows of equal height, and the volume of a bar is spread evenly between its low and
its high. `poc` is the middle of the row with the most volume; `val` and `vah` are the ends of the value area around it,
which holds 70 per cent of the volume. `mean` and `deviation` are those of the price, weighted by the volume so spread. All
are NaN if the window has no volume.
"""

from __future__ import annotations

from math import nan

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from openbell.indicators.channels import Channels, Line
from openbell.indicators.profiles import value_area
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars, Values

LINES = ("poc", "vah", "val", "mean", "deviation")
THINNEST = 1e-9
"""Least height of a bar, as a share of the window's range: the volume of a bar without a range belongs to one row."""
_CHUNK = 192
"""Windows that are computed at once: their cells fit into the processor's cache."""


def _levels(bins: int, low: Values, high: Values, volume: Values) -> Values:
    """The values of `LINES` with a number of rows (`bins`), one column per window.

    The other arguments have a row per bar of the window, oldest first, and a column per window.
    """
    bottom = low.min(axis=0)
    height = (high.max(axis=0) - bottom) / bins
    below = _volume_below(low, high, volume, bottom, height, bins)
    control = np.diff(below, axis=0).argmax(axis=0)
    areas = [value_area(*each) for each in zip(below.T.tolist(), control.tolist(), strict=True)]
    first, last = np.array(areas, dtype=np.float64).T
    traded = below[-1]
    out = np.empty((len(LINES), len(traded)))
    out[:3] = bottom + height * np.stack((control + 0.5, last + 1.0, first))
    out[:3, ~(traded > 0.0)] = np.nan
    out[3:] = _moments(low, high, volume, traded)
    return out


def _volume_below(low: Values, high: Values, volume: Values, bottom: Values, height: Values, bins: int) -> Values:
    """The volume below each edge of the rows: a row per edge, from 0 to all the volume, and a column per window."""
    below = np.zeros((bins + 1, len(bottom)))
    below[-1] = _sum(volume)
    edges = bottom + height * np.arange(1, bins)[:, None]
    tall = np.maximum(high - low, THINNEST * bins * height)
    density = np.divide(volume, tall, out=np.zeros_like(tall), where=tall > 0.0)
    inner = below[1:-1]
    if len(bottom) == 1:  # one window: all bars at once are faster, and add up in the same order
        inner[:] = _sum(np.clip((edges - low[:, None]) * density[:, None], 0.0, volume[:, None]))
        return below
    part = np.empty_like(edges)
    for bar in range(len(low)):
        np.subtract(edges, low[bar], out=part)
        part *= density[bar]
        np.maximum(part, 0.0, out=part)
        np.minimum(part, volume[bar], out=part)
        inner += part
    return below


def _moments(low: Values, high: Values, volume: Values, traded: Values) -> Values:
    """Mean and deviation of the price, in two passes relative to the latest bar."""
    middle = (high + low) / 2.0
    base = middle[-1]
    out = np.full((2, len(traded)), np.nan)
    apart = np.divide(_sum(volume * (middle - base)), traded, out=out[0].copy(), where=traded > 0.0)
    away, tall = middle - base - apart, high - low
    squares = _sum(volume * (away * away + tall * tall / 12.0))  # the square deviation within a bar is its height² / 12
    np.divide(squares, traded, out=out[1], where=traded > 0.0)
    out[0], out[1] = base + apart, np.sqrt(out[1])
    return out


def _sum(values: Values) -> Values:
    """The sum over the bars, added oldest first. The order in which `np.sum` adds depends on the number of windows."""
    total: Values = np.cumsum(values, axis=0)[-1]
    return total


def _compute(bars: Bars, length: int, bins: int) -> Channels:
    out = np.full((len(LINES), len(bars)), np.nan)
    if len(bars) >= length:
        windows = [sliding_window_view(column, length).T for column in (bars.low, bars.high, bars.volume)]
        for begin in range(0, len(bars) - length + 1, _CHUNK):
            found = _levels(bins, *(np.ascontiguousarray(each[:, begin : begin + _CHUNK]) for each in windows))
            out[:, begin + length - 1 :][:, : found.shape[1]] = found
    return Channels(lines=tuple(map(Line, LINES, out)))


class _Stream:
    def __init__(self, length: int, bins: int) -> None:
        self._length, self._bins = length, bins
        # Each bar is stored twice, so that the latest `length` bars are always a slice.
        self._rows = np.zeros((3, 2 * length, 1))
        self._count = 0

    def update(self, bar: Bar) -> tuple[float, ...]:
        place = self._count % self._length
        self._count += 1
        self._rows[:, place, 0] = self._rows[:, place + self._length, 0] = (bar.low, bar.high, bar.volume)
        if self._count < self._length:
            return (nan,) * len(LINES)
        low, high, volume = self._rows[:, place + 1 : place + 1 + self._length]
        return tuple(_levels(self._bins, low, high, volume)[:, 0].tolist())


INDICATOR = Indicator(
    name="rolling_profile",
    title="Rolling Profile",
    description="Point of control, value area, mean and deviation of the volume at each price of the latest bars",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, bins: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 100, 2, 500), Parameter("bins", 24, 2, 100)),
    inputs=("high", "low", "volume"),
)
