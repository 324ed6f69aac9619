"""Lines: horizontal, vertical, between two points, and the line of an order."""

from __future__ import annotations

import numpy as np

from openbell.charts.annotations.annotation import Annotation
from openbell.charts.annotations.ink import LINE, TEXT, Ink
from openbell.charts.annotations.place import Place, arrow_head, font_of, label, lines_of, segment, vertical
from openbell.charts.config.model import ConfigDrawing
from openbell.charts.scene import Item, Stroke
from openbell.charts.themes import text_on

_EDGE = 8.0
"""Pixels between a label and the edge of the panel."""


def _level(place: Place, price: float, ink: Ink, dash: str) -> list[Item]:
    y = place.y(price)
    color = ink.color("lineColor", place.picture.theme.accent)
    if not place.box.top <= y <= place.box.bottom:
        return []
    edges = np.array([place.box.left, place.box.right])
    return [Stroke(edges, np.array([y, y]), color, ink.number("lineWidth", 1.5), ink.dash(dash))]


def _horizontal(drawing: ConfigDrawing, ink: Ink, place: Place) -> list[Item]:
    price = drawing.prices["price"]
    items = _level(place, price, ink, "solid")
    if items and ink.shows("showLabel"):
        font = font_of(ink, ink.color("lineColor", place.picture.theme.accent))
        lines = lines_of(drawing.text)
        y = place.y(price) - font.height(lines) / 2 - 3
        items += label(place, place.box.right - _EDGE, y, lines, font, "right")
    return items


def _order(drawing: ConfigDrawing, ink: Ink, place: Place) -> list[Item]:
    price = drawing.prices["price"]
    items = _level(place, price, ink, "dashed")
    if items and ink.shows("showLabel"):
        theme = place.picture.theme
        name = " ".join(lines_of(drawing.text)) or "Order"
        ground = ink.color("backgroundColor", ink.color("lineColor", theme.accent))
        font = font_of(ink, text_on(ground))
        words = [f"{name}  {place.text(price)}"]
        items += label(place, place.box.right - _EDGE - 4, place.y(price), words, font, "right", ground)
    return items


def _vertical(drawing: ConfigDrawing, ink: Ink, place: Place) -> list[Item]:
    x = place.x(drawing.times["datetime"])
    area, color = place.box, ink.color("lineColor", place.picture.theme.accent)
    if not area.left <= x <= area.right:
        return []
    items = vertical(x, area.top, area.bottom, color, ink.number("lineWidth", 1.5), ink.dash())
    if ink.shows("showLabel") and place.panel.indicator is None:
        font = font_of(ink, color)
        lines = lines_of(drawing.text)
        right = x + 6 + font.width(lines) < area.right
        y = area.bottom - font.height(lines) / 2 - 6
        items += label(place, x + 8 if right else x - 8, y, lines, font, "left" if right else "right")
    return items


def _ends(drawing: ConfigDrawing, place: Place) -> tuple[tuple[float, float], tuple[float, float]]:
    return (
        (place.x(drawing.times["startDatetime"]), place.y(drawing.prices["startPrice"])),
        (place.x(drawing.times["endDatetime"]), place.y(drawing.prices["endPrice"])),
    )


def trend_ends(drawing: ConfigDrawing, ink: Ink, place: Place) -> tuple[tuple[float, float], tuple[float, float]]:
    """Returns the ends of a trend line, the left one first; the right one at the edge if the line is extended."""
    one, two = sorted(_ends(drawing, place))
    if ink.shows("extendRight", False) and two[0] - one[0] >= 1.0 and two[0] < place.box.right:
        share = (place.box.right - one[0]) / (two[0] - one[0])
        two = (place.box.right, one[1] + (two[1] - one[1]) * share)
    return one, two


def _trend(drawing: ConfigDrawing, ink: Ink, place: Place) -> list[Item]:
    color = ink.color("lineColor", place.picture.theme.accent)
    one, two = trend_ends(drawing, ink, place)
    items = segment(place, one, two, color, ink.number("lineWidth", 2.0), ink.dash())
    return items + _beside(drawing, ink, place, one, two)


def _arrow(drawing: ConfigDrawing, ink: Ink, place: Place) -> list[Item]:
    color = ink.color("arrowColor", ink.color("lineColor", place.picture.theme.accent))
    start, tip = _ends(drawing, place)
    items = segment(place, start, tip, color, ink.number("lineWidth", 2.5), ink.dash())
    items += arrow_head(place, start, tip, color)
    return items + _beside(drawing, ink, place, start, start)


def _beside(
    drawing: ConfigDrawing, ink: Ink, place: Place, one: tuple[float, float], two: tuple[float, float]
) -> list[Item]:
    """Returns the text above the middle of two points, and the change of the price at its end."""
    lines = lines_of(drawing.text) if ink.shows("showLabel") else []
    if ink.shows("showStats", False):
        start, end = drawing.prices["startPrice"], drawing.prices["endPrice"]
        lines = [*lines, f"{place.text(end - start)} ({place.change(start, end)})"]
    font = font_of(ink, ink.color("lineColor", place.picture.theme.accent))
    x, y = (one[0] + two[0]) / 2, (one[1] + two[1]) / 2
    return label(place, x, y - font.height(lines) / 2 - 8, lines, font)


ANNOTATIONS = (
    Annotation("Horizontal Line", _horizontal, LINE | TEXT | {"showPrice"}, at_axis=True),
    Annotation("Order Line", _order, LINE | TEXT | {"showPrice", "backgroundColor"}, at_axis=True),
    Annotation("Vertical Line", _vertical, LINE | TEXT, every_panel=True),
    Annotation("Trend Line", _trend, LINE | TEXT | {"extendRight", "showStats"}),
    Annotation("Arrow Marker", _arrow, LINE | TEXT | {"arrowColor", "showStats"}),
)
