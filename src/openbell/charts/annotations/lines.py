"""Lines and marks: horizontal, vertical and trend lines, the line of an order, arrows, texts and callouts."""

from __future__ import annotations

import numpy as np

from openbell.charts.annotations.overrides import FILL, LINE, TEXT, Overrides
from openbell.charts.annotations.place import (
    Annotation,
    AnnotationPlace,
    arrow_head,
    font_of,
    label,
    lines_of,
    segment,
    triangle,
    vertical,
)
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.scene import Item, Stroke, box
from openbell.charts.themes import faded, text_on

_EDGE = 8.0
"""Pixels between a label and the edge of the panel."""
_HALF, _HEAD, _STEM, _LENGTH = 7.0, 9.0, 2.5, 10.0
"""Pixels: half the width of an arrow's head, its height, half the width of its stem, and the stem's length."""
_AWAY = (36.0, -44.0)
"""Pixels from a callout's point to the middle of its text, if the annotation does not place it."""

_TEXT = TEXT | FILL


def _level(place: AnnotationPlace, price: float, overrides: Overrides, dash: str) -> list[Item]:
    y = place.y(price)
    color = overrides.color("lineColor", place.picture.theme.accent)
    if not place.box.top <= y <= place.box.bottom:
        return []
    edges = np.array([place.box.left, place.box.right])
    return [Stroke(edges, np.array([y, y]), color, overrides.number("lineWidth", 1.5), overrides.dash(dash))]


def _horizontal(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    price = annotation.prices["price"]
    items = _level(place, price, overrides, "solid")
    if items and overrides.shows("showLabel"):
        font = font_of(overrides, overrides.color("lineColor", place.picture.theme.accent))
        lines = lines_of(annotation.text)
        y = place.y(price) - font.height(lines) / 2 - 3
        items += label(place, place.box.right - _EDGE, y, lines, font, "right")
    return items


def _order(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    price = annotation.prices["price"]
    items = _level(place, price, overrides, "dashed")
    if items and overrides.shows("showLabel"):
        theme = place.picture.theme
        name = " ".join(lines_of(annotation.text)) or "Order"
        ground = overrides.color("backgroundColor", overrides.color("lineColor", theme.accent))
        font = font_of(overrides, text_on(ground))
        words = [f"{name}  {place.text(price)}"]
        items += label(place, place.box.right - _EDGE - 4, place.y(price), words, font, "right", ground)
    return items


def _vertical(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    x = place.x(annotation.times["datetime"])
    area, color = place.box, overrides.color("lineColor", place.picture.theme.accent)
    if not area.left <= x <= area.right:
        return []
    items = vertical(x, area.top, area.bottom, color, overrides.number("lineWidth", 1.5), overrides.dash())
    if overrides.shows("showLabel") and place.panel.indicator is None:
        font = font_of(overrides, color)
        lines = lines_of(annotation.text)
        right = x + 6 + font.width(lines) < area.right
        y = area.bottom - font.height(lines) / 2 - 6
        items += label(place, x + 8 if right else x - 8, y, lines, font, "left" if right else "right")
    return items


def _ends(annotation: ConfigAnnotation, place: AnnotationPlace) -> tuple[tuple[float, float], tuple[float, float]]:
    return (
        (place.x(annotation.times["startDatetime"]), place.y(annotation.prices["startPrice"])),
        (place.x(annotation.times["endDatetime"]), place.y(annotation.prices["endPrice"])),
    )


def trend_ends(
    annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Returns the ends of a trend line, the left one first; the right one at the edge if the line is extended."""
    one, two = sorted(_ends(annotation, place))
    if overrides.shows("extendRight", False) and two[0] - one[0] >= 1.0 and two[0] < place.box.right:
        share = (place.box.right - one[0]) / (two[0] - one[0])
        two = (place.box.right, one[1] + (two[1] - one[1]) * share)
    return one, two


def _trend(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    color = overrides.color("lineColor", place.picture.theme.accent)
    one, two = trend_ends(annotation, overrides, place)
    items = segment(place, one, two, color, overrides.number("lineWidth", 2.0), overrides.dash())
    return items + _beside(annotation, overrides, place, one, two)


def _arrow(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    color = overrides.color("arrowColor", overrides.color("lineColor", place.picture.theme.accent))
    start, tip = _ends(annotation, place)
    items = segment(place, start, tip, color, overrides.number("lineWidth", 2.5), overrides.dash())
    items += arrow_head(place, start, tip, color)
    return items + _beside(annotation, overrides, place, start, start)


def _beside(
    annotation: ConfigAnnotation,
    overrides: Overrides,
    place: AnnotationPlace,
    one: tuple[float, float],
    two: tuple[float, float],
) -> list[Item]:
    """Returns the text above the middle of two points, and the change of the price at its end."""
    lines = lines_of(annotation.text) if overrides.shows("showLabel") else []
    if overrides.shows("showStats", False):
        start, end = annotation.prices["startPrice"], annotation.prices["endPrice"]
        lines = [*lines, f"{place.text(end - start)} ({place.change(start, end)})"]
    font = font_of(overrides, overrides.color("lineColor", place.picture.theme.accent))
    x, y = (one[0] + two[0]) / 2, (one[1] + two[1]) / 2
    return label(place, x, y - font.height(lines) / 2 - 8, lines, font)


def _up(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    return _mark(annotation, overrides, place, 1.0)


def _down(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    return _mark(annotation, overrides, place, -1.0)


def _mark(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace, way: float) -> list[Item]:
    """Draws an arrow with its tip at the price, and the text at its other end. `way` is 1 for an arrow that points up."""
    x, y = place.x(annotation.times["datetime"]), place.y(annotation.prices["price"])
    if not place.holds(x, y):
        return []
    theme = place.picture.theme
    color = overrides.color("arrowColor", theme.up if way > 0 else theme.down)
    x = round(x)
    base, end = y + way * _HEAD, y + way * (_HEAD + _LENGTH)
    items = triangle([(x, y), (x - _HALF, base), (x + _HALF, base)], color)
    items.append(box(x - _STEM, min(base, end), x + _STEM, max(base, end), color))
    if overrides.shows("showLabel"):
        font = font_of(overrides, color)
        lines = lines_of(annotation.text)
        items += label(place, x, end + way * (font.height(lines) / 2 + 3), lines, font)
    return items


def _text(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    x, y = place.x(annotation.times["datetime"]), place.y(annotation.prices["price"])
    if not place.holds(x, y) or not overrides.shows("showLabel"):
        return []
    theme = place.picture.theme
    font = font_of(overrides, overrides.color("lineColor", theme.accent), 14.0)
    ground = overrides.fill(theme.background, 0.0)
    return label(place, x, y, lines_of(annotation.text), font, "left", ground)


def _callout(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    x, y = place.x(annotation.times["datetime"]), place.y(annotation.prices["price"])
    if not place.holds(x, y):
        return []
    theme = place.picture.theme
    color = overrides.color("lineColor", theme.accent)
    ground = overrides.fill(faded(color, 255), 0.92)
    font = font_of(overrides, text_on(ground) if ground[3] else color)
    lines = lines_of(annotation.text) if overrides.shows("showLabel") else []
    away = x + _AWAY[0] if x + _AWAY[0] + font.width(lines) < place.box.right else x - _AWAY[0]
    middle = (
        place.x(annotation.times["endDatetime"]) if "endDatetime" in annotation.times else away,
        place.y(annotation.prices["endPrice"]) if "endPrice" in annotation.prices else y + _AWAY[1],
    )
    middle = (
        min(max(middle[0], place.box.left), place.box.right),
        min(max(middle[1], place.box.top), place.box.bottom),
    )
    items = segment(place, middle, (x, y), color, overrides.number("lineWidth", 1.5), overrides.dash())
    items += arrow_head(place, middle, (x, y), color)
    return items + label(place, *middle, lines, font, ground=ground)


ANNOTATIONS = (
    Annotation("Horizontal Line", _horizontal, LINE | TEXT | {"showPrice"}, at_axis=True),
    Annotation("Order Line", _order, LINE | TEXT | {"showPrice", "backgroundColor"}, at_axis=True),
    Annotation("Vertical Line", _vertical, LINE | TEXT, every_panel=True),
    Annotation("Trend Line", _trend, LINE | TEXT | {"extendRight", "showStats"}),
    Annotation("Arrow Marker", _arrow, LINE | TEXT | {"arrowColor", "showStats"}),
    Annotation("Arrow Mark Up", _up, TEXT | {"arrowColor"}),
    Annotation("Arrow Mark Down", _down, TEXT | {"arrowColor"}),
    Annotation("Text", _text, _TEXT | {"lineColor"}),
    Annotation("Callout", _callout, _TEXT | LINE),
)
