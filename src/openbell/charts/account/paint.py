"""Draws an account over the price: lines with labels at the left, where the oldest bars are, and an arrow per execution."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.charts import fonts
from openbell.charts.account.overlay import (
    AccountLevel,
    AccountOverlay,
    MarkedExecution,
    PositionEffect,
    Purpose,
    quantity_text,
)
from openbell.charts.panels import ChartPicture, Mark, Panel
from openbell.charts.scene import Color, Dot, Label, Layer, Stroke, box
from openbell.charts.themes import Theme, faded
from openbell.charts.trade_markers import GAP, TALL, arrow
from openbell.market.bars import Values
from openbell.trading.orders import Side

_LEFT, _SIZE, _ROW = 10.0, 11.0, 15.0
"""Pixels: the left edge of the labels of levels, their font size, and the least distance between two."""
_TEXT, _GAP, _FARTHEST = 10.0, 8.0, 20.0
"""The text at an arrow: its font size, its least distance in pixels, and how much further away it may be moved."""
_DASH = (5.0, 4.0)


def marks_of(overlay: AccountOverlay, theme: Theme) -> list[Mark]:
    """Returns the prices to write at the axis."""
    return [Mark(float(level.price), _color(level, theme)) for level in overlay.levels]


def painter_of(overlay: AccountOverlay) -> Callable[[Layer, ChartPicture, Panel], None]:
    """Returns the function that draws an overlay on the price panel."""
    return partial(_draw, overlay)


def _draw(overlay: AccountOverlay, layer: Layer, picture: ChartPicture, panel: Panel) -> None:
    ordered = sorted(overlay.levels, key=lambda level: -level.price)
    levels = [(level, panel.scale.at(float(level.price))) for level in ordered]
    _lines(levels, layer, picture, panel)
    _executions(overlay.executions, layer, picture, panel)
    _labels(levels, layer, picture, panel)


def _color(level: AccountLevel, theme: Theme) -> Color:
    return {
        Purpose.AVERAGE: theme.text,
        Purpose.STOP: theme.down,
        Purpose.TARGET: theme.up,
        Purpose.ORDER: theme.accent,
        Purpose.ALERT: theme.highlight,
    }[level.purpose]


def _lines(levels: list[tuple[AccountLevel, float]], layer: Layer, picture: ChartPicture, panel: Panel) -> None:
    """Draws a line for each level inside the scale."""
    area = panel.box
    for level, y in levels:
        if area.top <= y <= area.bottom:
            color = faded(_color(level, picture.theme), 110 if level.waits else 190)
            dash = None if level.purpose is Purpose.AVERAGE else _DASH
            line = np.array([np.floor(y) + 0.5] * 2)
            layer.items.append(Stroke(np.array([area.left, area.right]), line, color, 1.0, dash))


def _labels(levels: list[tuple[AccountLevel, float]], layer: Layer, picture: ChartPicture, panel: Panel) -> None:
    """Writes what each level is for; a level outside the scale is written at the edge of the panel, with its price.

    If not all fit, those nearest to the last price are written.
    """
    area, theme = panel.box, picture.theme
    low, high = area.top + panel.corner.bottom + _ROW / 2, area.bottom - _ROW / 2
    room = max(0, int((high - low) / _ROW) + 1)
    if len(levels) > room:
        last = panel.scale.at(float(picture.bars.close[-1]))
        nearest = sorted(levels, key=lambda each: abs(each[1] - last))[:room]
        levels = [each for each in levels if each in nearest]
    for (level, y), place in zip(levels, _apart([y for _, y in levels], low, high), strict=True):
        text = level.text
        if not area.top <= y <= area.bottom:
            text += f" at {panel.number_format.text(float(level.price))} {'↑' if y < area.top else '↓'}"
        right, half = _LEFT + fonts.width(text, _SIZE) + 4, _ROW / 2
        layer.items.append(box(_LEFT - 4, place - half, right, place + half, faded(theme.background, 225)))
        layer.items.append(Label(_LEFT, place, text, _SIZE, _color(level, theme)))


def _apart(wanted: list[float], low: float, high: float) -> list[float]:
    """Returns ascending places at least one row apart, as close to those wanted as the edges allow."""
    places = [min(max(y, low), high) for y in wanted]
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + _ROW)
    edge = high
    for at in range(len(places) - 1, -1, -1):
        places[at] = min(places[at], edge)
        edge = places[at] - _ROW
    return places


class _Arrow(NamedTuple):
    """An execution and the tip of its arrow."""

    execution: MarkedExecution
    x: float
    tip: float

    @property
    def buys(self) -> bool:
        """Returns True if the arrow is below its bar and points upwards."""
        return self.execution.side is Side.BUY


class _Taken(NamedTuple):
    """The middle of an arrow or text, and half its width and height: no other text may touch it."""

    x: float
    y: float
    wide: float
    tall: float


def _executions(executions: tuple[MarkedExecution, ...], layer: Layer, picture: ChartPicture, panel: Panel) -> None:
    """Draws arrows with texts: buys below their bar, sells above it; the newest text is written first."""
    edges = (panel.scale.y(picture.candles.high), panel.scale.y(picture.candles.low))
    arrows = []
    for each in reversed(executions):
        price, color, buys = (
            panel.scale.at(float(each.price)),
            _execution_color(each, picture.theme),
            each.side is Side.BUY,
        )
        if each.index is None:
            x, edge = float(picture.x[-1]) + picture.slot, price
        else:
            x, edge = float(picture.x[each.index]), float(edges[buys][each.index])
            layer.items.append(Dot(x, price, 2.0, color))
        arrows.append(_Arrow(each, x, edge + (GAP if buys else -GAP)))
        layer.items.append(arrow(x, arrows[-1].tip, color, up=buys))
    _texts(arrows, edges, layer, picture, panel)


def _texts(
    arrows: list[_Arrow], edges: tuple[Values, Values], layer: Layer, picture: ChartPicture, panel: Panel
) -> None:
    """Writes side and quantity at each arrow; a text that would touch another arrow or text is left out."""
    taken = [_Taken(each.x, each.tip + (TALL if each.buys else -TALL) / 2, 4.0, 3.0) for each in arrows]
    for number, each in enumerate(arrows):
        text = f"{each.execution.side.capitalize()} {quantity_text(each.execution.quantity)}"
        half = fonts.width(text, _TEXT) / 2
        # The text of the last bars ends at the edge of the panel.
        middle = min(max(each.x, panel.box.left + half), panel.box.right - half - 2)
        near = np.abs(picture.x - middle) <= half + picture.slot / 2
        y = _text_row(each.tip, near, edges[each.buys], each.buys)
        others = (*taken[:number], *taken[number + 1 :])
        if all(abs(middle - it.x) > half + it.wide or abs(y - it.y) > _TEXT / 2 + it.tall for it in others):
            taken.append(_Taken(middle, y, half + 4, _TEXT / 2))
            color = _execution_color(each.execution, picture.theme)
            layer.items.append(Label(middle, y, text, _TEXT, color, "center"))


def _execution_color(execution: MarkedExecution, theme: Theme) -> Color:
    if execution.effect is PositionEffect.ENTRY:
        return theme.accent
    return theme.up if execution.profit > 0 else theme.down


def _text_row(tip: float, near: npt.NDArray[np.bool_], edge: Values, buys: bool) -> float:
    """Returns the y of the text at an arrow: clear of the bars beside it, if they end close enough."""
    y = tip + (TALL + _GAP if buys else -TALL - _GAP)
    if not near.any():
        return y
    clear = float(edge[near].max()) + _GAP if buys else float(edge[near].min()) - _GAP
    clear = max(y, clear) if buys else min(y, clear)
    return clear if abs(clear - y) <= _FARTHEST else y
