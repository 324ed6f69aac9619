"""Builds a scene from bars and indicators: panels from top to bottom, axes, legends, annotations, and badges.

At the right of the newest bar there is room for lines ahead of it, for a profile beside it, and for names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from openbell.charts import axes, fonts, legends, paint
from openbell.charts.annotations.catalogue import draw_all, marks_of, outside, time_marks_of
from openbell.charts.axes import last_marks, tags_of
from openbell.charts.choices import LINE_STYLES
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.config.plots import StudyPlot
from openbell.charts.look import ChartOptions, Look
from openbell.charts.numbers import NumberFormat, decimals_for
from openbell.charts.paint import EDGE
from openbell.charts.panels import ChartPicture, Corner, Mark, Panel, format_of, heights, indicator_panel, price_panel
from openbell.charts.price import candles_of
from openbell.charts.scene import Box, Layer, Scene
from openbell.charts.styles import IndicatorColors, drawn_lines, panel_colors, style_for
from openbell.charts.themes import THEMES
from openbell.charts.time_axis import time_ticks
from openbell.indicators.evaluation import Computed
from openbell.indicators.profiles import WIDEST
from openbell.market.bars import Bars, Values

Painter = Callable[[Layer, ChartPicture, Panel], None]
"""Draws on top of the price panel."""
_PLAIN = ChartOptions()
_FULL_NAME = 600
"""The least width in pixels of a picture with the full name of its style in the title."""
_WIDE_SLOT = 48.0
"""Pixels. If bars are further apart, this is the distance of the first and the last bar from the edges."""
_MOST_AHEAD = 0.5
"""The most bars ahead, as a share of the bars shown: a chart of few bars is not mostly empty."""
_GAP = 0.01
"""The width between the newest bar and a profile, as a share of the chart's width."""
_NAME, _NAME_WITH_PRICE = 44.0, 110.0
"""The width in pixels for the names of lines and levels, and for the names of retracements, which have a price."""


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
    options: ChartOptions = _PLAIN,
    plots: Sequence[StudyPlot] = (),
    drawings: Sequence[ConfigAnnotation] = (),
    marks: Sequence[Mark] = (),
    notes: Sequence[str] = (),
) -> Scene:
    """Returns the scene of a chart. `badge` is the label of data that is not real; empty for real data.

    `whole` are all available bars up to the last one shown; the style `heikin_ashi` is computed from the first of them on.
    `painter` draws over the price and its overlays, such as trades. `plots` say how the indicators with the same keys are
    drawn; other indicators are drawn as usual. `marks` are prices that are written at the axis, and that enlarge the scale
    if they are close to the bars. `notes` are further rows of the legend. `Scene.outside` has the annotations of which
    nothing is seen.
    """
    theme = THEMES[look.theme]
    scene = Scene(look.width, look.height, theme.background)
    by_key = {each.request.key: each for each in plots}
    groups = _groups([drawn_lines(each) for each in indicators], by_key)
    picture, empty = _guessed(bars, groups, look, title, whole, options, by_key)
    panels, rows = _panels(picture, groups, badge, drawings, marks, notes)
    tags = [tags_of(picture, panel) for panel in panels.with_axes]
    plot = _plot(look, axes.width(picture, panels.with_axes, tags))
    x, slot = _places(len(bars), plot.width, empty)
    left = float(x[0]) - slot / 2 if len(x) else 0.0
    times = time_ticks(bars, slot, left, options.zone, options.font_size)
    picture = replace(picture, x=x, slot=slot, plot=plot, times=times)
    panels = panels.until(plot.right)
    _draw(scene, picture, panels, groups, badge, painter, drawings)
    axes.values(scene, picture, panels.with_axes, tags)
    if dates := time_marks_of(drawings, picture):
        axes.time_tags(scene, picture, dates)
    if options.legend:
        legends.price_legend(scene.layer(panels.price.box), picture, rows, badge)
        for panel in panels.below:
            legends.panel_legend(scene.layer(panel.box), picture, panel)
    if badge:
        legends.corner_badge(scene.layer(), picture, badge)
    scene.outside = outside(drawings, picture, panels.price)
    return scene


def _guessed(
    bars: Bars,
    groups: _Groups,
    look: Look,
    title: str,
    whole: Bars | None,
    options: ChartOptions,
    by_key: dict[str, StudyPlot],
) -> tuple[ChartPicture, int]:
    """Returns the picture with a guess of the width of its axis, and the number of slots to the right of the last bar.

    The width of the axis depends on the scales, and the scales slightly on the width of the axis.
    """
    decimals = decimals_for(bars.close)
    guess = fonts.width(NumberFormat(decimals).text(float(bars.high.max(initial=0))), 11.0, True) + 18
    ahead = bars_ahead(groups.overlays, len(bars))
    beside = bars_beside(groups.overlays, len(bars), look.width - guess)
    empty = max(options.shift_right, ahead + beside)
    places = _places(len(bars), look.width - guess, empty)
    candles = candles_of(bars, look.style, whole)
    if look.style == "heikin_ashi":
        title += " · Heikin-Ashi" if look.width >= _FULL_NAME else " · HA"
    before = float(whole.close[-len(bars) - 1]) if whole is not None and len(whole) > len(bars) else None
    theme, plot, inks = THEMES[look.theme], _plot(look, guess), _inks(groups, look, by_key)
    picture = ChartPicture(
        bars, candles, title, look, theme, *places, plot, [], options, by_key, before, decimals, inks, ahead
    )
    return picture, empty


def _draw(
    scene: Scene,
    picture: ChartPicture,
    panels: _Panels,
    groups: _Groups,
    badge: str,
    painter: Painter | None,
    drawings: Sequence[ConfigAnnotation],
) -> None:
    """Draws everything but legends and tags, from the back to the front."""
    price = panels.price
    if badge or picture.options.watermark or picture.options.symbol_watermark:
        legends.background_texts(scene.layer(price.box), price.box, badge, picture)
    for panel in panels.with_axes:
        axes.grid(scene, picture, panel)
    axes.times(scene, picture, time_marks_of(drawings, picture))
    _annotate(scene, picture, panels, [each for each in drawings if not each.on_top])
    paint.price_panel(scene, picture, price, groups.overlays)
    for panel in panels.floating:
        paint.indicator_panel(scene, picture, panel)
    if painter:
        painter(scene.layer(price.box), picture, price)
    for panel in panels.below:
        paint.indicator_panel(scene, picture, panel)
    _annotate(scene, picture, panels, [each for each in drawings if each.on_top])
    axes.frame(scene, picture, panels.with_axes)


def _annotate(scene: Scene, picture: ChartPicture, panels: _Panels, drawings: Sequence[ConfigAnnotation]) -> None:
    if drawings:
        for panel in panels.with_axes:
            draw_all(scene.layer(panel.box), drawings, picture, panel)


def _inks(groups: _Groups, look: Look, plots: Mapping[str, StudyPlot]) -> dict[str, IndicatorColors]:
    """Returns the colours of all indicators. Those over a price line do not have its colour."""
    theme = THEMES[look.theme]
    taken = [name for name, color in theme.hues.items() if color == theme.accent] if look.style in LINE_STYLES else []
    found = panel_colors([*groups.overlays, *groups.floating], theme, plots, taken)
    for group in groups.below:
        found |= panel_colors(group, theme, plots)
    return found


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
    """Returns the x of each bar's middle, and the distance of two bars. `empty` is the number of bars left free.

    A few bars fill the width too: the newest is at the right, the others at equal distances to the left of it.
    """
    places = np.arange(count, dtype=np.float64)
    count += empty
    slot = width / (count + max(2.0, count * 0.03))
    if slot <= _WIDE_SLOT:
        return (places + 0.5) * slot, slot
    slot = max(_WIDE_SLOT, (width - 2 * _WIDE_SLOT) / max(1, count - 1))
    return width - _WIDE_SLOT - (count - 1 - places) * slot, slot


def _panels(
    picture: ChartPicture,
    groups: _Groups,
    badge: str,
    drawings: Sequence[ConfigAnnotation],
    marks: Sequence[Mark],
    notes: Sequence[str],
) -> tuple[_Panels, list[legends.Row]]:
    """Returns the panels, and the rows of the price panel's legend."""
    plot, options, theme = picture.plot, picture.options, picture.theme
    (top, bottom), *areas = heights(plot.height, len(groups.below), options.price_height)
    area = Box(plot.left, top, plot.right, bottom)
    floating = [indicator_panel(area, each) for each in groups.floating]
    formats = [format_of(picture)] * len(groups.overlays) + [panel.number_format for panel in floating]
    overlaid = [*groups.overlays, *groups.floating]
    rows = [legends.row_of(picture, each, its_format) for each, its_format in zip(overlaid, formats, strict=True)]
    tagged = list(marks_of(drawings, theme))
    for each in groups.overlays if options.study_last_value else ():
        tagged += last_marks(picture, each)
    rows = legends.rows_of([*([legends.LegendWord(each, theme.faint)] for each in notes), *rows], theme, bottom - top)
    corner = legends.corner(rows, picture.title, badge, plot.right, bottom - top)
    if not options.legend:
        corner = Corner(0.0, 0.0, corner.strip if badge else 0.0)
    prices = [price for each in drawings for price in each.prices.values()] + [mark.price for mark in marks]
    price = price_panel(area, picture, groups.overlays, corner, prices)
    price = replace(price, marks=(*tagged, *marks))
    below = [
        indicator_panel(Box(plot.left, start, plot.right, end), *group)
        for (start, end), group in zip(areas, groups.below, strict=True)
    ]
    return _Panels(price, floating, below), rows


def bars_ahead(overlays: Sequence[Computed], count: int) -> int:
    """Returns the number of bars after the last one for which lines have values, as far as there is room."""
    longest = max(
        (len(line.ahead) for each in overlays for line in each.channels.lines if line.ahead is not None), default=0
    )
    return min(longest, int(count * _MOST_AHEAD))


def bars_beside(overlays: Sequence[Computed], count: int, width: float) -> int:
    """Returns the number of bars whose room a profile or names at the right need, in a plot of this width."""
    share = 0.0
    for each in overlays:
        style = style_for(each)
        if style.profile == "edge" and any(not bar.left for bar in each.channels.hbars):
            share = max(share, WIDEST * EDGE + _GAP)
        elif style.lines == "retracement":
            share = max(share, min(_NAME_WITH_PRICE / width, 0.25))
        elif style.names or style.lines == "levels" or each.channels.hlines:
            share = max(share, min(_NAME / width, 0.25))
    return ceil(count * share / (1 - share))
