"""Draws lines that are levels: pivots with a gap between periods, retracements of the newest swing, and their names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.charts import names_at_lines
from openbell.charts.config.plots import LineStyle
from openbell.charts.names_at_lines import Place
from openbell.charts.panels import Panel, Picture
from openbell.charts.scene import Color, Layer, Stroke
from openbell.charts.styles import style_for
from openbell.charts.themes import faded
from openbell.indicators.channels import HorizontalBar, Line
from openbell.indicators.evaluation import Computed
from openbell.indicators.regular_hours import day_starts, session_days
from openbell.market.bars import Values

Indices = npt.NDArray[np.intp]
_LEAST_NAMED = 60.0
"""The least width in pixels of an earlier level that has a name."""


def broken(picture: Picture, x: Values, *series: Values) -> tuple[Values, ...]:
    """Returns the x and the series with a gap before each session but the first. Bars of a day or more have no gaps."""
    if not picture.bars.timeframe.intraday:
        return (x, *series)
    begins = day_starts(session_days(picture.bars))[1:]
    return (np.insert(x, begins, x[begins]), *(np.insert(values, begins, np.nan) for values in series))


def names_at_ends(layer: Layer, picture: Picture, panel: Panel, computed: Computed, colors: list[Color]) -> None:
    """Writes the names of lines after their last values."""
    names = style_for(computed).names
    for line, color in zip(computed.channels.lines, colors, strict=False):
        known = np.flatnonzero(np.isfinite(line.values))
        if line.label not in names or not len(known):
            continue
        text = names[line.label].format(**computed.request.settings)
        x, y = float(picture.x[known[-1]]) + picture.slot / 2 + 1, panel.scale.at(float(line.values[known[-1]]))
        if x + names_at_lines.width(text) <= picture.plot.right:
            names_at_lines.write(layer, Place(picture, panel), x, y, text, color)
        else:
            names_at_lines.write(layer, Place(picture, panel), picture.plot.right - 2, y - 8, text, color, "right")


def levels(layer: Layer, picture: Picture, panel: Panel, computed: Computed, colors: list[Color]) -> None:
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
                names_at_lines.write(
                    layer, Place(picture, panel), float(left[at]) + 2, float(y[at]) - 7, line.label, color
                )
    names_at_lines.write_column(layer, Place(picture, panel), newest)


def _runs(line: Line) -> tuple[Indices, Indices]:
    """Returns the indexes of the first and the last bar of each run of equal values."""
    values = line.values
    begins = np.flatnonzero(np.concatenate((np.ones(min(1, len(values)), dtype=bool), values[1:] != values[:-1])))
    ends = np.append(begins[1:], len(values)) - 1
    known = np.isfinite(values[begins])
    return begins[known], ends[known]


def retracement(layer: Layer, picture: Picture, panel: Panel, computed: Computed, colors: list[Color]) -> None:
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
    names_at_lines.write_column(layer, Place(picture, panel), names)


def _bar_at(picture: Picture, price: float) -> int | None:
    """Returns the newest bar with this high or low; None if no bar that is shown has it."""
    found = np.flatnonzero((picture.bars.high == price) | (picture.bars.low == price))
    return int(found[-1]) if len(found) else None


def named_levels(layer: Layer, picture: Picture, panel: Panel, computed: Computed) -> None:
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
    names_at_lines.write_column(layer, Place(picture, panel), names)


def _start(picture: Picture, bar: HorizontalBar) -> float:
    """Returns the x at which a bar among the bars begins."""
    return float(picture.x[0]) + picture.slot * (bar.offset * len(picture.x) - 0.5)
