"""Fibonacci retracement: levels between the end of a move (0) and its start (1)."""

from __future__ import annotations

import numpy as np

from openbell.charts.annotations.annotation import Annotation
from openbell.charts.annotations.overrides import FILL, LINE, TEXT, Overrides
from openbell.charts.annotations.place import Place, corners, font_of, label, lines_of, segment
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.scene import Color, Item, Stroke, box
from openbell.charts.themes import faded

LEVELS = (0.0, 0.236, 0.382, 0.5, 0.618, 0.786, 1.0)
_COLORS: tuple[Color, ...] = (
    (120, 123, 134, 255),
    (242, 54, 69, 255),
    (255, 152, 0, 255),
    (76, 175, 80, 255),
    (8, 153, 129, 255),
    (0, 188, 212, 255),
    (120, 123, 134, 255),
)
_OPACITY = 0.12


def _retracement(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
    start, end = annotation.prices["startPrice"], annotation.prices["endPrice"]
    x1, x2 = place.x(annotation.times["startDatetime"]), place.x(annotation.times["endDatetime"])
    items = segment(
        place, (x1, place.y(start)), (x2, place.y(end)), faded(place.picture.theme.faint, 200), 1.0, (4.0, 4.0)
    )
    left, right = min(x1, x2), max(x1, x2)
    if overrides.shows("extendRight", False):
        right = max(right, place.box.right)
    if right < place.box.left or left > place.box.right:
        return []
    prices = [end * (1 - level) + start * level for level in LEVELS]
    opacity = overrides.fill((0, 0, 0, 255), _OPACITY)[3]
    for price, before, color in zip(prices[1:], prices, _COLORS[1:], strict=False):
        area = corners(place, left, right, place.y(before), place.y(price))
        if opacity:
            items.append(box(area.left, area.top, area.right, area.bottom, faded(color, opacity)))
    for level, price, own in zip(LEVELS, prices, _COLORS, strict=True):
        color = overrides.color("lineColor", own)
        area = corners(place, left, right, place.y(price), place.y(price))
        if not place.box.top <= area.top <= place.box.bottom:
            continue
        ends = np.array([area.left, area.right])
        items.append(
            Stroke(ends, np.array([area.top, area.top]), color, overrides.number("lineWidth", 1.0), overrides.dash())
        )
        if overrides.shows("showLabel"):
            items += _label(place, overrides, f"{level:g} ({place.text(price)})", area.left, area.top, color)
    text = lines_of(annotation.text) if overrides.shows("showLabel") else []
    font = font_of(overrides, place.picture.theme.text)
    top = min(place.y(start), place.y(end)) - font.height(text) / 2 - 4
    return items + label(place, (max(left, place.box.left) + min(right, place.box.right)) / 2, top, text, font)


def _label(place: Place, overrides: Overrides, text: str, left: float, y: float, color: Color) -> list[Item]:
    """Returns the label of a level: left of its line, or on it if there is no room."""
    font = font_of(overrides, color, 11.0)
    if left - place.box.left > font.width([text]) + 12:
        return label(place, left - 6, y, [text], font, "right")
    return label(place, max(left, place.box.left) + 6, y - font.size * 0.75, [text], font, "left", (0, 0, 0, 0))


ANNOTATIONS = (
    Annotation(
        "Fib Retracement",
        _retracement,
        LINE | TEXT | (FILL - {"backgroundColor"}) | {"extendRight"},
    ),
)
