"""Draws trades over the price: an arrow at the entry, an arrow at the exit, and a dashed line between their prices."""

from __future__ import annotations

import numpy as np

from openbell.backtest.rules import END
from openbell.backtest.trades import Indexes, Trades
from openbell.charts.panels import ChartPicture, Panel
from openbell.charts.scene import Band, Color, Layer, Stroke
from openbell.charts.themes import faded
from openbell.strategies.spec import PositionSide

MAX_DRAWN = 400
"""More trades cannot be told apart. Those with the largest profits and losses are drawn."""
_HALF, TALL, GAP = 5.0, 8.0, 4.0
"""Pixels: half the width of an arrow, its height, and its distance from the bar."""


def drawn_trades(trades: Trades) -> Indexes:
    """Returns the positions of the trades to draw, oldest first."""
    if len(trades) <= MAX_DRAWN:
        return np.arange(len(trades))
    return np.sort(np.argsort(-np.abs(trades.profit), kind="stable")[:MAX_DRAWN])


def draw_trades(
    trades: Trades, layer: Layer, picture: ChartPicture, panel: Panel, entry_color: Color | None = None
) -> None:
    """Draws trades whose indexes refer to the picture's bars. A trade that is open at the end has no arrow at its exit.

    Entries have the accent colour unless another is given; exits and lines are green for a profit and red for a loss.
    """
    opened = entry_color or picture.theme.accent
    theme, bars, scale = picture.theme, picture.candles, panel.scale
    long = trades.side is PositionSide.LONG
    below, above = scale.y(bars.low) + GAP, scale.y(bars.high) - GAP
    for at in drawn_trades(trades).tolist():
        entered, left = int(trades.entry_index[at]), int(trades.exit_index[at])
        color = theme.up if trades.profit[at] > 0 else theme.down
        x = np.array([picture.x[entered], picture.x[left]])
        y = scale.y(np.array([trades.entry_price[at], trades.exit_price[at]]))
        if left > entered:
            layer.items.append(Stroke(x, y, faded(color, 200), 1.5, (3.0, 3.0)))
        layer.items.append(arrow(float(x[0]), float((below if long else above)[entered]), opened, up=long))
        if trades.reason[at] != END:
            layer.items.append(arrow(float(x[1]), float((above if long else below)[left]), color, up=not long))


def arrow(x: float, tip: float, color: Color, *, up: bool) -> Band:
    """Returns a triangle that points to `tip`."""
    base = tip + TALL if up else tip - TALL
    sides, flat = np.array([base, tip, base]), np.full(3, base)
    upper, lower = (sides, flat) if up else (flat, sides)
    return Band(np.array([x - _HALF, x, x + _HALF]), upper, lower, color)
