"""Builds a scene from bars and indicators: panels from top to bottom, axes, legends, drawings, and badges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from openbell.charts import axes, fonts, legends, paint
from openbell.charts.annotations.catalogue import draw_all, marks_of, outside, time_marks_of
from openbell.charts.config.model import ConfigDrawing
from openbell.charts.config.plots import StudyPlot
from openbell.charts.drawings import drawn_lines
from openbell.charts.look import Look
from openbell.charts.numbers import NumberFormat, decimals_for
from openbell.charts.options import Options
from openbell.charts.panels import Corner, Panel, Picture, heights, indicator_panel, price_panel
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
_PLAIN = Options()


@dataclass(frozen=True, slots=True)
class _Groups:
    """The indicators of a chart by the panel that they are drawn in."""

    overlays: list[Computed]
    floating: list[Computed]
    """Over the price, each with a scale of its own."""
    below: list[list[Computed]]


@dataclass(frozen=True, slots=True)
class _Panels:
    """The panels of a chart."""

    price: Panel
    floating: list[Panel]
    below: list[Panel]

    @property
    def with_axes(self) -> list[Panel]:
        """The panels with an axis of their own, from top to bottom."""
        return [self.price, *self.below]

    def until(self, right: float) -> _Panels:
        """Returns the panels with another right edge."""
        price, *others = (
            replace(panel, box=replace(panel.box, right=right)) for panel in (self.price, *self.floating, *self.below)
        )
        return _Panels(price, others[: len(self.floating)], others[len(self.floating) :])


def compose(
    bars: Bars,
    indicators: list[Computed],
    look: Look,
    title: str,
    badge: str = "",
    whole: Bars | None = None,
    painter: Painter | None = None,
    *,
    options: Options = _PLAIN,
    plots: Sequence[StudyPlot] = (),
    drawings: Sequence[ConfigDrawing] = (),
) -> Scene:
    """Returns the scene of a chart. `badge` is the label of data that is not real; empty for real data.

    `whole` are all available bars up to the last one shown; the style `heikin_ashi` is computed from the first of them on.
    `painter` draws over the price and its overlays, such as trades. `plots` say how the indicators with the same keys are
    drawn; other indicators are drawn as usual. `Scene.outside` has the drawings of which nothing is seen.
    """
    theme = THEMES[look.theme]
    scene = Scene(look.width, look.height, theme.background)
    by_key = {each.request.key: each for each in plots}
    groups = _groups([drawn_lines(each) for each in indicators], by_key)
    # The width of the axis depends on the scales, and the scales slightly on the width of the axis: start with a guess.
    number_format = NumberFormat(decimals_for(bars.close))
    guess = fonts.width(number_format.text(float(bars.high.max(initial=0))), 11.0, True) + 18
    places = _places(len(bars), look.width - guess, options.shift_right)
    candles = candles_of(bars, look.style, whole)
    picture = Picture(bars, candles, title, look, theme, *places, _plot(look, guess), [], options, by_key)
    panels, rows = _panels(picture, groups, badge, number_format, drawings)
    plot = _plot(look, axes.width(picture, panels.with_axes))
    x, slot = _places(len(bars), plot.width, options.shift_right)
    left = float(x[0]) - slot / 2 if len(x) else 0.0
    picture = replace(picture, x=x, slot=slot, plot=plot, times=time_ticks(bars, slot, left, zone=options.zone))
    panels = panels.until(plot.right)
    _draw(scene, picture, panels, groups, badge, painter, drawings)
    if options.legend:
        legends.price_legend(scene.layer(panels.price.box), picture, number_format, rows, badge)
        for panel in panels.below:
            legends.panel_legend(scene.layer(panel.box), picture, panel)
    if badge:
        legends.corner_badge(scene.layer(), picture, badge)
    scene.outside = outside(drawings, picture, panels.price)
    return scene


def _draw(
    scene: Scene,
    picture: Picture,
    panels: _Panels,
    groups: _Groups,
    badge: str,
    painter: Painter | None,
    drawings: Sequence[ConfigDrawing],
) -> None:
    """Draws everything but the legends, from the back to the front."""
    price = panels.price
    if badge or picture.options.watermark or picture.options.symbol_watermark:
        legends.background_texts(scene.layer(price.box), price.box, badge, picture)
    for panel in panels.with_axes:
        axes.grid(scene, picture, panel)
    marks = time_marks_of(drawings, picture)
    axes.times(scene, picture, marks)
    _annotate(scene, picture, panels, [each for each in drawings if not each.on_top])
    paint.price_panel(scene, picture, price, groups.overlays)
    for number, panel in zip(paint.color_numbers(groups.floating), panels.floating, strict=True):
        paint.indicator_panel(scene, picture, panel, _lines(groups.overlays) + number)
    if painter:
        painter(scene.layer(price.box), picture, price)
    for panel in panels.below:
        paint.indicator_panel(scene, picture, panel)
    _annotate(scene, picture, panels, [each for each in drawings if each.on_top])
    axes.frame(scene, picture, panels.with_axes)
    axes.values(scene, picture, panels.with_axes)
    if marks:
        axes.time_tags(scene, picture, marks)


def _annotate(scene: Scene, picture: Picture, panels: _Panels, drawings: Sequence[ConfigDrawing]) -> None:
    if drawings:
        for panel in panels.with_axes:
            draw_all(scene.layer(panel.box), drawings, picture, panel)


def _lines(overlays: list[Computed]) -> int:
    """Returns the number of colours that the overlays use."""
    return sum(max(1, len(each.channels.lines)) for each in overlays)


def _groups(indicators: list[Computed], plots: Mapping[str, StudyPlot]) -> _Groups:
    """Returns the indicators by panel, without the lines that a config hides. The plots of one study share a panel."""
    groups = _Groups([], [], [])
    together: dict[int, list[Computed]] = {}
    for each in indicators:
        plot = plots.get(each.request.key)
        if plot is None:
            shown, floats, group = each, False, []
        else:
            shown, floats, group = _visible(each, plot), plot.floating, together.setdefault(plot.study, [])
        if floats:
            groups.floating.append(shown)
        elif each.request.indicator.overlay:
            groups.overlays.append(shown)
        else:
            group.append(shown)
            if len(group) == 1:
                groups.below.append(group)
    return groups


def _visible(computed: Computed, plot: StudyPlot) -> Computed:
    hidden = {label for label, style in plot.styles.items() if not style.visible}
    if not hidden:
        return computed
    channels = computed.channels
    lines, bars = (
        tuple(line for line in lines if line.label not in hidden) for lines in (channels.lines, channels.histogram)
    )
    return replace(computed, channels=replace(channels, lines=lines, histogram=bars))


def _plot(look: Look, axis: float) -> Box:
    return Box(0.0, 0.0, look.width - axis, look.height - axes.TIME_AXIS)


def _places(count: int, width: float, empty: int) -> tuple[Values, float]:
    """Returns the x of each bar's middle, and the width of one bar's slot. `empty` is the number of bars left free."""
    count += empty
    slot = min(_WIDEST_SLOT, width / (count + max(2.0, count * 0.03)))
    left = max(0.0, (width - count * slot) / 2) if slot == _WIDEST_SLOT else 0.0
    return left + (np.arange(count - empty, dtype=np.float64) + 0.5) * slot, slot


def _panels(
    picture: Picture,
    groups: _Groups,
    badge: str,
    number_format: NumberFormat,
    drawings: Sequence[ConfigDrawing],
) -> tuple[_Panels, list[legends.Row]]:
    """Returns the panels, and the rows of the price panel's legend."""
    plot, options, theme = picture.plot, picture.options, picture.theme
    (top, bottom), *areas = heights(plot.height, len(groups.below), options.price_height)
    area = Box(plot.left, top, plot.right, bottom)
    floating = [indicator_panel(area, each) for each in groups.floating]
    overlaid = [(each, number_format) for each in groups.overlays]
    overlaid += [(each, panel.number_format) for each, panel in zip(groups.floating, floating, strict=True)]
    rows = []
    for first, (each, its_format) in zip(paint.color_numbers([each for each, _ in overlaid]), overlaid, strict=True):
        rows.append(legends.row_of(picture, each, paint.line_colors(picture, each, first), its_format))
    rows = legends.rows_of(rows, theme, bottom - top)
    corner = legends.corner(rows, picture.title, badge, plot.right, bottom - top)
    if not options.legend:
        corner = Corner(0.0, 0.0, corner.strip if badge else 0.0)
    prices = [price for each in drawings for price in each.prices.values()]
    price = price_panel(area, picture, groups.overlays, corner, prices)
    price = replace(price, marks=marks_of(drawings, theme))
    below = [
        indicator_panel(Box(plot.left, start, plot.right, end), *group)
        for (start, end), group in zip(areas, groups.below, strict=True)
    ]
    return _Panels(price, floating, below), rows
