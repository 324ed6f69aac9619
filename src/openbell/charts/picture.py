"""Renders a scene into the bytes of a file: PNG, JPEG or SVG.

Reuses the canvas, because new memory takes a fifth of the rendering time. The PNG encoder is written here: 256 colours and
fast compression beat the usual ones.
"""

from __future__ import annotations

import io
import struct
import zlib
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.charts.raster import render
from openbell.charts.scene import Scene

_MAX_KEPT = 1_500_000
_LARGEST = 1 << 22
"""Bytes of the largest array that a picture of usual size needs beside its canvas, with some room."""
_spare: list[Pixels] = []
"""The canvas of the last picture, if it has at most `_MAX_KEPT` pixels. A thread that draws removes it from the list."""
Pixels = npt.NDArray[np.uint32]
"""Packed colours, red in the lowest byte."""
Index = npt.NDArray[np.int64]
_UP = 2
_STRIP = 1 << 20
_BINS = 1 << 15
_KEPT = 1 << 19
"""The number of runs that are kept from the first pass for the second; others are found again, which needs less memory."""
_RUN_LENGTHS = (1, 2, 8, 64, 512)
_COARSE = 0b11110_11110_11110
_LEVELS = np.arange(32, dtype=np.int16)
"""The values of a channel with 5 bits."""


def picture(scene: Scene, scale: float = 1.0, form: str = "png") -> bytes:
    """Returns the scene as a file of the format `png`, `jpeg` or `svg`."""
    if form == "svg":
        from openbell.charts.svg import svg

        return svg(scene, scale).encode()
    pixels = render(scene, scale, into=_spare_canvas((round(scene.height * scale), round(scene.width * scale))))
    data = (jpeg if form == "jpeg" else png)(pixels)
    if pixels.size <= _MAX_KEPT:
        _spare[:] = [pixels]
    return data


def _spare_canvas(shape: tuple[int, int]) -> Pixels | None:
    """Returns the spare canvas if it has this shape. Otherwise it is freed before a new one is allocated."""
    try:
        spare = _spare.pop()
    except IndexError:  # none yet, or another thread uses it
        return None
    return spare if spare.shape == shape else None


def _keep_freed_memory() -> None:
    """Allocates and frees one large array. From then on glibc reuses freed arrays up to this size.

    By default it returns large arrays to the system, and each chart has several hundred page faults.
    """
    np.empty(_LARGEST, dtype=np.uint8)


_keep_freed_memory()


def png(pixels: Pixels) -> bytes:
    """Returns a PNG with at most 256 colours. Of colours that share a palette entry, the one with the longest runs is kept.

    Works on runs of equal pixels, because a chart has ten times fewer runs than pixels, and strip by strip, so that a large
    picture needs little more memory than its pixels.
    """
    height, width = pixels.shape
    tall = max(1, _STRIP // width)
    counts, kept, room = np.zeros(_BINS), list[_Runs](), _KEPT
    for top in range(0, height, tall):
        runs = _runs(pixels[top : top + tall])
        counts += np.bincount(runs.bins, weights=runs.lengths, minlength=_BINS)
        room -= len(runs.bins)
        if room >= 0:
            kept.append(runs)
    again = (_runs(pixels[top : top + tall]) for top in range(len(kept) * tall, height, tall))
    table, size = _entries(counts)
    # Most bytes are zeros after the filter. Zlib looks for runs of equal bytes only, which is faster and finds nearly all.
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    colors, ranks = np.zeros(256, dtype="<u4"), np.zeros(256, dtype=np.uint8)
    body, above = [], np.zeros(width, dtype=np.uint8)
    for runs in chain(kept, again):
        entry = table.take(runs.bins)
        _fill_palette(colors, ranks, entry, runs)
        rows = np.repeat(entry.astype(np.uint8), runs.lengths).reshape(-1, width)
        body.append(packer.compress(_filtered(rows, above).data))
        above = rows[-1]
    body.append(packer.flush())
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    entries = colors.view(np.uint8).reshape(-1, 4)[:size, :3].tobytes()
    chunks = (_chunk(b"IHDR", header), _chunk(b"PLTE", entries), _chunk(b"IDAT", b"".join(body)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _filtered(rows: npt.NDArray[np.uint8], above: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Returns rows as PNG's filter `Up` writes them: the number of the filter, then differences from the row above."""
    filtered = np.empty((len(rows), rows.shape[1] + 1), dtype=np.uint8)
    filtered[:, 0] = _UP
    np.subtract(rows[0], above, out=filtered[0, 1:])
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    return filtered


class _Runs(NamedTuple):
    """Runs of equal pixels: their colours, their lengths, and their colours reduced to 5 bits per channel (bins)."""

    colors: Pixels
    lengths: Index
    bins: Index


def _runs(pixels: Pixels) -> _Runs:
    flat = pixels.reshape(-1)
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    starts = np.zeros(len(changes) + 2, dtype=np.int64)
    np.add(changes, 1, out=starts[1:-1])
    starts[-1] = len(flat)
    colors = flat.take(starts[:-1])
    bins = (colors & 0xF8) << 7 | (colors & 0xF800) >> 6 | (colors & 0xF80000) >> 19
    return _Runs(colors, starts[1:] - starts[:-1], bins.astype(np.int64))


def _entries(counts: npt.NDArray[np.float64]) -> tuple[Index, int]:
    """Returns the palette entry of each bin and the number of entries. Rare bins use the entry of the closest common bin.

    `counts` are the pixels of each bin.
    """
    used = np.flatnonzero(counts > 0)
    order = used[np.argsort(-counts[used], kind="stable")]
    kept, rest = order[:256], order[256:]
    table = np.zeros(_BINS, dtype=np.int64)
    table[kept] = np.arange(len(kept))
    if len(rest):
        # Neighbouring bins share one entry. A matrix product would leave its worker threads spinning.
        cells, cell = np.unique(rest & _COARSE, return_inverse=True)
        distance = np.zeros((len(cells), len(kept)), dtype=np.int16)
        for shift in (10, 5, 0):
            apart = _LEVELS[:, None] - (kept >> shift & 31).astype(np.int16)
            distance += (apart * apart).take(cells >> shift & 31, axis=0)
        table[rest] = distance.argmin(axis=1)[cell]
    return table, len(kept)


def _fill_palette(colors: Pixels, ranks: npt.NDArray[np.uint8], entry: Index, runs: _Runs) -> None:
    """Writes the colours of runs into the palette. Colours of longer runs replace those of shorter ones.

    `ranks` are the positions in `_RUN_LENGTHS` of the runs that the colours are from.
    """
    long_enough = [np.flatnonzero(runs.lengths >= _RUN_LENGTHS[1])]
    for least in _RUN_LENGTHS[2:]:
        long_enough.append(long_enough[-1].compress(runs.lengths.take(long_enough[-1]) >= least))
    # The longest runs first: few of the many short runs have an entry that is still free.
    free = np.ones(256, dtype=bool)
    for rank in reversed(range(len(_RUN_LENGTHS))):
        free &= ranks <= rank
        if rank:
            chosen = long_enough[rank - 1]
            chosen = chosen.compress(free.take(entry.take(chosen)))
        else:
            chosen = np.flatnonzero(free.take(entry))
        filled = entry.take(chosen)
        colors[filled] = runs.colors.take(chosen)
        ranks[filled] = rank
        free[filled] = False


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def rgb(pixels: Pixels) -> npt.NDArray[np.uint8]:
    """Returns packed pixels as an array of rows × columns × RGB."""
    return pixels.view(np.uint8).reshape(*pixels.shape, 4)[:, :, :3]


def jpeg(pixels: Pixels, quality: int = 90) -> bytes:
    """Returns a JPEG."""
    from PIL import Image

    sink = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(rgb(pixels))).save(sink, "JPEG", quality=quality)
    return sink.getvalue()
