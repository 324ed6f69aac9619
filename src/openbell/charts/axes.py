"""Axes: the grid, the times below, the values at the right with a tag for the latest value, and lines between panels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from openbell.charts import fonts
from openbell.charts.panels import Panel, Picture
from openbell.charts.scene import Boxes, Color, Label, Scene, box
from openbell.charts.themes import Theme
from openbell.charts.time_axis import EDGE
from openbell.market.bars import Bars

TIME_AXIS = 28.0
_SIZE = 11.0
_BEFORE, _AFTER = 9.0, 8.0
"""Pixels before and after the label of a value."""
_MIN_WIDTH = 44.0
_HALF_TAG = 9.0
_MIN_TAG_HEIGHT = 14.0
_WHITE: Color = (255, 255, 255, 255)


class Tag(NamedTuple):
    """The latest value, in a coloured box on the axis."""

    y: float
    text: str
    color: Color
    half: float


def width(panels: list[Panel], bars: Bars, theme: Theme) -> float:
    """Returns the width of the value axis, so that all labels fit."""
    widths = [_MIN_WIDTH - _BEFORE - _AFTER]
    for panel in panels:
        widths += [fonts.width(panel.number_format.text(value), _SIZE) for value in panel.ticks]
        if tag := tag_of(panel, bars, theme):
            widths.append(fonts.width(tag.text, _SIZE, True))
    return float(np.ceil(max(widths))) + _BEFORE + _AFTER


def tag_of(panel: Panel, bars: Bars, theme: Theme) -> Tag | None:
    """Returns the tag with the last price, or with the last value of the panel's first line or histogram."""
    if not len(bars) or panel.empty or panel.box.height < _MIN_TAG_HEIGHT:
        return None
    value, color = _newest(panel, bars, theme)
    if not np.isfinite(value):
        return None
    half = min(_HALF_TAG, panel.box.height / 2)
    y = min(max(panel.scale.at(value), panel.box.top + half), panel.box.bottom - half)
    return Tag(y, panel.number_format.text(value), color, half)


def _newest(panel: Panel, bars: Bars, theme: Theme) -> tuple[float, Color]:
    if panel.indicator is None:
        last = float(bars.close[-1])
        return last, theme.up if last >= bars.open[-1] else theme.down
    channels = panel.indicator.channels
    if channels.lines:
        return float(channels.lines[0].values[-1]), theme.lines[0]
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


def times(scene: Scene, picture: Picture) -> None:
    """Draws the time labels below the panels."""
    layer = scene.layer()
    theme, plot = picture.theme, picture.plot
    middle = plot.bottom + TIME_AXIS / 2
    for tick in picture.times:
        x = float(picture.x[tick.index])
        if EDGE - 6 < x < plot.right - EDGE + 6:
            color = theme.text if tick.major else theme.faint
            layer.items.append(Label(x, middle, tick.text, _SIZE, color, "center", tick.major))


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
    theme, right = picture.theme, picture.plot.right
    for panel in panels:
        tag = tag_of(panel, picture.bars, theme)
        for value in panel.ticks:
            y = panel.scale.at(value)
            if tag is None or abs(y - tag.y) > 15:
                layer.items.append(Label(right + _BEFORE, y, panel.number_format.text(value), _SIZE, theme.faint))
        if tag:
            layer.items.append(box(right + 1, tag.y - tag.half, picture.look.width, tag.y + tag.half, tag.color))
            layer.items.append(Label(right + _BEFORE, tag.y, tag.text, _SIZE, _WHITE, bold=True))
