"""Pixels to files. The PNG is written here: a palette of 256 colours and fast compression beat the usual writers."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint32]
"""Packed colours, red in the lowest byte."""
_LEVEL = 2


def png(pixels: Pixels) -> bytes:
    """A PNG with at most 256 colours; colours that must share an entry are averaged.

    Works on runs of equal pixels: a chart has ten times fewer of them than pixels.
    """
    height, width = pixels.shape
    flat = pixels.reshape(-1)
    starts = np.concatenate(([0], np.flatnonzero(flat[1:] != flat[:-1]) + 1))
    lengths = np.diff(np.append(starts, len(flat)))
    index, palette = _palette(flat[starts], lengths)
    rows = np.empty((height, width + 1), dtype=np.uint8)
    rows[:, 0] = 0
    rows[:, 1:] = np.repeat(index, lengths).reshape(height, width)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    body = zlib.compress(rows.data, _LEVEL)
    chunks = (_chunk(b"IHDR", header), _chunk(b"PLTE", palette), _chunk(b"IDAT", body), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _palette(colors: Pixels, weights: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint8], bytes]:
    """For each colour its entry, and the entries: bins of 5 bits a channel, rare ones joined to the nearest common one."""
    red, green, blue = (colors >> np.uint32(shift) & np.uint32(255) for shift in (0, 8, 16))
    bins = ((red >> 3) << 10 | (green >> 3) << 5 | (blue >> 3)).astype(np.int64)
    counts = np.bincount(bins, weights=weights, minlength=32768)
    used = np.flatnonzero(counts)
    order = used[np.argsort(-counts[used], kind="stable")]
    kept, rest = order[:256], order[256:]
    table = np.zeros(32768, dtype=np.uint8)
    table[kept] = np.arange(len(kept), dtype=np.uint8)
    if len(rest):
        # Squared distances in whole numbers; no matrix product, whose threads would go on spinning afterwards.
        one, two = _channels(rest), _channels(kept)
        distance = np.zeros((len(rest), len(kept)), dtype=np.int16)
        for channel in range(3):
            apart = one[:, channel, None] - two[None, :, channel]
            distance += apart * apart
        table[rest] = distance.argmin(axis=1).astype(np.uint8)
    index: npt.NDArray[np.uint8] = table[bins]
    total = np.maximum(np.bincount(index, weights=weights, minlength=256), 1)
    means = [np.rint(np.bincount(index, weights=part * weights, minlength=256) / total) for part in (red, green, blue)]
    return index, np.stack(means, axis=1).astype(np.uint8)[: len(kept)].tobytes()


def _channels(bins: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
    return np.stack((bins >> 10, bins >> 5 & 31, bins & 31), axis=1).astype(np.int16)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def rgb(pixels: Pixels) -> npt.NDArray[np.uint8]:
    """Packed pixels as rows × columns × RGB."""
    return pixels.view(np.uint8).reshape(*pixels.shape, 4)[:, :, :3]


def jpeg(pixels: Pixels, quality: int = 90) -> bytes:
    """A JPEG."""
    from PIL import Image

    sink = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(rgb(pixels))).save(sink, "JPEG", quality=quality)
    return sink.getvalue()
