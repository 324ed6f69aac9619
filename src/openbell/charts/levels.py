"""Draws lines that are levels, swings, and the names written at them, such as VWAP, R1 or POC.

Levels are pivots with a gap between periods and retracements of the newest swing; swings are the legs of a zigzag with the
prices of its turns, and triangles at extremes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.charts import fonts
from openbell.charts.config.plots import LineStyle
from openbell.charts.panels import ChartPicture, Panel
from openbell.charts.scales import Scale
from openbell.charts.scene import Anchor, Band, Color, Label, Layer, Stroke, box
from openbell.charts.styles import style_for
from openbell.charts.themes import faded
from openbell.indicators.channels import Direction, HorizontalBar, Line
from openbell.indicators.evaluation import Computed
from openbell.indicators.regular_hours import day_starts, session_days
from openbell.market.bars import Values

Indices = npt.NDArray[np.intp]
_LEAST_NAMED = 60.0
"""The least width in pixels of an earlier level that has a name."""
_LEAST_APART = 44.0
"""The least distance in pixels between two turns whose prices are written."""
_HALF, _TALL, _GAP = 4.0, 6.0, 4.0
"""Pixels: half the width of a triangle, its height, and its distance from the bar."""
NAME_SIZE = 10.0
_NAME_HALF = 6.0
_MARGIN = 2.0
_LEAST_HEIGHT = 100.0
"""Lower panels have no names: there the legend takes most of the room."""


def broken(picture: ChartPicture, x: Values, *series: Values) -> tuple[Values, ...]:
    """Returns the x and the series with a gap before each session but the first. Bars of a day or more have no gaps."""
    if not picture.bars.timeframe.intraday:
        return (x, *series)
    begins = day_starts(session_days(picture.bars))[1:]
    return (np.insert(x, begins, x[begins]), *(np.insert(values, begins, np.nan) for values in series))


def names_at_ends(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed, colors: list[Color]) -> None:
    """Writes the names of lines after their last values."""
    names = style_for(computed).names
    for line, color in zip(computed.channels.lines, colors, strict=False):
        known = np.flatnonzero(np.isfinite(line.values))
        if line.label not in names or not len(known):
            continue
        text = names[line.label].format(**computed.request.settings)
        x, y = float(picture.x[known[-1]]) + picture.slot / 2 + 1, panel.scale.at(float(line.values[known[-1]]))
        if x + name_width(text) <= picture.plot.right:
            write_name(layer, NamePlace(picture, panel), x, y, text, color)
        else:
            write_name(layer, NamePlace(picture, panel), picture.plot.right - 2, y - 8, text, color, "right")


def levels(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed, colors: list[Color]) -> None:
    """Draws horizontal lines with a gap where their value changes. The newest reach to the right edge."""
    newest = []
    plot = picture.plots.get(computed.request.key)
    for line, color in zip(computed.channels.lines, colors, strict=False):
        begins, ends = _runs(line)
        if not len(begins):
            continue
        style = plot.styles.get(line.label, LineStyle()) if plot else LineStyle()
        left, right = picture.x[begins] - picture.slot / 2, picture.x[ends] + picture.slot / 2
        if ends[-1] == len(picture.x) - 1:
            right[-1] = picture.plot.right
        y = panel.scale.y(line.values[begins])
        layer.items.append(
            Stroke(
                np.column_stack((left, right, right)).ravel(),
                np.column_stack((y, y, np.full(len(y), np.nan))).ravel(),
                color,
                style.width or (plot.width if plot else None) or (1.5 if line.label == "P" else 1.0),
            )
        )
        if line.label not in style_for(computed).names:
            continue
        for at in range(len(begins)):
            if at == len(begins) - 1 and right[at] == picture.plot.right:
                newest.append((float(y[at]), line.label, color))
            elif right[at] - left[at] >= _LEAST_NAMED:
                write_name(layer, NamePlace(picture, panel), float(left[at]) + 2, float(y[at]) - 7, line.label, color)
    write_names(layer, NamePlace(picture, panel), newest)


def _runs(line: Line) -> tuple[Indices, Indices]:
    """Returns the indexes of the first and the last bar of each run of equal values."""
    values = line.values
    begins = np.flatnonzero(np.concatenate((np.ones(min(1, len(values)), dtype=bool), values[1:] != values[:-1])))
    ends = np.append(begins[1:], len(values)) - 1
    known = np.isfinite(values[begins])
    return begins[known], ends[known]


def retracement(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed, colors: list[Color]) -> None:
    """Draws the levels of the newest swing from its start to the right edge, and the swing itself as a dashed line."""
    lines, bars, scale = computed.channels.lines, picture.bars, panel.scale
    if not len(bars) or not all(np.isfinite(line.values[-1]) for line in lines):
        return
    prices = [float(line.values[-1]) for line in lines]
    end, start = (_bar_at(picture, price) for price in (prices[0], prices[-1]))
    left = float(picture.x[start]) if start is not None else picture.plot.left
    names = []
    for line, price, color in zip(lines, prices, colors, strict=True):
        ratio = float(line.label.removeprefix("level_").replace("_", ".")) / 100
        y = scale.at(price)
        layer.items.append(Stroke(np.array([left, picture.plot.right]), np.array([y, y]), color, 1.0))
        names.append((y, f"{ratio:g} ({panel.number_format.text(price)})", color))
    if start is not None and end is not None and start < end:
        swing = scale.y(np.array([prices[-1], prices[0]]))
        layer.items.append(Stroke(picture.x[[start, end]], swing, faded(picture.theme.faint, 200), 1.0, (4.0, 4.0)))
    write_names(layer, NamePlace(picture, panel), names)


def _bar_at(picture: ChartPicture, price: float) -> int | None:
    """Returns the newest bar with this high or low; None if no bar that is shown has it."""
    found = np.flatnonzero((picture.bars.high == price) | (picture.bars.low == price))
    return int(found[-1]) if len(found) else None


def named_levels(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed) -> None:
    """Draws the horizontal lines of an overlay with their names: solid at a point of control, dashed elsewhere.

    The lines of a session begin at its first bar.
    """
    color, theme, names = picture.inks[computed.request.key].main, picture.theme, []
    begins = {bar.y: _start(picture, bar) for bar in computed.channels.hbars if bar.left}
    begins |= {segment.y1: float(picture.x[segment.x1]) for segment in computed.channels.divlines}
    for value in computed.channels.hlines:
        control = value.label.endswith("POC")
        own = theme.highlight if control else color
        y = panel.scale.at(value)
        edges = np.array([begins.get(float(value), picture.plot.left), picture.plot.right])
        layer.items.append(Stroke(edges, np.array([y, y]), faded(own, 190), 1.0, None if control else (6.0, 4.0)))
        if value.label:
            names.append((y, value.label, own))
    write_names(layer, NamePlace(picture, panel), names)


def _start(picture: ChartPicture, bar: HorizontalBar) -> float:
    """Returns the x at which a bar among the bars begins."""
    return float(picture.x[0]) + picture.slot * (bar.offset * len(picture.x) - 0.5)


def zigzag(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed) -> None:
    """Draws the legs, the price of each turn, and a dashed leg from the last turn to the newest extreme."""
    legs, plot = computed.channels.divlines, picture.plots.get(computed.request.key)
    if not legs:
        return
    color, wide = picture.inks[computed.request.key].main, (plot.width if plot else None) or 2.0
    turns = [(legs[0].x1, legs[0].y1), *((leg.x2, leg.y2) for leg in legs)]
    at = np.array([index for index, _ in turns])
    prices = np.array([price for _, price in turns])
    layer.items.append(Stroke(picture.x[at], panel.scale.y(prices), color, wide))
    high = prices[-1] > prices[-2]
    later = (picture.bars.low if high else -picture.bars.high)[at[-1] + 1 :]
    if len(later):
        newest = int(at[-1]) + 1 + int(later.argmin())
        extreme = float(picture.bars.low[newest] if high else picture.bars.high[newest])
        ends = panel.scale.y(np.array([prices[-1], extreme]))
        layer.items.append(Stroke(picture.x[[at[-1], newest]], ends, color, 1.5, (4.0, 4.0)))
    written = -np.inf
    for place, (index, price) in enumerate(turns):
        x, y = float(picture.x[index]), panel.scale.at(price)
        if x - written < _LEAST_APART:
            continue
        other = turns[place - 1][1] if place else turns[1][1]
        write_name(
            layer,
            NamePlace(picture, panel),
            x,
            y - 9 if price > other else y + 9,
            panel.number_format.text(price),
            color,
            "center",
        )
        written = x


def extremes(layer: Layer, picture: ChartPicture, scale: Scale, computed: Computed) -> None:
    """Draws a triangle beyond the high or low that each signal confirms, `length` bars before it."""
    theme, length = picture.theme, int(computed.request.settings["length"])
    for signal in computed.channels.signals:
        index = signal.index - length
        if index < 0:
            continue
        top = computed.request.indicator.signals[signal.label] is Direction.DOWN
        x, y = float(picture.x[index]), scale.at(signal.value)
        tip, base = (y - _GAP - _TALL, y - _GAP) if top else (y + _GAP + _TALL, y + _GAP)
        sides, flat = np.array([base, tip, base]), np.full(3, base)
        upper, lower = (sides, flat) if top else (flat, sides)
        color = theme.up if top else theme.down
        layer.items.append(Band(np.array([x - _HALF, x, x + _HALF]), upper, lower, color))


class NamePlace(NamedTuple):
    """A panel of a picture."""

    picture: ChartPicture
    panel: Panel


def name_width(text: str) -> float:
    """Returns the width of a name."""
    return fonts.width(text, NAME_SIZE, True) + 2 * _MARGIN


def write_name(
    layer: Layer, place: NamePlace, x: float, y: float, text: str, color: Color, anchor: Anchor = "left"
) -> None:
    """Writes a name at a line, on a box of the background's colour that covers most of what is behind it.

    It is moved down if it would overlap a name that the layer has already. It is left out if it would touch the legend or
    leave the panel.
    """
    picture, panel = place
    if panel.box.height < _LEAST_HEIGHT:
        return
    wide = name_width(text)
    left = max(x - wide if anchor == "right" else x - wide / 2 if anchor == "center" else x, picture.plot.left)
    for other in sorted(_names_between(layer, left, left + wide)):
        if abs(other - y) < 2 * _NAME_HALF:
            y = other + 2 * _NAME_HALF
    if (
        panel.corner.covers(left, y - _NAME_HALF)
        or not panel.box.top + _NAME_HALF <= y <= panel.box.bottom - _NAME_HALF
    ):
        return
    layer.items.append(box(left, y - _NAME_HALF, left + wide, y + _NAME_HALF, faded(picture.theme.background, 190)))
    layer.items.append(Label(left + _MARGIN, y, text, NAME_SIZE, color, "left", True))


def _names_between(layer: Layer, left: float, right: float) -> list[float]:
    """Returns the y of the names that are written between two x."""
    return [
        item.y
        for item in layer.items
        if isinstance(item, Label) and item.x < right and item.x + name_width(item.text) > left
    ]


def write_names(layer: Layer, place: NamePlace, names: Sequence[tuple[float, str, Color]]) -> None:
    """Writes names at the right edge, each above its y."""
    for y, text, color in sorted(names):
        write_name(layer, place, place.picture.plot.right - 3, y - _NAME_HALF - 1, text, color, "right")
