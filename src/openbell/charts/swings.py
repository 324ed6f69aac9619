"""Draws swings: the legs of a zigzag with the prices of its turns, and triangles at extremes."""

from __future__ import annotations

import numpy as np

from openbell.charts import names_at_lines
from openbell.charts.names_at_lines import Place
from openbell.charts.panels import Panel, Picture
from openbell.charts.scales import Scale
from openbell.charts.scene import Band, Layer, Stroke
from openbell.indicators.channels import Direction
from openbell.indicators.evaluation import Computed

_LEAST_APART = 44.0
"""The least distance in pixels between two turns whose prices are written."""
_HALF, _TALL, _GAP = 4.0, 6.0, 4.0
"""Pixels: half the width of a triangle, its height, and its distance from the bar."""


def zigzag(layer: Layer, picture: Picture, panel: Panel, computed: Computed) -> None:
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
        names_at_lines.write(
            layer,
            Place(picture, panel),
            x,
            y - 9 if price > other else y + 9,
            panel.number_format.text(price),
            color,
            "center",
        )
        written = x


def extremes(layer: Layer, picture: Picture, scale: Scale, computed: Computed) -> None:
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
