"""Marks at a point: arrows up and down, texts and callouts."""

from __future__ import annotations

from openbell.charts.annotations.annotation import Annotation
from openbell.charts.annotations.overrides import FILL, LINE, TEXT, Overrides
from openbell.charts.annotations.place import Place, arrow_head, font_of, label, lines_of, segment, triangle
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.scene import Item, box
from openbell.charts.themes import faded, text_on

_HALF, _HEAD, _STEM, _LENGTH = 7.0, 9.0, 2.5, 10.0
"""Pixels: half the width of an arrow's head, its height, half the width of its stem, and the stem's length."""
_AWAY = (36.0, -44.0)
"""Pixels from a callout's point to the middle of its text, if the annotation does not place it."""


def _up(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
    return _mark(annotation, overrides, place, 1.0)


def _down(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
    return _mark(annotation, overrides, place, -1.0)


def _mark(annotation: ConfigAnnotation, overrides: Overrides, place: Place, way: float) -> list[Item]:
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


def _text(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
    x, y = place.x(annotation.times["datetime"]), place.y(annotation.prices["price"])
    if not place.holds(x, y) or not overrides.shows("showLabel"):
        return []
    theme = place.picture.theme
    font = font_of(overrides, overrides.color("lineColor", theme.accent), 14.0)
    ground = overrides.fill(theme.background, 0.0)
    return label(place, x, y, lines_of(annotation.text), font, "left", ground)


def _callout(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
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


_TEXT = TEXT | FILL
ANNOTATIONS = (
    Annotation("Arrow Mark Up", _up, TEXT | {"arrowColor"}),
    Annotation("Arrow Mark Down", _down, TEXT | {"arrowColor"}),
    Annotation("Text", _text, _TEXT | {"lineColor"}),
    Annotation("Callout", _callout, _TEXT | LINE),
)
