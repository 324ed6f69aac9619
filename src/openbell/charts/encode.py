"""Encodes pixels as PNG or JPEG. The PNG encoder is written here: 256 colours and fast compression beat the usual ones."""

from __future__ import annotations

import io
import struct
import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint32]
"""Packed colours, red in the lowest byte."""
_LEVEL = 2
_STRIP = 1 << 18
_BINS = 1 << 15
_KEPT = 1 << 19
"""The number of runs that are kept from the first pass for the second; others are found again, which needs less memory."""
_RUN_LENGTHS = (1, 2, 8, 64, 512)
_COARSE = 0b11110_11110_11110


def png(pixels: Pixels) -> bytes:
    """Returns a PNG with at most 256 colours. Of colours that share a palette entry, the one with the longest runs is kept.

    Works on runs of equal pixels, because a chart has ten times fewer runs than pixels, and strip by strip, so that a large
    picture needs little more memory than its pixels.
    """
    height, width = pixels.shape
    tall = max(1, _STRIP // width)
    counts, strips = np.zeros(_BINS), list[_Strip | None]()
    room = _KEPT
    for top in range(0, height, tall):
        strip = _strip(pixels[top : top + tall].reshape(-1))
        counts += np.bincount(strip.bins, weights=strip.lengths, minlength=_BINS)
        room -= len(strip.colors)
        strips.append(strip if room >= 0 else None)
    table, size = _entries(counts)
    packer = zlib.compressobj(_LEVEL)
    body, colors, ranks = [], np.zeros(256, dtype="<u4"), np.zeros(256, dtype=np.uint8)
    for number, kept in enumerate(strips):
        strip = kept or _strip(pixels[number * tall : (number + 1) * tall].reshape(-1))
        index = table[strip.bins]
        _fill_palette(colors, ranks, index, strip)
        rows = np.zeros((-(-int(strip.lengths.sum()) // width), width + 1), dtype=np.uint8)
        rows[:, 1:] = np.repeat(index, strip.lengths).reshape(-1, width)
        body.append(packer.compress(rows.data))
    body.append(packer.flush())
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    palette = colors.view(np.uint8).reshape(-1, 4)[:size, :3].tobytes()
    chunks = (_chunk(b"IHDR", header), _chunk(b"PLTE", palette), _chunk(b"IDAT", b"".join(body)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


class _Strip(NamedTuple):
    """Runs of equal pixels: their colours, their lengths, and their colours reduced to 5 bits per channel (bins)."""

    colors: Pixels
    lengths: npt.NDArray[np.int32]
    bins: npt.NDArray[np.uint16]


def _strip(flat: Pixels) -> _Strip:
    starts = np.concatenate(([0], np.flatnonzero(flat[1:] != flat[:-1]) + 1, [len(flat)]))
    colors = flat[starts[:-1]]
    bins = (colors & 0xF8) << 7 | (colors & 0xF800) >> 6 | (colors & 0xF80000) >> 19
    return _Strip(colors, np.diff(starts).astype(np.int32), bins.astype(np.uint16))


def _entries(counts: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.uint8], int]:
    """Returns the palette entry of each bin and the number of entries. Rare bins use the entry of the closest common bin.

    `counts` are the pixels of each bin.
    """
    used = np.flatnonzero(counts)
    order = used[np.argsort(-counts[used], kind="stable")]
    kept, rest = order[:256], order[256:]
    table = np.zeros(_BINS, dtype=np.uint8)
    table[kept] = np.arange(len(kept), dtype=np.uint8)
    if len(rest):
        # Neighbouring bins share one entry. A matrix product would leave its worker threads spinning.
        cells, cell = np.unique(rest & _COARSE, return_inverse=True)
        one, two = _channels(cells), _channels(kept)
        distance = np.zeros((len(cells), len(kept)), dtype=np.int16)
        for channel in range(3):
            apart = one[:, channel, None] - two[None, :, channel]
            distance += apart * apart
        table[rest] = distance.argmin(axis=1).astype(np.uint8)[cell]
    return table, len(kept)


def _fill_palette(colors: Pixels, ranks: npt.NDArray[np.uint8], index: npt.NDArray[np.uint8], strip: _Strip) -> None:
    """Writes a strip's colours into the palette. Colours of longer runs replace those of shorter ones."""
    # The longest runs first: few of the many short runs have an entry that is still free.
    filled = np.zeros(256, dtype=bool)
    for rank in reversed(range(len(_RUN_LENGTHS))):
        wanted = (~filled & (ranks <= rank)).take(index)
        wanted &= strip.lengths >= _RUN_LENGTHS[rank]
        chosen = np.flatnonzero(wanted)
        entry = index.take(chosen)
        colors[entry] = strip.colors.take(chosen)
        now = np.zeros(256, dtype=bool)
        now[entry] = True
        ranks[now] = rank
        filled |= now


def _channels(bins: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
    return np.stack((bins >> 10, bins >> 5 & 31, bins & 31), axis=1).astype(np.int16)


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
