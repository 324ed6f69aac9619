"""Panels: how high each is, its scale, its ticks, and how it writes its values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from openbell.charts.numbers import Form, decimals_for, price_form, value_form
from openbell.charts.request import Look
from openbell.charts.scales import APART, Kind, Scale, extent, fit
from openbell.charts.scene import Box
from openbell.charts.themes import Theme
from openbell.charts.time_axis import TimeTick
from openbell.indicators.evaluation import Computed
from openbell.market.bars import Bars, Values

TITLE_ROW = 26.0
LEGEND_ROW = 18.0
LEGEND_SHARE = 0.4
"""Of the price panel's height, what the legend may take."""
_OTHERS, _LARGEST = 0.62, 0.22
"""Of the height, what all indicator panels may take together, and what one may."""
_GAP = 1.0
_CLOSES = {"line", "area", "baseline"}


@dataclass(frozen=True, slots=True)
class Panel:
    """A pane with its scale."""

    box: Box
    scale: Scale
    form: Form
    ticks: tuple[float, ...]
    indicator: Computed | None = None
    empty: bool = False
    """No bar has a value yet: nothing to draw, and no scale to tell."""


@dataclass(frozen=True, slots=True)
class Picture:
    """All that painting needs."""

    bars: Bars
    candles: Bars
    """What the price is drawn from: the bars, or their averages."""
    title: str
    look: Look
    theme: Theme
    x: Values
    slot: float
    plot: Box
    times: list[TimeTick]


class Corner(NamedTuple):
    """What the legend covers of the price panel: its rows at the left, and a strip over the whole width."""

    width: float
    bottom: float
    strip: float


def heights(whole: float, count: int) -> list[tuple[float, float]]:
    """The top and bottom of the price panel and of `count` others below it."""
    share = whole * min(_LARGEST, _OTHERS / count) if count else 0.0
    price = whole - share * count
    return [(0.0, price), *((price + n * share + _GAP, price + (n + 1) * share) for n in range(count))]


def price_panel(area: Box, picture: Picture, overlays: list[Computed], corner: Corner) -> Panel:
    """The price fills its panel, but does not reach under the legend."""
    candles, look = picture.candles, picture.look
    prices = [candles.close] if look.style in _CLOSES else [candles.high, candles.low]
    also = [line.values for each in overlays for line in each.channels.lines]
    inner = Box(area.left, area.top + corner.strip, area.right, area.bottom - area.height * 0.03)
    base = float(candles.close[0]) if len(candles) else 0.0
    kind: Kind = look.price_scale if look.price_scale != "percent" or base > 0 else "linear"  # type: ignore[assignment]
    scale = fit(prices, inner, kind, also, base)
    under = int(np.searchsorted(picture.x, corner.width))
    if found := extent([values[:under] for values in (*prices, *also)]):
        scale = _lowered(scale, found[1], area.top + corner.bottom)
    scale = scale.continued(area)
    ticks = _ticks(scale, area, 44.0, None) if len(candles) else ()
    form = price_form(decimals_for(candles.close), ticks, base if scale.kind == "percent" else None)
    return Panel(area, scale, form, ticks)


def _lowered(scale: Scale, value: float, edge: float) -> Scale:
    """The scale with less room at its top, so that a value stays below an edge."""
    box, y = scale.box, scale.at(value)
    if y >= edge:
        return scale
    top = box.bottom - (box.bottom - edge) * box.height / (box.bottom - y)
    return replace(scale, box=replace(box, top=top))


def indicator_panel(area: Box, computed: Computed) -> Panel:
    """A declared range, or one that fits; low panels give up the legend's room first."""
    channels = computed.channels
    inner = Box(
        area.left, area.top + min(20.0, area.height * 0.3), area.right, area.bottom - min(4.0, area.height * 0.1)
    )
    values = [line.values for line in (*channels.lines, *channels.histogram)]
    if extent(values) is None:
        return Panel(area, Scale(0.0, 1.0, area), Form(), (), computed, empty=True)
    if channels.y_range:
        scale = Scale(*channels.y_range, inner)
    else:
        levels = [np.array(channels.hlines, dtype=np.float64)] if channels.hlines else []
        scale = fit([*values, *levels, *([np.zeros(1)] if channels.histogram else [])], inner)
    low, high = scale.low, scale.high
    scale = scale.continued(area)
    ticks = _ticks(scale, area, 26.0, channels.y_range)
    return Panel(area, scale, value_form(low, high, ticks), ticks, computed)


def _ticks(scale: Scale, area: Box, spacing: float, within: tuple[float, float] | None) -> tuple[float, ...]:
    """Those whose label has room, in the panel and beside the one before."""
    low, high = within or (scale.low, scale.high)
    chosen: list[float] = []
    last = float("inf")
    for value in scale.ticks(spacing):
        y = scale.at(value)
        if low <= value <= high and area.top + 8 < y < area.bottom - 8 and last - y >= APART - 2:
            chosen.append(value)
            last = y
    return tuple(chosen)
