"""Computes exactly how much of each pixel a line covers.

A line is cut at the edges of every pixel column and at each of its points. Each piece is straight and within one column, so
the area that it shares with a pixel has a closed form; nothing is sampled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values

Index = npt.NDArray[np.int64]
_LEVEL, _NOTHING, _FAR = 1e-6, 1e-9, 1e6


class Bounds(NamedTuple):
    """The area that may be drawn on, in whole pixels."""

    left: int
    top: int
    right: int
    bottom: int


class Covered(NamedTuple):
    """Pixels without duplicates, and the covered part of each (0 to 1)."""

    row: Index
    column: Index
    part: Values


def line(x: Values, y: Values, width: float, inside: Bounds, dash: tuple[float, float] | None = None) -> Covered:
    """Returns the pixels that a line covers. Coordinates are in device pixels, `x` is ascending."""
    cut = _cut(x.tobytes(), inside.left, inside.right, dash)
    piece, wide = cut.piece, cut.wide
    if not len(piece):
        return _NONE
    y = np.clip(y, -_FAR, _FAR)
    left, right = y[:-1], y[1:]
    slope = (right - left) / np.maximum(x[1:] - x[:-1], _NOTHING)
    # The vertical extent of a line grows with its slope, but is limited to the ends of its segment.
    half = (width / 2 * np.sqrt(1 + slope * slope))[piece]
    reach = width / 2
    highest, lowest = (np.minimum(left, right) - reach)[piece], (np.maximum(left, right) + reach)[piece]
    inclined = slope[piece]
    one = left[piece] + cut.start * inclined
    two = one + wide * inclined
    upper, rise = np.minimum(one, two), np.maximum(np.abs(two - one), _LEVEL)
    near = upper - half
    top = np.maximum(near, highest).clip(inside.top, inside.bottom)
    bottom = np.minimum(upper + rise + half, lowest).clip(inside.top, inside.bottom)
    above = np.floor(top).astype(np.int64)
    count = np.maximum(np.ceil(bottom).astype(np.int64) - above, 0)
    # The areas above the edges of each piece's rows; the differences are the areas within the rows.
    edges = count + 1
    end = edges.cumsum()
    at = np.repeat(cut.number, edges)
    offset = above - (end - edges)
    order = np.arange(len(at))
    edge = (order + offset.take(at)).astype(np.float64)
    edge[end - edges] = top
    edge[end - 1] = bottom
    edge -= near.take(at)
    edge /= rise.take(at)
    area = _above(edge)
    edge -= (2 * half / rise).take(at)
    area -= _above(edge)
    area *= (wide * rise / 2).take(at)
    area[:-1] = area[1:] - area[:-1]
    area[end - 1] = 0.0
    # Add up the pieces of each column, in an array with one element for each row between the column's top and bottom.
    highest_row = np.minimum.reduceat(above, cut.first)
    tall = np.maximum.reduceat(above + count, cut.first) - highest_row
    skipped = tall.cumsum() - tall - highest_row
    size = int(tall.sum())
    order += (offset + skipped.take(cut.group)).take(at)
    parts = np.bincount(order, weights=area, minlength=size)[:size]
    rows = np.arange(size) - np.repeat(skipped, tall)
    return Covered(rows, np.repeat(cut.column, tall), np.minimum(parts, 1.0))


_NONE = Covered(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


class _Cut(NamedTuple):
    """The pieces of a line and the pixel columns that they are in."""

    number: Index
    """0, 1, 2 … for each piece."""
    piece: Index
    """For each piece, the index of the line's point before it."""
    start: Values
    """For each piece, its distance in x from that point."""
    wide: Values
    """For each piece, its width."""
    group: Index
    """For each piece, the index of its column in `column`."""
    first: Index
    """For each column, the index of its first piece."""
    column: Index
    """For each column, its x in pixels."""


@lru_cache(maxsize=8)
def _cut(points: bytes, left: int, right: int, dash: tuple[float, float] | None) -> _Cut:
    """Cuts a line into pieces. Cached, because all lines of a chart have the same x."""
    x = np.frombuffer(points)
    first, last = max(left, int(np.floor(x[0]))), min(right, int(np.ceil(x[-1])))
    columns = np.arange(first, last + 1, dtype=np.float64)
    cuts = np.concatenate((columns, x[(x >= first) & (x <= last)])) if last > first else columns[:0]
    cuts.sort(kind="stable")
    cuts = np.clip(cuts, x[0], x[-1])
    wide = np.diff(cuts)
    middle = cuts[:-1] + wide / 2
    keep = wide > _NOTHING
    if dash:
        keep &= (middle - x[0]) % (dash[0] + dash[1]) < dash[0]
    middle, wide = middle[keep], wide[keep]
    piece = np.searchsorted(x, middle, side="right") - 1
    column, starts, group = np.unique(np.floor(middle).astype(np.int64), return_index=True, return_inverse=True)
    return _Cut(np.arange(len(piece)), piece, cuts[:-1][keep] - x[piece], wide, group, starts, column)


def _above(level: Values) -> Values:
    """Returns twice the mean of max(0, level − t) for t from 0 to 1."""
    started = np.minimum(np.maximum(level, 0.0), 1.0)
    return started * (level + level - started)
