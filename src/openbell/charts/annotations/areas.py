"""Areas: rectangles, ranges of dates and prices with their sizes, positions, and Fibonacci retracements.

A position is a green box from the entry to the target, a red one to the stop, and the ratio of both. A retracement has
levels between the end of a move (0) and its start (1).
"""

from __future__ import annotations

import numpy as np

from openbell.charts.annotations.overrides import FILL, LINE, TEXT, Overrides
from openbell.charts.annotations.place import (
    Annotation,
    AnnotationPlace,
    Font,
    arrow_head,
    bordered,
    corners,
    font_of,
    label,
    lines_of,
    segment,
)
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.scene import Box, Color, Item, Stroke, box
from openbell.charts.themes import faded

_DAY, _HOUR, _MINUTE = 86400, 3600, 60
_BOX_OPACITY = 0.2
_LEAST_BARS = 6.0
"""The width of a position that would have none."""
_WHITE = (255, 255, 255, 255)

_HONOURED = TEXT | {"lineColor", "lineWidth", "showStats", "transparency", "fillBackground"}
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
_BAND_OPACITY = 0.12


def _area(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> Box:
    """Returns the rectangle between both corners; from top to bottom if the annotation has no prices."""
    x1, x2 = place.x(annotation.times["startDatetime"]), place.x(annotation.times["endDatetime"])
    if overrides.shows("extendRight", False):
        x1, x2 = min(x1, x2), max(x1, x2, place.box.right + 100)
    prices = annotation.prices
    tops = [place.y(prices[name]) for name in ("startPrice", "endPrice") if name in prices]
    if len(tops) < 2:
        return corners(place, x1, x2, place.box.top - 100, place.box.bottom + 100)
    return corners(place, x1, x2, *tops)


def _shown(area: Box, place: AnnotationPlace) -> bool:
    box = place.box
    across = area.right >= box.left and area.left <= box.right
    return across and area.bottom >= box.top and area.top <= box.bottom


def _rectangle(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    area = _area(annotation, overrides, place)
    if not _shown(area, place):
        return []
    color = overrides.color("lineColor", place.picture.theme.accent)
    items = bordered(area, overrides.fill(color), color, overrides.number("lineWidth", 1.0), overrides.dash())
    if overrides.shows("showLabel"):
        middle = (_middle(area.left, area.right, place.box.left, place.box.right), (area.top + area.bottom) / 2)
        items += label(place, *middle, lines_of(annotation.text), font_of(overrides, color), ground=(0, 0, 0, 0))
    return items


def _middle(low: float, high: float, least: float, most: float) -> float:
    return (max(low, least) + min(high, most)) / 2


def _date_range(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    return _range(annotation, overrides, place, [_span(annotation, place)])


def _date_price_range(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    start, end = annotation.prices["startPrice"], annotation.prices["endPrice"]
    return _range(
        annotation,
        overrides,
        place,
        [f"{place.text(end - start)} ({place.change(start, end)})", _span(annotation, place)],
    )


def _range(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace, stats: list[str]) -> list[Item]:
    area = _area(annotation, overrides, place)
    if not _shown(area, place):
        return []
    theme = place.picture.theme
    color = overrides.color("lineColor", theme.accent)
    width, dash = overrides.number("lineWidth", 1.0), overrides.dash()
    prices = annotation.prices
    high = len(stats) > 1
    items = bordered(area, overrides.fill(color, 0.14), color, 0.0 if not high else width, dash)
    box = place.box
    y = _middle(area.top, area.bottom, box.top, box.bottom)
    x = _middle(area.left, area.right, box.left, box.right)
    x1, x2 = place.x(annotation.times["startDatetime"]), place.x(annotation.times["endDatetime"])
    if not high:
        for edge in (area.left, area.right):
            items += segment(place, (edge, area.top), (edge, area.bottom), color, width, dash)
    items += segment(place, (x1, y), (x2, y), color, width, dash) + arrow_head(place, (x1, y), (x2, y), color)
    if high:
        ends = (x, place.y(prices["startPrice"])), (x, place.y(prices["endPrice"]))
        items += segment(place, *ends, color, width, dash) + arrow_head(place, *ends, color)
    lines = lines_of(annotation.text) if overrides.shows("showLabel") else []
    lines += stats if overrides.shows("showStats") else []
    font = font_of(overrides, theme.text)
    # Below the area, or below its arrow if the area ends at the edge of the panel.
    under = area.bottom if area.bottom + font.height(lines) + 8 < box.bottom else y + 6
    return items + label(place, x, under + font.height(lines) / 2 + 4, lines, font)


def _span(annotation: ConfigAnnotation, place: AnnotationPlace) -> str:
    """Returns the number of bars and the time of a range, such as `12 bars, 3d 4h`."""
    start, end = annotation.times["startDatetime"], annotation.times["endDatetime"]
    bars = round((place.x(end) - place.x(start)) / place.picture.slot)
    seconds = round(abs((end - start).total_seconds()))
    parts = [(seconds // _DAY, "d"), (seconds % _DAY // _HOUR, "h"), (seconds % _HOUR // _MINUTE, "m")]
    shown = [f"{count}{unit}" for count, unit in parts if count][:2] or ["0m"]
    return f"{bars:,} bars, {' '.join(shown)}".replace("-", "−")


def position_span(annotation: ConfigAnnotation, place: AnnotationPlace) -> tuple[float, float]:
    """Returns both ends of a position: by default from three quarters of the bars to the last one."""
    x, times = place.picture.x, annotation.times
    start = place.x(times["startDatetime"]) if "startDatetime" in times else float(x[int(0.75 * (len(x) - 1))])
    end = place.x(times["endDatetime"]) if "endDatetime" in times else float(x[-1])
    start, end = (start, end) if "endDatetime" not in times or end >= start else (end, start)
    return start, max(end, start + place.picture.slot * (_LEAST_BARS if "endDatetime" not in times else 1.0))


def _position(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
    theme, prices = place.picture.theme, annotation.prices
    entry, target, stop = prices["entryPrice"], prices["targetPrice"], prices["stopPrice"]
    start, end = position_span(annotation, place)
    levels = [place.y(price) for price in (entry, target, stop)]
    if end < place.box.left or start > place.box.right:
        return []
    if max(levels) < place.box.top or min(levels) > place.box.bottom:
        return []
    share = 1 - overrides.number("transparency", 100 * (1 - _BOX_OPACITY)) / 100
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


def _labels(
    annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace, start: float, end: float
) -> list[Item]:
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


def _retracement(annotation: ConfigAnnotation, overrides: Overrides, place: AnnotationPlace) -> list[Item]:
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
    opacity = overrides.fill((0, 0, 0, 255), _BAND_OPACITY)[3]
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


def _label(place: AnnotationPlace, overrides: Overrides, text: str, left: float, y: float, color: Color) -> list[Item]:
    """Returns the label of a level: left of its line, or on it if there is no room."""
    font = font_of(overrides, color, 11.0)
    if left - place.box.left > font.width([text]) + 12:
        return label(place, left - 6, y, [text], font, "right")
    return label(place, max(left, place.box.left) + 6, y - font.size * 0.75, [text], font, "left", (0, 0, 0, 0))


ANNOTATIONS = (
    Annotation("Rectangle", _rectangle, LINE | TEXT | FILL | {"extendRight"}),
    Annotation("Date Range", _date_range, LINE | TEXT | FILL | {"showStats"}),
    Annotation("Date Price Range", _date_price_range, LINE | TEXT | FILL | {"showStats"}),
    Annotation(
        "Fib Retracement",
        _retracement,
        LINE | TEXT | (FILL - {"backgroundColor"}) | {"extendRight"},
    ),
    Annotation("Long Position", _position, _HONOURED),
    Annotation("Short Position", _position, _HONOURED),
)
