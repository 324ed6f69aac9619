"""Names written at lines and levels, such as VWAP, R1 or POC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from openbell.charts import fonts
from openbell.charts.panels import Panel, Picture
from openbell.charts.scene import Anchor, Color, Label, Layer, box
from openbell.charts.themes import faded

SIZE = 10.0
_HALF = 6.0
_MARGIN = 2.0
_LEAST_HEIGHT = 100.0
"""Lower panels have no names: there the legend takes most of the room."""


class Place(NamedTuple):
    """A panel of a picture."""

    picture: Picture
    panel: Panel


def width(text: str) -> float:
    """Returns the width of a name."""
    return fonts.width(text, SIZE, True) + 2 * _MARGIN


def write(layer: Layer, place: Place, x: float, y: float, text: str, color: Color, anchor: Anchor = "left") -> None:
    """Writes a name at a line, on a box of the background's colour that covers most of what is behind it.

    It is moved down if it would overlap a name that the layer has already. It is left out if it would touch the legend or
    leave the panel.
    """
    picture, panel = place
    if panel.box.height < _LEAST_HEIGHT:
        return
    wide = width(text)
    left = max(x - wide if anchor == "right" else x - wide / 2 if anchor == "center" else x, picture.plot.left)
    for other in sorted(_names_between(layer, left, left + wide)):
        if abs(other - y) < 2 * _HALF:
            y = other + 2 * _HALF
    if panel.corner.covers(left, y - _HALF) or not panel.box.top + _HALF <= y <= panel.box.bottom - _HALF:
        return
    layer.items.append(box(left, y - _HALF, left + wide, y + _HALF, faded(picture.theme.background, 190)))
    layer.items.append(Label(left + _MARGIN, y, text, SIZE, color, "left", True))


def _names_between(layer: Layer, left: float, right: float) -> list[float]:
    """Returns the y of the names that are written between two x."""
    return [
        item.y
        for item in layer.items
        if isinstance(item, Label) and item.x < right and item.x + width(item.text) > left
    ]


def write_column(layer: Layer, place: Place, names: Sequence[tuple[float, str, Color]]) -> None:
    """Writes names at the right edge, each above its y."""
    for y, text, color in sorted(names):
        write(layer, place, place.picture.plot.right - 3, y - _HALF - 1, text, color, "right")
