"""How one kind of annotation is drawn, and where: times and prices as pixels of a panel, and the items at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from openbell.charts import fonts
from openbell.charts.annotations.overrides import Dash, Overrides
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.numbers import NumberFormat, decimals_for, percent
from openbell.charts.panels import TITLE_ROW, ChartPicture, Panel
from openbell.charts.scene import Anchor, Band, Box, Boxes, Color, Item, Label, Stroke, box
from openbell.charts.themes import faded
from openbell.market.bars import Values
from openbell.market.price_history import percent_change

_FAR = 1e9
_HUGE = 1e15
"""Larger prices are written with an exponent."""
_MARGIN = 40.0
"""Lines are cut this far outside the panel, so that their ends are not seen."""
_LONGEST_TEXT, _MOST_LINES = 300, 12
_SPACING = 1.3
"""The distance of two lines of text, in font sizes."""


@dataclass(frozen=True, slots=True)
class AnnotationPlace:
    """A panel of a picture that has at least one bar."""

    picture: ChartPicture
    panel: Panel

    @property
    def box(self) -> Box:
        """The area of the panel."""
        return self.panel.box

    @property
    def text_top(self) -> float:
        """The highest y of labels, which is below the title of the chart if it has one."""
        titled = self.panel.indicator is None and self.picture.options.legend and self.box.height > 4 * TITLE_ROW
        return self.box.top + (TITLE_ROW if titled else 2.0)

    def x(self, moment: datetime) -> float:
        """Returns the x of a time: between two bars in proportion, beyond them by the length of a bar."""
        return x_of(self.picture, moment.timestamp())

    def y(self, price: float) -> float:
        """Returns the y of a price."""
        return min(max(self.panel.scale.at(price), -_FAR), _FAR)

    def text(self, price: float) -> str:
        """Returns a price as text, with the decimals of the bars."""
        if abs(price) > _HUGE:
            return f"{price:.3g}"
        return NumberFormat(decimals_for(self.picture.bars.close)).text(price)

    def change(self, start: float, end: float) -> str:
        """Returns the change from one price to another in per cent; a dash if there is none."""
        change = percent_change(start, end)
        return "–" if change is None or abs(change) >= 1e9 else percent(change)

    def holds(self, x: float, y: float) -> bool:
        """Returns True if a point is in the panel."""
        return self.box.left <= x <= self.box.right and self.box.top <= y <= self.box.bottom


def x_of(picture: ChartPicture, moment: float) -> float:
    """Returns the x of a time in seconds."""
    time, x = picture.bars.time, picture.x
    first, last, length = float(time[0]), float(time[-1]), picture.bars.timeframe.seconds
    if moment < first:
        return max(float(x[0]) - (first - moment) / length * picture.slot, -_FAR)
    if moment > last:
        return min(float(x[-1]) + (moment - last) / length * picture.slot, _FAR)
    return float(np.interp(moment, time, x))


# Lines


def segment(
    place: AnnotationPlace,
    one: tuple[float, float],
    two: tuple[float, float],
    color: Color,
    width: float,
    dash: Dash | None,
) -> list[Item]:
    """Returns a straight line between two points, cut near the edges of the panel; nothing if it is outside."""
    cut = _cut(place.box, one, two, _MARGIN)
    if cut is None:
        return []
    (x1, y1), (x2, y2) = sorted(cut)
    if x2 - x1 < 1.0:
        return vertical((x1 + x2) / 2, min(y1, y2), max(y1, y2), color, width, dash)
    x, y = np.array([x1, x2]), np.array([y1, y2])
    if dash is None or y1 == y2:
        return [Stroke(x, y, color, width, dash)]
    return [Stroke(*_dashes(x, y, dash), color, width)]


def _dashes(x: Values, y: Values, dash: Dash) -> tuple[Values, Values]:
    """Returns a straight line with gaps. Dashes of a `Stroke` have their length in x, which is short on a steep line."""
    length = float(np.hypot(x[1] - x[0], y[1] - y[0]))
    starts = np.arange(0.0, length, dash[0] + dash[1])
    shares = np.stack((starts, np.minimum(starts + dash[0], length)), axis=1) / length
    across, down = (ends[0] + (ends[1] - ends[0]) * shares for ends in (x, y))
    gaps = np.full(len(starts), np.nan)
    return np.column_stack((across, across[:, 1])).ravel(), np.column_stack((down, gaps)).ravel()


def vertical(x: float, top: float, bottom: float, color: Color, width: float, dash: Dash | None) -> list[Item]:
    """Returns a vertical line on whole pixels."""
    left = round(x - width / 2)
    right = left + max(1, round(width))
    if dash is None or bottom <= top:
        return [box(left, top, right, bottom, color)]
    starts = np.arange(top, bottom, dash[0] + dash[1])
    ends = np.minimum(starts + dash[0], bottom)
    return [Boxes(np.full(len(starts), float(left)), starts, np.full(len(starts), float(right)), ends, color)]


def _cut(
    area: Box, one: tuple[float, float], two: tuple[float, float], margin: float
) -> list[tuple[float, float]] | None:
    """Returns the part of a segment in an area with a margin (Liang and Barsky); None if there is none."""
    (x1, y1), (x2, y2) = one, two
    dx, dy = x2 - x1, y2 - y1
    start, end = 0.0, 1.0
    for step, room in (
        (-dx, x1 - (area.left - margin)),
        (dx, area.right + margin - x1),
        (-dy, y1 - (area.top - margin)),
        (dy, area.bottom + margin - y1),
    ):
        if step == 0.0:
            if room < 0.0:
                return None
            continue
        if step < 0.0:
            start = max(start, room / step)
        else:
            end = min(end, room / step)
    if start > end:
        return None
    return [(x1 + start * dx, y1 + start * dy), (x1 + end * dx, y1 + end * dy)]


def crosses(area: Box, one: tuple[float, float], two: tuple[float, float]) -> bool:
    """Returns True if a segment is at least partly inside an area."""
    return _cut(area, one, two, 0.0) is not None


def triangle(points: list[tuple[float, float]], color: Color) -> list[Item]:
    """Returns a filled triangle; nothing if it has no width."""
    (x1, y1), (x2, y2), (x3, y3) = sorted(points)
    if x3 - x1 < 1e-6:
        return []
    across = y1 + (y3 - y1) * (x2 - x1) / (x3 - x1)
    if x2 - x1 < 1e-6:
        x, upper, lower = [x1, x3], [min(y1, y2), y3], [max(y1, y2), y3]
    elif x3 - x2 < 1e-6:
        x, upper, lower = [x1, x3], [y1, min(y2, y3)], [y1, max(y2, y3)]
    else:
        x, upper, lower = [x1, x2, x3], [y1, min(y2, across), y3], [y1, max(y2, across), y3]
    return [Band(np.array(x), np.array(upper), np.array(lower), color)]


def arrow_head(
    place: AnnotationPlace, start: tuple[float, float], tip: tuple[float, float], color: Color
) -> list[Item]:
    """Returns the head of an arrow that points from `start` to `tip`."""
    if not place.holds(*tip):
        return []
    dx, dy = tip[0] - start[0], tip[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5
    if length < 1e-6:
        return []
    dx, dy = dx / length, dy / length
    back = (tip[0] - 10 * dx, tip[1] - 10 * dy)
    return triangle([tip, (back[0] - 5 * dy, back[1] + 5 * dx), (back[0] + 5 * dy, back[1] - 5 * dx)], color)


def bordered(area: Box, fill: Color, line: Color, width: float, dash: Dash | None = None) -> list[Item]:
    """Returns a filled rectangle with a border."""
    items: list[Item] = [box(area.left, area.top, area.right, area.bottom, fill)] if fill[3] else []
    if line[3] and width > 0:
        ends = np.array([area.left, area.right])
        items += [Stroke(ends, np.array([y, y]), line, width, dash) for y in (area.top, area.bottom)]
        for x in (area.left, area.right):
            items += vertical(x, area.top, area.bottom, line, width, dash)
    return items


def corners(place: AnnotationPlace, x1: float, x2: float, y1: float, y2: float) -> Box:
    """Returns the rectangle between two points, cut near the edges of the panel."""
    area = place.box

    def near(value: float, low: float, high: float) -> float:
        return min(max(value, low - _MARGIN), high + _MARGIN)

    left, right = sorted(near(x, area.left, area.right) for x in (x1, x2))
    top, bottom = sorted(near(y, area.top, area.bottom) for y in (y1, y2))
    return Box(left, top, right, bottom)


# Texts


def lines_of(text: str) -> list[str]:
    """Returns the lines of a text without characters that cannot be drawn; long texts are cut."""
    if len(text) > _LONGEST_TEXT:
        text = text[: _LONGEST_TEXT - 1] + "…"
    lines = ["".join(each if each.isprintable() else " " for each in line).strip() for line in text.splitlines()]
    return [line for line in lines if line][:_MOST_LINES]


@dataclass(frozen=True, slots=True)
class Font:
    """The font of an annotation's labels."""

    color: Color
    size: float = 12.0
    bold: bool = False

    def width(self, lines: list[str]) -> float:
        """Returns the width of the widest line."""
        return max((fonts.width(line, self.size, self.bold) for line in lines), default=0.0)

    def height(self, lines: list[str]) -> float:
        """Returns the height of all lines."""
        return self.size * _SPACING * len(lines)


def font_of(overrides: Overrides, color: Color, size: float = 12.0, bold: bool = False) -> Font:
    """Returns the font that the overrides ask for."""
    return Font(
        overrides.color("textColor", color), overrides.number("fontSize", size), overrides.shows("fontBold", bold)
    )


def label(
    place: AnnotationPlace,
    x: float,
    y: float,
    lines: list[str],
    font: Font,
    anchor: Anchor = "center",
    ground: Color | None = None,
) -> list[Item]:
    """Returns lines of text around a point, moved into the panel, on a box with the colour `ground`.

    A label whose point is far outside the panel is left out.
    """
    wide, tall, area = font.width(lines), font.height(lines), place.box
    if not lines or not (area.left - _MARGIN <= x <= area.right + _MARGIN):
        return []
    if not (area.top - _MARGIN <= y <= area.bottom + _MARGIN):
        return []
    left = x - {"left": 0.0, "center": wide / 2, "right": wide}[anchor]
    left = max(area.left + 4, min(left, area.right - wide - 4))
    top = max(place.text_top, min(y - tall / 2, area.bottom - tall - 2))
    if ground is None:
        ground = faded(place.picture.theme.background, 190)
    items: list[Item] = [box(left - 4, top - 1, left + wide + 4, top + tall + 1, ground)] if ground[3] else []
    for at, line in enumerate(lines):
        start = left + {"left": 0.0, "center": wide / 2, "right": wide}[anchor]
        middle = top + (at + 0.5) * font.size * _SPACING
        items.append(Label(start, middle, line, font.size, font.color, anchor, font.bold))
    return items


Paint = Callable[[ConfigAnnotation, Overrides, AnnotationPlace], list[Item]]


@dataclass(frozen=True, slots=True)
class Annotation:
    """One kind of annotation."""

    name: str
    """That of its `AnnotationKind`."""
    paint: Paint
    honours: frozenset[str]
    """The overrides that have an effect."""
    every_panel: bool = False
    """True if it is drawn over the panels below the price too."""
    at_axis: bool = False
    """True if its price is written at the value axis."""
