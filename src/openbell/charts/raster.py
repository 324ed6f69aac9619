"""Draws a scene into pixels: anti-aliased, deterministic, with numpy only.

A scene has rectangles, lines with one y for each x, bands between two such lines, dots and texts. The coverage of each pixel
by a line is computed exactly, added up and blended once: the line is cut at the edges of every pixel column and at each of
its points. Each piece is straight and within one column, so the area that it shares with a pixel has a closed form; nothing
is sampled.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.charts import fonts
from openbell.charts.scene import Band, Box, Boxes, Color, Dot, Label, Scene, Stroke, box
from openbell.market.bars import Values

Pixels = npt.NDArray[np.uint32]
Shares = npt.NDArray[np.uint32]
"""Shares of a colour in 256ths."""
_RED_BLUE, _GREEN = np.uint32(0xFF00FF), np.uint32(0x00FF00)
_HALF_RED_BLUE, _HALF = np.uint32(0x800080), np.uint32(0x80)
_WHOLE, _BITS = np.uint32(256), np.uint32(8)

_STRIP = 1 << 19
"""The number of pixels that are blended at once; more need more memory and are not faster."""
_PLACES = 1 << 17
"""About the number of pixels whose places are computed at once."""
_FEW, _NARROW = 8, 24
"""More than `_FEW` boxes of at most `_NARROW` pixels width are drawn faster column by column than one by one."""
Index = npt.NDArray[np.int64]
_LEVEL, _NOTHING, _FAR = 1e-6, 1e-9, 1e6


def packed(color: Color) -> np.uint32:
    """Returns a colour as a pixel."""
    return np.uint32(color[0] | color[1] << 8 | color[2] << 16)


def blend(pixels: Pixels | np.uint32, color: Color, share: Shares | np.uint32) -> Pixels:
    """Returns pixels with a colour blended in, rounded. Red and blue are multiplied together."""
    rest = _WHOLE - share
    one: Pixels = np.multiply(pixels & _RED_BLUE, rest)
    one += np.uint32(color[0] | color[2] << 16) * share + _HALF_RED_BLUE
    one >>= _BITS
    one &= _RED_BLUE
    two: Pixels = np.multiply((pixels & _GREEN) >> _BITS, rest)
    two += np.uint32(color[1]) * share + _HALF
    two &= _GREEN
    one |= two
    return one


def share_of(color: Color) -> np.uint32:
    """Returns the opacity of a colour in 256ths."""
    return np.uint32(round(color[3] * 256 / 255))


def shares(part: Values, color: Color) -> Shares:
    """Returns the covered parts of pixels times the colour's opacity, in 256ths."""
    return np.rint(part * (color[3] * 256 / 255)).astype(np.uint32)


@lru_cache(maxsize=256)
def shares_by_coverage(color: Color) -> Shares:
    """Returns the shares of a colour for each coverage from 0 to 255."""
    return shares(np.arange(256) / 255, color)


@lru_cache(maxsize=256)
def ramp(under: int, color: Color) -> Pixels:
    """Returns `color` blended into `under` with each coverage from 0 to 255."""
    return blend(np.uint32(under), color, shares_by_coverage(color))


def render(scene: Scene, scale: float = 1.0, text: bool = True, into: Pixels | None = None) -> Pixels:
    """Returns the scene as packed pixels. `into` is an array of exactly the right shape to draw into.

    `text=False` leaves out all labels, for comparisons that do not depend on the font.
    """
    canvas = _Canvas(round(scene.width * scale), round(scene.height * scale), scene.background, scale, into)
    for layer in scene.layers:
        canvas.clip(layer.clip)
        for item in layer.items:
            match item:
                case Boxes():
                    canvas.boxes(item)
                case Band():
                    canvas.band(item)
                case Stroke():
                    canvas.stroke(item)
                case Dot():
                    canvas.dot(item)
                case Label() if text:
                    canvas.label(item)
    return canvas.pixels


class _Canvas:
    """Pixels as packed 32-bit values, red in the lowest byte."""

    def __init__(self, width: int, height: int, background: Color, scale: float, into: Pixels | None) -> None:
        self.width, self.height, self.scale = width, height, scale
        self.background = packed(background)
        self.pixels: Pixels = np.empty((height, width), dtype=np.uint32) if into is None else into
        self.pixels[...] = self.background
        self.flat = self.pixels.reshape(-1)
        self.clip(Box(0, 0, width, height))

    def clip(self, box_: Box) -> None:
        """Limit all further drawing to this box."""
        self.left = max(0, round(box_.left * self.scale))
        self.top = max(0, round(box_.top * self.scale))
        self.right = min(self.width, round(box_.right * self.scale))
        self.bottom = min(self.height, round(box_.bottom * self.scale))

    # Rectangles

    def boxes(self, item: Boxes) -> None:
        if len(item.left) > _FEW and item.color[3] == 255 and self._columns(item):
            return
        scale, opaque, value, share = self.scale, item.color[3] == 255, packed(item.color), share_of(item.color)
        left, top, right, bottom, pixels = self.left, self.top, self.right, self.bottom, self.pixels
        edges = (item.left.tolist(), item.top.tolist(), item.right.tolist(), item.bottom.tolist())
        for x0, y0, x1, y1 in zip(*edges, strict=True):
            first, last = max(round(x0 * scale), left), min(round(x1 * scale), right)
            start, end = max(round(y0 * scale), top), min(round(y1 * scale), bottom)
            if first >= last or start >= end:
                continue
            if opaque:
                pixels[start:end, first:last] = value
                continue
            tall = max(1, _STRIP // (last - first))
            for row in range(start, end, tall):
                patch = pixels[row : min(row + tall, end), first:last]
                patch[...] = blend(patch, item.color, share)

    def _columns(self, item: Boxes) -> bool:
        """Draws narrow boxes of equal width, such as candles, at once. Returns False if they are not, and draws nothing."""
        x0, x1 = np.rint(item.left * self.scale).astype(np.int64), np.rint(item.right * self.scale).astype(np.int64)
        wide = x1 - x0
        if (wide != wide[0]).any() or not 0 < wide[0] <= _NARROW or x0.min() < self.left or x1.max() > self.right:
            return False
        top = np.clip(np.rint(item.top * self.scale), self.top, self.bottom).astype(np.int64)
        bottom = np.clip(np.rint(item.bottom * self.scale), self.top, self.bottom).astype(np.int64)
        tall = np.maximum(bottom - top, 0)
        upto = np.cumsum(tall)
        before = upto - tall
        start = top * self.width + x0 - before * self.width
        value = packed(item.color)
        # Tall columns have many pixels: their places are computed for some columns at a time.
        cuts = np.searchsorted(upto, np.arange(_PLACES, upto[-1], _PLACES)).tolist()
        for first, last in pairwise((0, *cuts, len(tall))):
            if last == first:
                continue
            at = np.repeat(start[first:last], tall[first:last])
            at += np.arange(int(before[first]) * self.width, int(upto[last - 1]) * self.width, self.width)
            for _ in range(int(wide[0])):
                self.flat[at] = value
                at += 1
        return True

    # Bands

    def band(self, item: Band) -> None:
        for x, upper, lower in _runs(item.x * self.scale, item.upper * self.scale, item.lower * self.scale):
            first, last = max(self.left, int(np.ceil(x[0] - 0.5))), min(self.right, int(np.floor(x[-1] + 0.5)))
            if last <= first:
                continue
            centres = np.arange(first, last) + 0.5
            one, two = np.interp(centres, x, upper), np.interp(centres, x, lower)
            # Whole rows of the canvas, so that pixels have the same numbers in the rows and in the canvas.
            top, tall = np.zeros(self.width, dtype=np.int16), np.zeros(self.width, dtype=np.uint16)
            top[first:last] = np.clip(np.rint(np.minimum(one, two)), self.top, self.bottom)
            bottom = np.clip(np.rint(np.maximum(one, two)), self.top, self.bottom).astype(np.int16)
            tall[first:last] = bottom - top[first:last]
            low, high, step = int(top[first:last].min()), int(bottom.max()), max(1, _STRIP // self.width)
            for start in range(low, high, step):
                rows = np.arange(start, min(start + step, high), dtype=np.int16)[:, None]
                self._tint(start, (rows - top).view(np.uint16) < tall, item.color)

    def _tint(self, start: int, inside: npt.NDArray[np.bool_], color: Color) -> None:
        """Blends a colour into the pixels inside, from a row on.

        Pixels with the background colour get the same new colour; the others are blended one by one.
        """
        share, first = share_of(color), start * self.width
        pixels, within = self.flat[first : first + inside.size], inside.reshape(-1)
        bare = pixels == self.background
        rest = np.flatnonzero(within > bare)
        bare &= within
        np.copyto(pixels, blend(self.background, color, share), where=bare)
        pixels[rest] = blend(pixels.take(rest), color, share)

    # Lines

    def stroke(self, item: Stroke) -> None:
        scale = self.scale
        dash = (item.dash[0] * scale, item.dash[1] * scale) if item.dash else None
        for x, y in _runs(item.x * scale, item.y * scale):
            if len(x) == 2 and y[0] == y[1]:
                self._level(float(x[0]), float(x[1]), float(y[0]), item)
            elif len(x) > 1 and x[-1] - x[0] < 1.0:
                middle, reach = float(x.mean()) / scale, item.width / 2
                self.boxes(box(middle - reach, y.min() / scale, middle + reach, y.max() / scale, item.color))
            elif len(x) > 1:
                inside = PixelArea(self.left, self.top, self.right, self.bottom)
                self._cover(line(x, y, item.width * scale, inside, dash), item.color)

    def _cover(self, covered: Covered, color: Color) -> None:
        at = covered.row * self.width + covered.column
        self.flat[at] = blend(self.flat.take(at), color, shares(covered.part, color))

    def _level(self, first: float, last: float, y: float, item: Stroke) -> None:
        """Draws a horizontal line on whole pixels, which look sharper than blended edges."""
        scale = self.scale
        x0, x1 = max(self.left, round(first)), min(self.right, round(last))
        y0 = round(y - item.width * scale / 2)
        y1 = min(self.bottom, y0 + max(1, round(item.width * scale)))
        y0 = max(self.top, y0)
        if x1 <= x0 or y1 <= y0:
            return
        share = share_of(item.color)
        if not item.dash:
            patch = self.pixels[y0:y1, x0:x1]
            patch[...] = blend(patch, item.color, share)
            return
        columns = _dashes(x0, x1, first, item.dash[0] * scale, item.dash[1] * scale)
        for row in range(y0, y1):
            at = columns + row * self.width
            self.flat[at] = blend(self.flat.take(at), item.color, share)

    # Dots and text

    def dot(self, item: Dot) -> None:
        radius = item.radius * self.scale
        stamp = _disc(round(radius * 8) / 8)
        size = stamp.shape[0]
        x, y = round(item.x * self.scale - size / 2), round(item.y * self.scale - size / 2)
        found = self._patch(stamp, x, y)
        if found:
            patch, part = found
            patch[...] = blend(patch, item.color, shares_by_coverage(item.color).take(stamp[part]))

    def label(self, item: Label) -> None:
        size, color = item.size * self.scale, item.color
        shape, dx, dy = fonts.mask(item.text, size, item.bold)
        x = item.x * self.scale
        if item.anchor != "left":
            x -= fonts.width(item.text, size, item.bold) * (0.5 if item.anchor == "center" else 1.0)
        baseline = round(item.y * self.scale + size * fonts.CAP_HEIGHT / 2)
        found = self._patch(shape, round(x) + dx, baseline + dy)
        if not found:
            return
        patch, part = found
        under = patch[0, 0]
        if (patch == under).all():
            patch[...] = _text_on(int(under), color, item.text, size, item.bold)[part]
        else:
            patch[...] = blend(patch, color, shares_by_coverage(color).take(shape[part]))

    def _patch(self, shape: fonts.Mask, x: int, y: int) -> tuple[Pixels, tuple[slice, slice]] | None:
        """Returns the pixels under a shape, and the part of the shape that is not clipped."""
        x0, y0 = max(x, self.left), max(y, self.top)
        x1, y1 = min(x + shape.shape[1], self.right), min(y + shape.shape[0], self.bottom)
        if x1 <= x0 or y1 <= y0:
            return None
        return self.pixels[y0:y1, x0:x1], (slice(y0 - y, y1 - y), slice(x0 - x, x1 - x))


def _runs(x: Values, *series: Values) -> list[tuple[Values, ...]]:
    """Returns the runs of points in which no series is NaN."""
    missing = np.isnan(series[0])
    for values in series[1:]:
        missing |= np.isnan(values)
    if not missing.any():
        return [(x, *series)]
    good = ~missing
    edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False]))))
    return [(x[a:b], *(values[a:b] for values in series)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@lru_cache(maxsize=64)
def _dashes(start: int, end: int, first: float, on: float, off: float) -> Index:
    """Returns the columns from `start` to `end` that the dashes of a line cover that begins at `first`."""
    columns = np.arange(start, end)
    return columns[(columns - first) % (on + off) < on]


@lru_cache(maxsize=512)
def _text_on(under: int, color: Color, text: str, size: float, bold: bool) -> Pixels:
    """Returns the pixels of a text on one colour. Cached, because most labels of successive charts are the same."""
    return ramp(under, color)[fonts.mask(text, size, bold)[0]]


@lru_cache(maxsize=64)
def _disc(radius: float) -> npt.NDArray[np.uint8]:
    """Returns the coverage of each pixel by a circle, sampled at 8 × 8 points."""
    size = int(np.ceil(radius * 2)) + 2
    points = (np.arange(size * 8) + 0.5) / 8 - size / 2
    inside = points[:, None] ** 2 + points[None, :] ** 2 <= radius * radius
    covered: npt.NDArray[np.uint8] = np.rint(inside.reshape(size, 8, size, 8).mean(axis=(1, 3)) * 255).astype(np.uint8)
    return covered


class PixelArea(NamedTuple):
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


def line(x: Values, y: Values, width: float, inside: PixelArea, dash: tuple[float, float] | None = None) -> Covered:
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
