"""A scene as a file, on a canvas that is used again: fresh memory costs a fifth of the whole time."""

from __future__ import annotations

from openbell.charts.encode import Pixels, jpeg, png
from openbell.charts.raster import render
from openbell.charts.scene import Scene

_LARGEST = 1_500_000
_spare: list[Pixels] = []
"""The canvas of the last picture, if it was not too large to keep. Whoever draws takes it away."""


def picture(scene: Scene, scale: float = 1.0, form: str = "png") -> bytes:
    """A scene as `png`, `jpeg` or `svg`."""
    if form == "svg":
        from openbell.charts.svg import svg

        return svg(scene, scale).encode()
    pixels = render(scene, scale, into=_taken((round(scene.height * scale), round(scene.width * scale))))
    data = (jpeg if form == "jpeg" else png)(pixels)
    if pixels.size <= _LARGEST:
        _spare[:] = [pixels]
    return data


def _taken(shape: tuple[int, int]) -> Pixels | None:
    """The spare canvas if it fits; one that does not is let go before a larger one is made."""
    try:
        spare = _spare.pop()
    except IndexError:  # another thread draws on it
        return None
    return spare if spare.shape == shape else None
