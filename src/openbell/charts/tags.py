"""Tags: the latest values of lines, and the prices of drawings, in coloured boxes on the value axis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from openbell.charts.paint import line_colors, style_of
from openbell.charts.panels import Mark, Panel, Picture
from openbell.charts.price import last_color
from openbell.charts.scene import Color
from openbell.charts.styles import style_for
from openbell.indicators.evaluation import Computed

_HALF = 9.0
_LEAST_HEIGHT = 14.0
"""The least height of a panel with tags."""


class Tag(NamedTuple):
    """A value in a coloured box on the axis, from `y` − `half` to `y` + `half`."""

    y: float
    text: str
    color: Color
    half: float


def tags_of(picture: Picture, panel: Panel) -> list[Tag]:
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
    half, area = min(_HALF, panel.box.height / 2), panel.box
    places = [(panel.scale.at(mark.price), mark) for mark in marks if np.isfinite(mark.price)]
    shown = [(y, mark) for y, mark in places if area.top <= y <= area.bottom][: int(area.height / (2 * half))]
    apart = _apart([y for y, _ in shown], 2 * half, area.top + half, area.bottom - half)
    return [
        Tag(y, panel.number_format.text(mark.price), mark.color, half)
        for y, (_, mark) in zip(apart, shown, strict=True)
    ]


def last_marks(picture: Picture, computed: Computed) -> Iterator[Mark]:
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
