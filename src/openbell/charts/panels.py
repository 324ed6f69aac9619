"""Panels: their heights, scales, ticks and number formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from typing import NamedTuple

import numpy as np

from openbell.charts.choices import CLOSE_STYLES
from openbell.charts.config.plots import StudyPlot
from openbell.charts.look import Look
from openbell.charts.numbers import NumberFormat, decimals_for, indexed_format, price_format, value_format
from openbell.charts.options import Options
from openbell.charts.scales import LABEL_SPACING, Kind, Scale, extent, fit
from openbell.charts.scene import Box, Color
from openbell.charts.themes import Theme
from openbell.charts.time_axis import TimeTick
from openbell.indicators.evaluation import Computed
from openbell.market.bars import Bars, Values

TITLE_ROW = 26.0
LEGEND_ROW = 18.0
LEGEND_SHARE = 0.4
"""The largest share of the price panel's height for the legend."""
_OTHERS, _LARGEST = 0.62, 0.22
"""The largest share of the height for all indicator panels together, and for one."""
_GAP = 1.0
_LEAST_BELOW = 24.0
"""The least height of an indicator panel if the height of the price panel is given."""
_NEAR = 0.3
"""A drawing's price enlarges the scale if it is at most this share of the shown prices' span beyond them."""


class Mark(NamedTuple):
    """A price that is written at the axis."""

    price: float
    color: Color


class TimeMark(NamedTuple):
    """A time that is written at the axis."""

    x: float
    text: str
    color: Color


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of a chart: the price, or one indicator."""

    box: Box
    scale: Scale
    number_format: NumberFormat
    ticks: tuple[float, ...]
    indicator: Computed | None = None
    empty: bool = False
    """True if no bar has a value: the panel has no lines and no axis labels."""
    more: tuple[Computed, ...] = ()
    """Further indicators with the same scale."""
    marks: tuple[Mark, ...] = ()

    @property
    def indicators(self) -> tuple[Computed, ...]:
        """All indicators; none in the price panel."""
        return () if self.indicator is None else (self.indicator, *self.more)


@dataclass(frozen=True, slots=True)
class Picture:
    """The bars of a chart, its look, and where each bar is drawn."""

    bars: Bars
    candles: Bars
    """The bars that are drawn as the price: the bars themselves, or their Heikin-Ashi averages."""
    title: str
    look: Look
    theme: Theme
    x: Values
    """The middle of each bar."""
    slot: float
    """The width of one bar with the space beside it."""
    plot: Box
    """The area of all panels, without the axes."""
    times: list[TimeTick]
    options: Options = field(default_factory=Options)
    plots: Mapping[str, StudyPlot] = field(default_factory=dict)
    """How indicators are drawn that a config has asked for, by the key of their request."""


class Corner(NamedTuple):
    """The parts of the price panel that the legend covers: its rows at the left, and a strip over the whole width."""

    width: float
    bottom: float
    strip: float


def heights(whole: float, count: int, price: float | None = None) -> list[tuple[float, float]]:
    """Returns the top and bottom of the price panel and of `count` indicator panels below it.

    `price` is the height of the price panel, as far as it leaves room for the others.
    """
    share = whole * min(_LARGEST, _OTHERS / count) if count else 0.0
    if price is not None and count:
        share = max(min(_LEAST_BELOW, share), (whole - price) / count)
    price = whole - share * count
    return [(0.0, price), *((price + n * share + _GAP, price + (n + 1) * share) for n in range(count))]


def price_panel(
    area: Box, picture: Picture, overlays: list[Computed], corner: Corner, drawn: Sequence[float] = ()
) -> Panel:
    """Returns the price panel, with a scale that keeps the price clear of the legend.

    `drawn` are the prices of drawings. Those close to the bars enlarge the scale, the others do not.
    """
    candles, look = picture.candles, picture.look
    prices = [candles.close] if look.style in CLOSE_STYLES else [candles.high, candles.low]
    also = [line.values for each in overlays for line in each.channels.lines]
    inner = Box(area.left, area.top + corner.strip, area.right, area.bottom - area.height * 0.03)
    base = float(candles.close[0]) if len(candles) else 0.0
    relative = look.price_scale in {"percent", "indexed"}
    kind: Kind = look.price_scale if not relative or base > 0 else "linear"  # type: ignore[assignment]
    near = [np.array(_near(drawn, extent([*prices, *also]), kind))] if drawn else []
    if picture.options.price_range and len(candles):
        low, high = picture.options.price_range
        scale = Scale(low, high, area, "linear" if kind == "log" and low <= 0 else kind, base)
    else:
        scale = fit(prices, inner, kind, [*also, *near], base)
        under = int(np.searchsorted(picture.x, corner.width))
        if found := extent([values[:under] for values in (*prices, *also)]):
            scale = _lowered(scale, found[1], area.top + corner.bottom)
        scale = scale.continued(area)
    ticks = _ticks(scale, area, 44.0, None) if len(candles) else ()
    if scale.kind == "indexed":
        return Panel(area, scale, indexed_format(ticks, base), ticks)
    number_format = price_format(decimals_for(candles.close), ticks, base if scale.kind == "percent" else None)
    return Panel(area, scale, number_format, ticks)


def _near(prices: Sequence[float], shown: tuple[float, float] | None, kind: Kind) -> list[float]:
    """Returns the prices that are in the shown span or close to it."""
    if shown is None:
        return []
    if kind == "log" and shown[0] > 0:
        low, high = log(shown[0]), log(shown[1])
        room = (high - low) * _NEAR
        return [price for price in prices if price > 0 and low - room <= log(price) <= high + room]
    room = (shown[1] - shown[0]) * _NEAR
    return [price for price in prices if shown[0] - room <= price <= shown[1] + room]


def _lowered(scale: Scale, value: float, edge: float) -> Scale:
    """Returns the scale, shrunk at its top so that `value` is drawn below `edge`."""
    box, y = scale.box, scale.at(value)
    if y >= edge:
        return scale
    top = box.bottom - (box.bottom - edge) * box.height / (box.bottom - y)
    return replace(scale, box=replace(box, top=top))


def indicator_panel(area: Box, computed: Computed, *more: Computed) -> Panel:
    """Returns an indicator's panel with its declared range, or one that fits its values. Low panels have less margin.

    `more` are indicators that are drawn in the same panel.
    """
    every = [computed.channels, *(each.channels for each in more)]
    inner = Box(
        area.left, area.top + min(20.0, area.height * 0.3), area.right, area.bottom - min(4.0, area.height * 0.1)
    )
    values = [line.values for channels in every for line in (*channels.lines, *channels.histogram)]
    if extent(values) is None:
        return Panel(area, Scale(0.0, 1.0, area), NumberFormat(), (), computed, empty=True, more=more)
    (y_range, *others) = {channels.y_range for channels in every}
    if y_range and not others:
        scale = Scale(*y_range, inner)
    else:
        y_range = None
        levels = [np.array(channels.hlines, dtype=np.float64) for channels in every if channels.hlines]
        zero = [np.zeros(1)] if any(channels.histogram for channels in every) else []
        scale = fit([*values, *levels, *zero], inner)
    low, high = scale.low, scale.high
    scale = scale.continued(area)
    ticks = _ticks(scale, area, 26.0, y_range)
    return Panel(area, scale, value_format(low, high, ticks), ticks, computed, more=more)


def _ticks(scale: Scale, area: Box, spacing: float, within: tuple[float, float] | None) -> tuple[float, ...]:
    """Returns the ticks whose labels fit into the panel without touching each other."""
    low, high = within or (scale.low, scale.high)
    chosen: list[float] = []
    last = float("inf")
    for value in scale.ticks(spacing):
        y = scale.at(value)
        if low <= value <= high and area.top + 8 < y < area.bottom - 8 and last - y >= LABEL_SPACING - 2:
            chosen.append(value)
            last = y
    return tuple(chosen)
