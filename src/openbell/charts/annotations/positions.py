"""Positions: a green box from the entry to the target, a red one to the stop, and the ratio of both."""

from __future__ import annotations

import numpy as np

from openbell.charts.annotations.annotation import Annotation
from openbell.charts.annotations.overrides import TEXT, Overrides
from openbell.charts.annotations.place import Font, Place, corners, font_of, label
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.scene import Item, Stroke, box
from openbell.charts.themes import faded

_OPACITY = 0.2
_LEAST_BARS = 6.0
"""The width of a position that would have none."""
_WHITE = (255, 255, 255, 255)


def position_span(annotation: ConfigAnnotation, place: Place) -> tuple[float, float]:
    """Returns both ends of a position: by default from three quarters of the bars to the last one."""
    x, times = place.picture.x, annotation.times
    start = place.x(times["startDatetime"]) if "startDatetime" in times else float(x[int(0.75 * (len(x) - 1))])
    end = place.x(times["endDatetime"]) if "endDatetime" in times else float(x[-1])
    start, end = (start, end) if "endDatetime" not in times or end >= start else (end, start)
    return start, max(end, start + place.picture.slot * (_LEAST_BARS if "endDatetime" not in times else 1.0))


def _position(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
    theme, prices = place.picture.theme, annotation.prices
    entry, target, stop = prices["entryPrice"], prices["targetPrice"], prices["stopPrice"]
    start, end = position_span(annotation, place)
    levels = [place.y(price) for price in (entry, target, stop)]
    if end < place.box.left or start > place.box.right:
        return []
    if max(levels) < place.box.top or min(levels) > place.box.bottom:
        return []
    share = 1 - overrides.number("transparency", 100 * (1 - _OPACITY)) / 100
    items: list[Item] = []
    for price, color in ((target, theme.up), (stop, theme.down)):
        area = corners(place, start, end, place.y(entry), place.y(price))
        if overrides.shows("fillBackground"):
            items.append(box(area.left, area.top, area.right, area.bottom, faded(color, round(255 * share))))
    middle = corners(place, start, end, place.y(entry), place.y(entry))
    line, width = overrides.color("lineColor", theme.faint), overrides.number("lineWidth", 1.0)
    if place.box.top <= middle.top <= place.box.bottom:
        ends = np.array([middle.left, middle.right])
        items.append(Stroke(ends, np.array([middle.top, middle.top]), line, width))
    return items + (_labels(annotation, overrides, place, start, end) if overrides.shows("showLabel") else [])


def _labels(annotation: ConfigAnnotation, overrides: Overrides, place: Place, start: float, end: float) -> list[Item]:
    theme, prices = place.picture.theme, annotation.prices
    entry, target, stop = prices["entryPrice"], prices["targetPrice"], prices["stopPrice"]
    x = (max(start, place.box.left) + min(end, place.box.right)) / 2
    font = font_of(overrides, _WHITE, 11.0)
    items: list[Item] = []
    for name, price, color in (("Target", target, theme.up), ("Stop", stop, theme.down)):
        above = price >= entry
        away = font.height([name]) / 2 + 4
        text = f"{name} {place.text(price)} ({place.change(entry, price)})"
        y = min(max(place.y(price), place.box.top), place.box.bottom)
        items += label(place, x, y + (-away if above else away), [text], font, ground=faded(color, 235))
    if overrides.shows("showStats"):
        plain = Font(overrides.color("textColor", theme.text), font.size, font.bold)
        text = f"Entry {place.text(entry)} · Risk/reward {ratio(entry, target, stop)}"
        items += label(place, x, place.y(entry), [text], plain)
    return items


def ratio(entry: float, target: float, stop: float) -> str:
    """Returns the reward in units of risk; a dash if nothing is at risk."""
    risk = abs(entry - stop)
    found = abs(target - entry) / risk if risk else float("inf")
    return f"{found:,.2f}" if found < 1e9 else "–"


_HONOURED = TEXT | {"lineColor", "lineWidth", "showStats", "transparency", "fillBackground"}
ANNOTATIONS = (
    Annotation("Long Position", _position, _HONOURED),
    Annotation("Short Position", _position, _HONOURED),
)
