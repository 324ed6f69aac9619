"""Renders a scene into the bytes of a file. Reuses the canvas, because new memory takes a fifth of the rendering time."""

from __future__ import annotations

import numpy as np

from openbell.charts.encode import Pixels, jpeg, png
from openbell.charts.raster import render
from openbell.charts.scene import Scene

_MAX_KEPT = 1_500_000
_LARGEST = 1 << 22
"""Bytes of the largest array that a picture of usual size needs beside its canvas, with some room."""
_spare: list[Pixels] = []
"""The canvas of the last picture, if it has at most `_MAX_KEPT` pixels. A thread that draws removes it from the list."""


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
