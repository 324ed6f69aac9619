"""Areas: rectangles, and ranges of dates and prices with their sizes."""

from __future__ import annotations

from openbell.charts.annotations.annotation import Annotation
from openbell.charts.annotations.overrides import FILL, LINE, TEXT, Overrides
from openbell.charts.annotations.place import Place, arrow_head, bordered, corners, font_of, label, lines_of, segment
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.scene import Box, Item

_DAY, _HOUR, _MINUTE = 86400, 3600, 60


def _area(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> Box:
    """Returns the rectangle between both corners; from top to bottom if the annotation has no prices."""
    x1, x2 = place.x(annotation.times["startDatetime"]), place.x(annotation.times["endDatetime"])
    if overrides.shows("extendRight", False):
        x1, x2 = min(x1, x2), max(x1, x2, place.box.right + 100)
    prices = annotation.prices
    tops = [place.y(prices[name]) for name in ("startPrice", "endPrice") if name in prices]
    if len(tops) < 2:
        return corners(place, x1, x2, place.box.top - 100, place.box.bottom + 100)
    return corners(place, x1, x2, *tops)


def _shown(area: Box, place: Place) -> bool:
    box = place.box
    across = area.right >= box.left and area.left <= box.right
    return across and area.bottom >= box.top and area.top <= box.bottom


def _rectangle(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
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


def _date_range(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
    return _range(annotation, overrides, place, [_span(annotation, place)])


def _date_price_range(annotation: ConfigAnnotation, overrides: Overrides, place: Place) -> list[Item]:
    start, end = annotation.prices["startPrice"], annotation.prices["endPrice"]
    return _range(
        annotation,
        overrides,
        place,
        [f"{place.text(end - start)} ({place.change(start, end)})", _span(annotation, place)],
    )


def _range(annotation: ConfigAnnotation, overrides: Overrides, place: Place, stats: list[str]) -> list[Item]:
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


def _span(annotation: ConfigAnnotation, place: Place) -> str:
    """Returns the number of bars and the time of a range, such as `12 bars, 3d 4h`."""
    start, end = annotation.times["startDatetime"], annotation.times["endDatetime"]
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
