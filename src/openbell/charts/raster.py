"""Draws a scene into pixels: anti-aliased, deterministic, numpy only.

Charts are rectangles, lines with one y for each x, bands between two such lines, dots and text. Lines are sampled at up to
four positions in every pixel column; how much of each pixel they cover is added up and blended once.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from openbell.charts import fonts
from openbell.charts.scene import Band, Box, Boxes, Color, Dot, Label, Scene, Stroke, box
from openbell.market.bars import Values

Pixels = npt.NDArray[np.uint32]
_RED_BLUE, _GREEN, _HALF_RED_BLUE = np.uint32(0xFF00FF), np.uint32(0x00FF00), np.uint32(0x800080)


def render(scene: Scene, scale: float = 1.0, text: bool = True) -> Pixels:
    """The scene as packed pixels. Without `text`, for comparisons that fonts must not disturb."""
    canvas = _Canvas(round(scene.width * scale), round(scene.height * scale), scene.background, scale)
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
                case Label():
                    if text:
                        canvas.label(item)
    return canvas.pixels


def _packed(color: Color) -> int:
    return color[0] | color[1] << 8 | color[2] << 16


class _Canvas:
    """Pixels as packed 32-bit values, red in the lowest byte."""

    def __init__(self, width: int, height: int, background: Color, scale: float) -> None:
        self.width, self.height, self.scale = width, height, scale
        self.background = np.uint32(_packed(background))
        self.pixels: Pixels = np.full((height, width), self.background, dtype=np.uint32)
        self.flat = self.pixels.reshape(-1)
        self.clip(Box(0, 0, width, height))

    def clip(self, box_: Box) -> None:
        """Draw only inside this box from now on."""
        self.left = max(0, round(box_.left * self.scale))
        self.top = max(0, round(box_.top * self.scale))
        self.right = min(self.width, round(box_.right * self.scale))
        self.bottom = min(self.height, round(box_.bottom * self.scale))

    # Rectangles

    def boxes(self, item: Boxes) -> None:
        scale, alpha = self.scale, item.color[3]
        edges = np.rint(np.stack((item.left, item.top, item.right, item.bottom), axis=1) * scale).astype(np.int64)
        value, share = np.uint32(_packed(item.color)), np.uint32(round(alpha * 256 / 255))
        left, top, right, bottom, pixels = self.left, self.top, self.right, self.bottom, self.pixels
        for x0, y0, x1, y1 in edges.tolist():
            if (x0 := max(x0, left)) < (x1 := min(x1, right)) and (y0 := max(y0, top)) < (y1 := min(y1, bottom)):
                if alpha == 255:
                    pixels[y0:y1, x0:x1] = value
                else:
                    pixels[y0:y1, x0:x1] = _blend(pixels[y0:y1, x0:x1], item.color, share)

    # Bands

    def band(self, item: Band) -> None:
        for x, upper, lower in _runs(item.x * self.scale, item.upper * self.scale, item.lower * self.scale):
            first, last = max(self.left, int(np.ceil(x[0] - 0.5))), min(self.right, int(np.floor(x[-1] + 0.5)))
            if last <= first:
                continue
            centres = np.arange(first, last) + 0.5
            one, two = np.interp(centres, x, upper), np.interp(centres, x, lower)
            top = np.clip(np.rint(np.minimum(one, two)), self.top, self.bottom).astype(np.int64)
            bottom = np.clip(np.rint(np.maximum(one, two)), self.top, self.bottom).astype(np.int64)
            low, high = int(top.min()), int(bottom.max())
            if high <= low:
                continue
            rows = np.arange(low, high)[:, None]
            inside = (rows >= top) & (rows < bottom)
            self._tint(self.pixels[low:high, first:last], inside, item.color)

    def _tint(self, patch: Pixels, inside: npt.NDArray[np.bool_], color: Color) -> None:
        """Mix a see-through colour in: at once where only the background is, pixel by pixel elsewhere."""
        share = np.uint32(round(color[3] * 256 / 255))
        bare = patch == self.background
        rest = np.flatnonzero(inside & ~bare)
        np.copyto(patch, _blend(self.background, color, share), where=inside & bare)
        rows, columns = np.divmod(rest, patch.shape[1])
        patch[rows, columns] = _blend(patch[rows, columns], color, share)

    # Lines

    def stroke(self, item: Stroke) -> None:
        width = item.width * self.scale
        for x, y in _runs(item.x * self.scale, item.y * self.scale):
            if len(x) == 2 and y[0] == y[1]:
                self._level(float(x[0]), float(x[1]), float(y[0]), item)
            elif len(x) > 1:
                self._run(x, y, width, item)

    def _level(self, first: float, last: float, y: float, item: Stroke) -> None:
        """A level line, dashed or not: on whole pixels, which is crisper than blended edges."""
        scale = self.scale
        x0, x1 = max(self.left, round(first)), min(self.right, round(last))
        y0 = round(y - item.width * scale / 2)
        y1 = min(self.bottom, y0 + max(1, round(item.width * scale)))
        y0 = max(self.top, y0)
        if x1 <= x0 or y1 <= y0:
            return
        columns = np.arange(x0, x1)
        if item.dash:
            on, off = (part * scale for part in item.dash)
            columns = columns[(columns - first) % (on + off) < on]
        share = np.uint32(round(item.color[3] * 256 / 255))
        patch = self.pixels[y0:y1]
        patch[:, columns] = _blend(patch[:, columns], item.color, share)

    def _run(self, x: Values, y: Values, width: float, item: Stroke) -> None:
        if x[-1] - x[0] < 1.0:
            middle, reach = float(x.mean()) / self.scale, item.width / 2
            edges = float(y.min()) / self.scale, float(y.max()) / self.scale
            self.boxes(box(middle - reach, edges[0], middle + reach, edges[1], item.color))
            return
        samples = _samples(x, y)
        first = max(self.left * samples, int(np.floor(x[0] * samples)))
        last = min(self.right * samples, int(np.ceil(x[-1] * samples)))
        if last <= first:
            return
        edges_at = np.clip(np.arange(first, last + 1) / samples, x[0], x[-1])
        level = np.interp(edges_at, x, y)
        step = np.diff(level)
        slope = step * samples
        # Seen from above, a steep line is thicker, but never reaches beyond the ends of its piece.
        half = width / 2 * np.sqrt(1 + slope * slope)
        centre = level[:-1] + step / 2
        piece = np.clip(np.searchsorted(x, edges_at[:-1], side="right") - 1, 0, len(x) - 2)
        top = np.maximum(centre - half, np.minimum(y[piece], y[piece + 1]) - width / 2)
        bottom = np.minimum(centre + half, np.maximum(y[piece], y[piece + 1]) + width / 2)
        column = np.arange(first, last) // samples
        if item.dash:
            on, off = (part * self.scale for part in item.dash)
            keep = (np.arange(first, last) / samples - x[0]) % (on + off) < on
            top, bottom, column = top[keep], bottom[keep], column[keep]
        self._cover(column, top, bottom, samples, item.color)

    def _cover(self, column: npt.NDArray[np.int64], top: Values, bottom: Values, samples: int, color: Color) -> None:
        """Blend vertical spans, some to a pixel column, each by the part of a pixel that it covers."""
        top = np.clip(top, self.top, self.bottom)
        bottom = np.clip(bottom, self.top, self.bottom)
        first = np.floor(top).astype(np.int64)
        count = np.maximum(np.ceil(bottom).astype(np.int64) - first, 0)
        total = int(count.sum())
        if not total:
            return
        span = np.repeat(np.arange(len(count)), count)
        row = np.arange(total) - np.repeat(np.cumsum(count) - count, count) + first[span]
        part = np.minimum(row + 1, bottom[span]) - np.maximum(row, top[span])
        low, left = int(row.min()), int(column.min())
        wide = int(column.max()) - left + 1
        key = (row - low) * wide + (column[span] - left)
        cover = np.bincount(key, weights=part)
        touched = np.flatnonzero(cover > 0)
        share = _shares(np.minimum(cover[touched] / samples, 1.0), color)
        at = (touched // wide + low) * self.width + touched % wide + left
        self.flat[at] = _blend(self.flat[at], color, share)

    # Dots and text

    def dot(self, item: Dot) -> None:
        radius = item.radius * self.scale
        stamp = _disc(round(radius * 8) / 8)
        size = stamp.shape[0]
        x, y = round(item.x * self.scale - size / 2), round(item.y * self.scale - size / 2)
        self._stamp(stamp, x, y, item.color)

    def label(self, item: Label) -> None:
        size = item.size * self.scale
        shape, dx, dy = fonts.mask(item.text, size, item.bold)
        x = item.x * self.scale
        if item.anchor != "left":
            x -= fonts.width(item.text, size, item.bold) * (0.5 if item.anchor == "center" else 1.0)
        baseline = round(item.y * self.scale + size * fonts.CAP_HEIGHT / 2)
        self._stamp(shape, round(x) + dx, baseline + dy, item.color)

    def _stamp(self, shape: npt.NDArray[np.uint8], x: int, y: int, color: Color) -> None:
        x0, y0 = max(x, self.left), max(y, self.top)
        x1, y1 = min(x + shape.shape[1], self.right), min(y + shape.shape[0], self.bottom)
        if x1 <= x0 or y1 <= y0:
            return
        part = shape[y0 - y : y1 - y, x0 - x : x1 - x]
        share = _shares(part / 255, color)
        patch = self.pixels[y0:y1, x0:x1]
        self.pixels[y0:y1, x0:x1] = _blend(patch, color, share)


def _samples(x: Values, y: Values) -> int:
    """How often a pixel column is sampled: once is exact for a flat line, a steep one needs more to have soft edges."""
    slope = float(np.quantile(np.abs(np.diff(y)) / np.maximum(np.diff(x), 1e-9), 0.9))
    return 1 if slope <= 0.6 else 2 if slope <= 1.5 else 4


def _runs(x: Values, *series: Values) -> list[tuple[Values, ...]]:
    """The stretches in which every series has values."""
    good = ~np.isnan(series[0])
    for values in series[1:]:
        good &= ~np.isnan(values)
    if good.all():
        return [(x, *series)]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False]))))
    return [(x[a:b], *(values[a:b] for values in series)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _blend(pixels: Pixels | np.uint32, color: Color, share: npt.NDArray[np.uint32] | np.uint32) -> Pixels:
    """Mix a colour into pixels by shares of 256, rounded; red and blue go through one multiplication together."""
    rest = np.uint32(256) - share
    red_blue = np.uint32(color[0] | color[2] << 16)
    green = np.uint32(color[1] << 8)
    one = ((pixels & _RED_BLUE) * rest + red_blue * share + _HALF_RED_BLUE) >> np.uint32(8)
    two = ((pixels & _GREEN) >> np.uint32(8)) * rest + (green >> np.uint32(8)) * share + np.uint32(128)
    mixed: Pixels = (one & _RED_BLUE) | (two & _GREEN)
    return mixed


def _shares(part: Values, color: Color) -> npt.NDArray[np.uint32]:
    """Parts of a pixel, times the colour's own share, in 256ths."""
    return np.rint(part * (color[3] * 256 / 255)).astype(np.uint32)


@lru_cache(maxsize=64)
def _disc(radius: float) -> npt.NDArray[np.uint8]:
    """How much of each pixel a circle covers, by sampling 8 × 8 points."""
    size = int(np.ceil(radius * 2)) + 2
    points = (np.arange(size * 8) + 0.5) / 8 - size / 2
    inside = points[:, None] ** 2 + points[None, :] ** 2 <= radius * radius
    covered: npt.NDArray[np.uint8] = np.rint(inside.reshape(size, 8, size, 8).mean(axis=(1, 3)) * 255).astype(np.uint8)
    return covered
