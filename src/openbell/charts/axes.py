"""Axes: the grid, the times below, the values at the right with a tag for the latest value, and lines between panels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from openbell.charts import fonts
from openbell.charts.paint import line_colors
from openbell.charts.panels import Panel, Picture, TimeMark
from openbell.charts.price import price_color
from openbell.charts.scene import Box, Boxes, Color, Label, Scene, box
from openbell.charts.themes import text_on
from openbell.charts.time_axis import EDGE

TIME_AXIS = 28.0
_BEFORE, _AFTER = 9.0, 8.0
"""Pixels before and after the label of a value."""
_MIN_WIDTH = 44.0
_HALF_TAG = 9.0
_TAG_SPACE = 15.0
"""The least distance between a label and a tag."""
_MIN_TAG_HEIGHT = 14.0


class Tag(NamedTuple):
    """The latest value, or the price of a drawing, in a coloured box on the axis."""

    y: float
    text: str
    color: Color
    half: float


def width(picture: Picture, panels: list[Panel]) -> float:
    """Returns the width of the value axis, so that all labels fit."""
    widths, size = [_MIN_WIDTH - _BEFORE - _AFTER], picture.options.font_size
    for panel in panels:
        widths += [fonts.width(panel.number_format.text(value), size) for value in panel.ticks]
        widths += [fonts.width(tag.text, size, True) for tag in tags_of(picture, panel)]
    return float(np.ceil(max(widths))) + _BEFORE + _AFTER


def tags_of(picture: Picture, panel: Panel) -> list[Tag]:
    """Returns the tag with the last price, or with the last value of the panel's first line or histogram, and the marks.

    Tags that would overlap are moved apart, away from the first one.
    """
    if not len(picture.bars) or panel.empty or panel.box.height < _MIN_TAG_HEIGHT:
        return []
    half = min(_HALF_TAG, panel.box.height / 2)
    shown = picture.options.last_value if panel.indicator is None else picture.options.study_last_value
    first = [_newest(picture, panel)] if shown else []
    inside = [each for each in panel.marks if panel.box.top <= panel.scale.at(each.price) <= panel.box.bottom]
    values = [(value, color) for value, color in (*first, *inside) if np.isfinite(value)]
    places = _apart([panel.scale.at(value) for value, _ in values], 2 * half)
    low, high = panel.box.top + half, panel.box.bottom - half
    return [
        Tag(min(max(y, low), high), panel.number_format.text(value), color, half)
        for y, (value, color) in zip(places, values, strict=True)
    ]


def _apart(places: list[float], space: float) -> list[float]:
    """Returns the places with at least `space` between them: the first stays, the others are moved away from it."""
    found = list(places)
    order = sorted(range(len(places)), key=lambda at: places[at])
    first = order.index(0) if order else 0
    for before, at in pairwise(order[first:]):
        found[at] = max(found[at], found[before] + space)
    for after, at in pairwise(order[first::-1]):
        found[at] = min(found[at], found[after] - space)
    return found


def _newest(picture: Picture, panel: Panel) -> tuple[float, Color]:
    bars, theme = picture.bars, picture.theme
    if panel.indicator is None:
        last = float(bars.close[-1])
        return last, price_color(picture, bool(last >= bars.open[-1]))
    channels = panel.indicator.channels
    if channels.lines:
        return float(channels.lines[0].values[-1]), line_colors(picture, panel.indicator, 0)[0]
    last = float(channels.histogram[0].values[-1])
    return last, theme.up if last >= 0 else theme.down


def grid(scene: Scene, picture: Picture, panel: Panel) -> None:
    """Draws a faint line at every tick."""
    layer, area = scene.layer(panel.box), panel.box
    color = picture.theme.grid
    y = np.rint([panel.scale.at(value) for value in panel.ticks])
    x = np.rint(picture.x[[tick.index for tick in picture.times]]) if picture.times else np.empty(0)
    layer.items.append(Boxes(np.full(len(y), area.left), y, np.full(len(y), area.right), y + 1, color))
    layer.items.append(Boxes(x, np.full(len(x), area.top), x + 1, np.full(len(x), area.bottom), color))


def times(scene: Scene, picture: Picture, marks: Sequence[TimeMark] = ()) -> None:
    """Draws the time labels below the panels; a label that would touch a mark is left out."""
    layer = scene.layer()
    theme, plot = picture.theme, picture.plot
    middle = plot.bottom + TIME_AXIS / 2
    for tick in picture.times:
        x = float(picture.x[tick.index])
        half = max((fonts.width(mark.text, picture.options.font_size, True) for mark in marks), default=0.0) / 2
        free = all(abs(x - mark.x) > half + EDGE for mark in marks)
        if EDGE - 6 < x < plot.right - EDGE + 6 and free:
            color = theme.text if tick.major else theme.faint
            layer.items.append(Label(x, middle, tick.text, picture.options.font_size, color, "center", tick.major))


def time_tags(scene: Scene, picture: Picture, marks: Sequence[TimeMark]) -> None:
    """Draws the times of drawings in coloured boxes below the panels."""
    layer = scene.layer(Box(0.0, picture.plot.bottom, picture.plot.right, float(picture.look.height)))
    middle, size = picture.plot.bottom + TIME_AXIS / 2, picture.options.font_size
    for mark in marks:
        half = fonts.width(mark.text, size, True) / 2 + 6
        x = min(max(mark.x, half), picture.plot.right - half)
        layer.items.append(box(x - half, middle - _HALF_TAG, x + half, middle + _HALF_TAG, mark.color))
        layer.items.append(Label(x, middle, mark.text, size, text_on(mark.color), "center", True))


def frame(scene: Scene, picture: Picture, panels: list[Panel]) -> None:
    """Draws the lines between the panels and the axes."""
    layer = scene.layer()
    theme, plot, look = picture.theme, picture.plot, picture.look
    layer.items.append(box(plot.right, 0, plot.right + 1, look.height, theme.border))
    layer.items.append(box(0, plot.bottom, look.width, plot.bottom + 1, theme.border))
    for panel in panels[1:]:
        layer.items.append(box(0, panel.box.top - 1, look.width, panel.box.top, theme.border))


def values(scene: Scene, picture: Picture, panels: list[Panel]) -> None:
    """Draws the value labels and tags; a label that would touch a tag is left out."""
    layer = scene.layer()
    theme, right, size = picture.theme, picture.plot.right, picture.options.font_size
    for panel in panels:
        tags = tags_of(picture, panel)
        for value in panel.ticks:
            y = panel.scale.at(value)
            if all(abs(y - tag.y) > _TAG_SPACE for tag in tags):
                layer.items.append(Label(right + _BEFORE, y, panel.number_format.text(value), size, theme.faint))
        for tag in reversed(tags):
            layer.items.append(box(right + 1, tag.y - tag.half, picture.look.width, tag.y + tag.half, tag.color))
            layer.items.append(Label(right + _BEFORE, tag.y, tag.text, size, text_on(tag.color), bold=True))
