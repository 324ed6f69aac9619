"""Axes: the grid, the times below, the values at the right with tags in coloured boxes, and lines between panels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from openbell.charts import fonts
from openbell.charts.paint import line_colors, style_of
from openbell.charts.panels import ChartPicture, Mark, Panel, TimeMark
from openbell.charts.price import last_color
from openbell.charts.scene import Box, Boxes, Color, Label, Scene, box
from openbell.charts.styles import style_for
from openbell.charts.themes import text_on
from openbell.charts.time_axis import newest_time
from openbell.indicators.evaluation import Computed

TIME_AXIS = 28.0
_BEFORE, _AFTER = 9.0, 8.0
"""Pixels before and after the label of a value."""
_MIN_WIDTH = 44.0
_HALF_TAG = 9.0
_TAG_SPACE = 15.0
"""The least distance between a label and a tag."""
_NEWEST_SHARE = 0.36
"""The largest share of the width for the newest bar's time of day with its date."""
_EDGE, _SPACE = 2.0, 8.0
"""The least distance of a time label from the left edge, and of the newest bar's time from the label before it."""
_LEAST_HEIGHT = 14.0
"""The least height of a panel with tags."""


def width(picture: ChartPicture, panels: list[Panel], tags: list[list[Tag]]) -> float:
    """Returns the width of the value axis, so that all labels fit. `tags` are those of each panel."""
    widths, size = [_MIN_WIDTH - _BEFORE - _AFTER], picture.options.font_size
    widths += [fonts.width(tag.text, size, True) for its_tags in tags for tag in its_tags]
    for panel in panels:
        widths += [fonts.width(panel.number_format.tick(value), size) for value in panel.ticks]
    return float(np.ceil(max(widths))) + _BEFORE + _AFTER


def grid(scene: Scene, picture: ChartPicture, panel: Panel) -> None:
    """Draws a faint line at every tick."""
    layer, area = scene.layer(panel.box), panel.box
    color = picture.theme.grid
    y = np.rint([panel.scale.at(value) for value in panel.ticks])
    x = np.rint(picture.x[[tick.index for tick in picture.times]]) if picture.times else np.empty(0)
    layer.items.append(Boxes(np.full(len(y), area.left), y, np.full(len(y), area.right), y + 1, color))
    layer.items.append(Boxes(x, np.full(len(x), area.top), x + 1, np.full(len(x), area.bottom), color))


def times(scene: Scene, picture: ChartPicture, marks: Sequence[TimeMark] = ()) -> None:
    """Draws the time labels below the panels, and the newest bar's time at the right.

    A label that would touch that time or a mark is left out.
    """
    layer = scene.layer()
    theme, size = picture.theme, picture.options.font_size
    newest = _newest(picture)
    middle, right = picture.plot.bottom + TIME_AXIS / 2, _left_of(newest, picture)
    for tick in picture.times:
        x, half = float(picture.x[tick.index]), fonts.width(tick.text, size, tick.major) / 2
        free = all(abs(x - mark.x) > half + fonts.width(mark.text, size, True) / 2 + _SPACE for mark in marks)
        if x - half >= _EDGE and x + half <= right and free:
            color = theme.text if tick.major else theme.faint
            layer.items.append(Label(x, middle, tick.text, size, color, "center", tick.major))
    if newest:
        layer.items.append(Label(picture.look.width - _AFTER, middle, newest, size, theme.text, "right"))


def _newest(picture: ChartPicture) -> str:
    """Returns the newest bar's time."""
    width, options = picture.look.width, picture.options
    return newest_time(picture.bars, options.zone, options.font_size, width * _NEWEST_SHARE)


def _left_of(newest: str, picture: ChartPicture) -> float:
    """Returns the right edge of the time labels, which is left of the newest bar's time."""
    start = picture.look.width - _AFTER - fonts.width(newest, picture.options.font_size)
    return min(start - _SPACE, picture.plot.right)


def time_tags(scene: Scene, picture: ChartPicture, marks: Sequence[TimeMark]) -> None:
    """Draws the times of annotations in coloured boxes below the panels."""
    right = _left_of(_newest(picture), picture)
    layer = scene.layer(Box(0.0, picture.plot.bottom, right, float(picture.look.height)))
    middle, size = picture.plot.bottom + TIME_AXIS / 2, picture.options.font_size
    for mark in marks:
        half = fonts.width(mark.text, size, True) / 2 + 6
        x = min(max(mark.x, half), right - half)
        layer.items.append(box(x - half, middle - _HALF_TAG, x + half, middle + _HALF_TAG, mark.color))
        layer.items.append(Label(x, middle, mark.text, size, text_on(mark.color), "center", True))


def frame(scene: Scene, picture: ChartPicture, panels: list[Panel]) -> None:
    """Draws the lines between the panels and the axes."""
    layer = scene.layer()
    theme, plot, look = picture.theme, picture.plot, picture.look
    layer.items.append(box(plot.right, 0, plot.right + 1, plot.bottom, theme.border))
    layer.items.append(box(0, plot.bottom, look.width, plot.bottom + 1, theme.border))
    for panel in panels[1:]:
        layer.items.append(box(0, panel.box.top - 1, look.width, panel.box.top, theme.border))


def values(scene: Scene, picture: ChartPicture, panels: list[Panel], tags: list[list[Tag]]) -> None:
    """Draws the value labels and tags; a label that would touch a tag is left out."""
    layer = scene.layer()
    theme, right, size = picture.theme, picture.plot.right, picture.options.font_size
    for panel, its_tags in zip(panels, tags, strict=True):
        for value in panel.ticks:
            y = panel.scale.at(value)
            if all(abs(y - tag.y) > _TAG_SPACE for tag in its_tags):
                layer.items.append(Label(right + _BEFORE, y, panel.number_format.tick(value), size, theme.faint))
        for tag in reversed(its_tags):
            layer.items.append(box(right + 1, tag.y - tag.half, picture.look.width, tag.y + tag.half, tag.color))
            layer.items.append(Label(right + _BEFORE, tag.y, tag.text, size, text_on(tag.color), bold=True))


class Tag(NamedTuple):
    """A value in a coloured box on the axis, from `y` − `half` to `y` + `half`."""

    y: float
    text: str
    color: Color
    half: float


def tags_of(picture: ChartPicture, panel: Panel) -> list[Tag]:
    """Returns the tags of a panel: first the last price, then the marks, or the last value of each line and histogram.

    Tags that would overlap are moved apart, away from the first one. The last ones are left out if there is no room.
    """
    if not len(picture.bars) or panel.empty or panel.box.height < _LEAST_HEIGHT:
        return []
    marks = list(panel.marks)
    if panel.indicator is None and picture.options.last_value:
        marks.insert(0, Mark(float(picture.bars.close[-1]), last_color(picture)))
    elif panel.indicator is not None and picture.options.study_last_value:
        for each in panel.indicators:
            marks += last_marks(picture, each)
    half, area = min(_HALF_TAG, panel.box.height / 2), panel.box
    places = [(panel.scale.at(mark.price), mark) for mark in marks if np.isfinite(mark.price)]
    shown = [(y, mark) for y, mark in places if area.top <= y <= area.bottom][: int(area.height / (2 * half))]
    apart = _apart([y for y, _ in shown], 2 * half, area.top + half, area.bottom - half)
    return [
        Tag(y, panel.number_format.text(mark.price), mark.color, half)
        for y, (_, mark) in zip(apart, shown, strict=True)
    ]


def last_marks(picture: ChartPicture, computed: Computed) -> Iterator[Mark]:
    """Yields the last value of each line and histogram, if it has one, in its colour. Candles have only their close."""
    channels, theme = computed.channels, picture.theme
    lines = list(zip((*channels.lines, *channels.histogram), line_colors(picture, computed), strict=True))
    if style_for(computed).lines == "candles":
        lines = lines[-1:]
    for at, (line, color) in enumerate(lines):
        value = float(line.values[-1]) if len(line.values) else float("nan")
        own = at < len(channels.lines) or style_of(picture, computed, line.label).color is not None
        if np.isfinite(value):
            yield Mark(value, color if own else theme.up if value >= 0 else theme.down)


def _apart(places: list[float], space: float, low: float, high: float) -> list[float]:
    """Returns the places between `low` and `high` with at least `space` between them, if there is room.

    The first stays where it is unless the others need its place; the others are moved away from it.
    """
    found = list(places)
    order = sorted(range(len(places)), key=lambda at: places[at])
    if not order:
        return found
    first = order.index(0)
    for before, at in pairwise(order[first:]):
        found[at] = max(found[at], found[before] + space)
    for after, at in pairwise(order[first::-1]):
        found[at] = min(found[at], found[after] - space)
    least = low
    for at in order:
        found[at] = least = max(found[at], least)
        least += space
    most = high
    for at in reversed(order):
        found[at] = most = min(found[at], most)
        most -= space
    return found
