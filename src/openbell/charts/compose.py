"""Builds a scene from bars and indicators: panels from top to bottom, axes, legends, the badge of simulated data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from openbell.charts import axes, fonts, legends, paint
from openbell.charts.drawings import drawn_lines
from openbell.charts.look import Look
from openbell.charts.numbers import NumberFormat, decimals_for
from openbell.charts.panels import Panel, Picture, heights, indicator_panel, price_panel
from openbell.charts.price import candles_of
from openbell.charts.scene import Box, Layer, Scene
from openbell.charts.themes import THEMES
from openbell.charts.time_axis import time_ticks
from openbell.indicators.evaluation import Computed
from openbell.market.bars import Bars, Values

Painter = Callable[[Layer, Picture, Panel], None]
"""Draws on top of the price panel."""
_WIDEST_SLOT = 48.0
"""Pixels. Few bars are drawn in the middle instead of filling the width."""


def compose(
    bars: Bars,
    indicators: list[Computed],
    look: Look,
    title: str,
    badge: str = "",
    whole: Bars | None = None,
    painter: Painter | None = None,
) -> Scene:
    """Returns the scene of a chart. `badge` is the label of data that is not real; empty for real data.

    `whole` are all available bars up to the last one shown; the style `heikin_ashi` is computed from the first of them on.
    `painter` draws over the price and its overlays, such as trades.
    """
    theme = THEMES[look.theme]
    scene = Scene(look.width, look.height, theme.background)
    indicators = [drawn_lines(each) for each in indicators]
    overlays = [each for each in indicators if each.request.indicator.overlay]
    others = [each for each in indicators if not each.request.indicator.overlay]
    candles = candles_of(bars, look.style, whole)
    # The width of the axis depends on the scales, and the scales slightly on the width of the axis: start with a guess.
    number_format = NumberFormat(decimals_for(bars.close))
    guess = fonts.width(number_format.text(float(bars.high.max(initial=0))), 11.0, True) + 18
    picture = Picture(
        bars, candles, title, look, theme, *_places(len(bars), look.width - guess), _plot(look, guess), []
    )
    panels, rows = _panels(picture, overlays, others, badge, number_format)
    plot = _plot(look, axes.width(panels, bars, theme))
    x, slot = _places(len(bars), plot.width)
    picture = replace(
        picture, x=x, slot=slot, plot=plot, times=time_ticks(bars, slot, float(x[0]) - slot / 2 if len(x) else 0.0)
    )
    panels = [replace(panel, box=replace(panel.box, right=plot.right)) for panel in panels]
    if badge:
        legends.background_badge(scene.layer(panels[0].box), panels[0].box, badge, theme)
    for panel in panels:
        axes.grid(scene, picture, panel)
    axes.times(scene, picture)
    paint.price_panel(scene, picture, panels[0], overlays)
    if painter:
        painter(scene.layer(panels[0].box), picture, panels[0])
    for panel in panels[1:]:
        paint.indicator_panel(scene, picture, panel)
    axes.frame(scene, picture, panels)
    axes.values(scene, picture, panels)
    legends.price_legend(scene.layer(panels[0].box), picture, number_format, rows, badge)
    for panel in panels[1:]:
        legends.panel_legend(scene.layer(panel.box), picture, panel)
    if badge:
        legends.corner_badge(scene.layer(), picture, badge)
    return scene


def _plot(look: Look, axis: float) -> Box:
    return Box(0.0, 0.0, look.width - axis, look.height - axes.TIME_AXIS)


def _places(count: int, width: float) -> tuple[Values, float]:
    """Returns the x of each bar's middle, and the width of one bar's slot."""
    slot = min(_WIDEST_SLOT, width / (count + max(2.0, count * 0.03)))
    left = max(0.0, (width - count * slot) / 2) if slot == _WIDEST_SLOT else 0.0
    return left + (np.arange(count, dtype=np.float64) + 0.5) * slot, slot


def _panels(
    picture: Picture, overlays: list[Computed], others: list[Computed], badge: str, number_format: NumberFormat
) -> tuple[list[Panel], list[legends.Row]]:
    """Returns the price panel and the indicator panels below it, and the rows of the price panel's legend."""
    plot = picture.plot
    (top, bottom), *below = heights(plot.height, len(others))
    firsts = paint.color_numbers(overlays)
    colored = [(each, paint.line_colors(picture, each, first)) for first, each in zip(firsts, overlays, strict=True)]
    rows = legends.rows_of(colored, picture.theme, number_format, bottom - top)
    corner = legends.corner(rows, picture.title, badge, plot.right, bottom - top)
    price = price_panel(Box(plot.left, top, plot.right, bottom), picture, overlays, corner)
    areas = [Box(plot.left, start, plot.right, end) for start, end in below]
    return [price, *(indicator_panel(area, each) for area, each in zip(areas, others, strict=True))], rows
