"""From bars and indicators to a scene: panels from top to bottom, axes, legend, the mark of simulated data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openbell.charts import axes, fonts, legends, paint
from openbell.charts.numbers import Form, decimals_for
from openbell.charts.panels import Panel, Picture, heights, indicator_panel, price_panel
from openbell.charts.price import candles_of
from openbell.charts.request import Look
from openbell.charts.scene import Box, Scene
from openbell.charts.themes import THEMES
from openbell.charts.time_axis import time_ticks
from openbell.indicators.evaluation import Computed
from openbell.market.bars import Bars, Values

_WIDEST_SLOT = 48.0
"""Few bars stand together in the middle instead of filling the width."""


def compose(
    bars: Bars, indicators: list[Computed], look: Look, title: str, mark: str = "", whole: Bars | None = None
) -> Scene:
    """The scene of a chart. `mark` is shown across the price when the data is not real.

    `whole` are all bars that are kept, up to the last that is shown: `heikin_ashi` begins at their first.
    """
    theme = THEMES[look.theme]
    scene = Scene(look.width, look.height, theme.background)
    overlays = [each for each in indicators if each.wanted.indicator.overlay]
    others = [each for each in indicators if not each.wanted.indicator.overlay]
    candles = candles_of(bars, look.style, whole)
    # How wide the axis is depends on the scales, and those a little on how wide it is: begin with a guess.
    form = Form(decimals_for(bars.close))
    guess = fonts.width(form.text(float(bars.high.max(initial=0))), 11.0, True) + 18
    picture = Picture(
        bars, candles, title, look, theme, *_places(len(bars), look.width - guess), _plot(look, guess), []
    )
    panels, rows = _panels(picture, overlays, others, mark, form)
    plot = _plot(look, axes.width(panels, bars, theme))
    x, slot = _places(len(bars), plot.width)
    picture = replace(
        picture, x=x, slot=slot, plot=plot, times=time_ticks(bars, slot, float(x[0]) - slot / 2 if len(x) else 0.0)
    )
    panels = [replace(panel, box=replace(panel.box, right=plot.right)) for panel in panels]
    if mark:
        legends.mark(scene.layer(panels[0].box), panels[0].box, mark, theme)
    for panel in panels:
        axes.grid(scene, picture, panel)
    axes.times(scene, picture)
    paint.price_panel(scene, picture, panels[0], overlays)
    for panel in panels[1:]:
        paint.indicator_panel(scene, picture, panel)
    axes.frame(scene, picture, panels)
    axes.values(scene, picture, panels)
    legends.price_legend(scene.layer(panels[0].box), picture, form, rows, mark)
    for panel in panels[1:]:
        legends.panel_legend(scene.layer(panel.box), picture, panel)
    if mark:
        legends.badge_on(scene.layer(), picture, mark)
    return scene


def _plot(look: Look, axis: float) -> Box:
    return Box(0.0, 0.0, look.width - axis, look.height - axes.TIME_AXIS)


def _places(count: int, width: float) -> tuple[Values, float]:
    """The middle of each bar, and how wide a bar's place is."""
    slot = min(_WIDEST_SLOT, width / (count + max(2.0, count * 0.03)))
    left = max(0.0, (width - count * slot) / 2) if slot == _WIDEST_SLOT else 0.0
    return left + (np.arange(count, dtype=np.float64) + 0.5) * slot, slot


def _panels(
    picture: Picture, overlays: list[Computed], others: list[Computed], mark: str, form: Form
) -> tuple[list[Panel], list[legends.Row]]:
    """The price on top, then the others; and the legend's rows that the price makes room for."""
    plot = picture.plot
    (top, bottom), *below = heights(plot.height, len(others))
    firsts = paint.color_numbers(overlays)
    colored = [(each, paint.line_colors(picture, each, first)) for first, each in zip(firsts, overlays, strict=True)]
    rows = legends.rows_of(colored, picture.theme, form, bottom - top)
    corner = legends.corner(rows, picture.title, mark, plot.right, bottom - top)
    price = price_panel(Box(plot.left, top, plot.right, bottom), picture, overlays, corner)
    areas = [Box(plot.left, start, plot.right, end) for start, end in below]
    return [price, *(indicator_panel(area, each) for area, each in zip(areas, others, strict=True))], rows
