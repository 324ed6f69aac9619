"""Areas: rectangles, and ranges of dates and prices with their sizes."""

from __future__ import annotations

from openbell.charts.annotations.annotation import Annotation
from openbell.charts.annotations.ink import FILL, LINE, TEXT, Ink
from openbell.charts.annotations.place import Place, arrow_head, bordered, corners, font_of, label, lines_of, segment
from openbell.charts.config.model import ConfigDrawing
from openbell.charts.scene import Box, Item

_DAY, _HOUR, _MINUTE = 86400, 3600, 60


def _area(drawing: ConfigDrawing, ink: Ink, place: Place) -> Box:
    """Returns the rectangle between both corners; from top to bottom if the drawing has no prices."""
    x1, x2 = place.x(drawing.times["startDatetime"]), place.x(drawing.times["endDatetime"])
    if ink.shows("extendRight", False):
        x1, x2 = min(x1, x2), max(x1, x2, place.box.right + 100)
    prices = drawing.prices
    tops = [place.y(prices[name]) for name in ("startPrice", "endPrice") if name in prices]
    if len(tops) < 2:
        return corners(place, x1, x2, place.box.top - 100, place.box.bottom + 100)
    return corners(place, x1, x2, *tops)


def _shown(area: Box, place: Place) -> bool:
    box = place.box
    across = area.right >= box.left and area.left <= box.right
    return across and area.bottom >= box.top and area.top <= box.bottom


def _rectangle(drawing: ConfigDrawing, ink: Ink, place: Place) -> list[Item]:
    area = _area(drawing, ink, place)
    if not _shown(area, place):
        return []
    color = ink.color("lineColor", place.picture.theme.accent)
    items = bordered(area, ink.fill(color), color, ink.number("lineWidth", 1.0), ink.dash())
    if ink.shows("showLabel"):
        middle = (_middle(area.left, area.right, place.box.left, place.box.right), (area.top + area.bottom) / 2)
        items += label(place, *middle, lines_of(drawing.text), font_of(ink, color), ground=(0, 0, 0, 0))
    return items


def _middle(low: float, high: float, least: float, most: float) -> float:
    return (max(low, least) + min(high, most)) / 2


def _date_range(drawing: ConfigDrawing, ink: Ink, place: Place) -> list[Item]:
    return _range(drawing, ink, place, [_span(drawing, place)])


def _date_price_range(drawing: ConfigDrawing, ink: Ink, place: Place) -> list[Item]:
    start, end = drawing.prices["startPrice"], drawing.prices["endPrice"]
    return _range(
        drawing, ink, place, [f"{place.text(end - start)} ({place.change(start, end)})", _span(drawing, place)]
    )


def _range(drawing: ConfigDrawing, ink: Ink, place: Place, stats: list[str]) -> list[Item]:
    area = _area(drawing, ink, place)
    if not _shown(area, place):
        return []
    theme = place.picture.theme
    color = ink.color("lineColor", theme.accent)
    width, dash = ink.number("lineWidth", 1.0), ink.dash()
    prices = drawing.prices
    high = len(stats) > 1
    items = bordered(area, ink.fill(color, 0.14), color, 0.0 if not high else width, dash)
    box = place.box
    y = _middle(area.top, area.bottom, box.top, box.bottom)
    x = _middle(area.left, area.right, box.left, box.right)
    x1, x2 = place.x(drawing.times["startDatetime"]), place.x(drawing.times["endDatetime"])
    if not high:
        for edge in (area.left, area.right):
            items += segment(place, (edge, area.top), (edge, area.bottom), color, width, dash)
    items += segment(place, (x1, y), (x2, y), color, width, dash) + arrow_head(place, (x1, y), (x2, y), color)
    if high:
        ends = (x, place.y(prices["startPrice"])), (x, place.y(prices["endPrice"]))
        items += segment(place, *ends, color, width, dash) + arrow_head(place, *ends, color)
    lines = (lines_of(drawing.text) if ink.shows("showLabel") else []) + (stats if ink.shows("showStats") else [])
    font = font_of(ink, theme.text)
    # Below the area, or below its arrow if the area ends at the edge of the panel.
    under = area.bottom if area.bottom + font.height(lines) + 8 < box.bottom else y + 6
    return items + label(place, x, under + font.height(lines) / 2 + 4, lines, font)


def _span(drawing: ConfigDrawing, place: Place) -> str:
    """Returns the number of bars and the time of a range, such as `12 bars, 3d 4h`."""
    start, end = drawing.times["startDatetime"], drawing.times["endDatetime"]
    bars = round((place.x(end) - place.x(start)) / place.picture.slot)
    seconds = round(abs((end - start).total_seconds()))
    parts = [(seconds // _DAY, "d"), (seconds % _DAY // _HOUR, "h"), (seconds % _HOUR // _MINUTE, "m")]
    shown = [f"{count}{unit}" for count, unit in parts if count][:2] or ["0m"]
    return f"{bars:,} bars, {' '.join(shown)}".replace("-", "−")


ANNOTATIONS = (
    Annotation("Rectangle", _rectangle, LINE | TEXT | FILL | {"extendRight"}),
    Annotation("Date Range", _date_range, LINE | TEXT | FILL | {"showStats"}),
    Annotation("Date Price Range", _date_price_range, LINE | TEXT | FILL | {"showStats"}),
)
