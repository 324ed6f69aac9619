"""Panels: their heights, scales, ticks and number formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from typing import NamedTuple

import numpy as np

from openbell.charts.choices import CLOSE_STYLES
from openbell.charts.config.plots import StudyPlot
from openbell.charts.look import ChartOptions, Look
from openbell.charts.numbers import NumberFormat, indexed_format, price_format, value_format
from openbell.charts.scales import LABEL_SPACING, Kind, Scale, extent, fit
from openbell.charts.scene import Box, Color
from openbell.charts.styles import IndicatorColors, style_for
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
_MOST_OF_RANGE = 0.6
_NEAR = 0.3
"""An annotation's price enlarges the scale if it is at most this share of the shown prices' span beyond them."""


class Corner(NamedTuple):
    """The parts of the price panel that the legend covers: its rows at the left, and a strip over the whole width."""

    width: float
    bottom: float
    strip: float

    def covers(self, x: float, y: float) -> bool:
        """Returns True if a name at this place would touch the legend."""
        return y < self.strip or (x < self.width and y < self.bottom)


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
    """The latest values of lines, and the prices of annotations."""
    corner: Corner = Corner(0.0, 0.0, 0.0)

    @property
    def indicators(self) -> tuple[Computed, ...]:
        """All indicators; none in the price panel."""
        return () if self.indicator is None else (self.indicator, *self.more)


@dataclass(frozen=True, slots=True)
class ChartPicture:
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
    options: ChartOptions = field(default_factory=ChartOptions)
    plots: Mapping[str, StudyPlot] = field(default_factory=dict)
    """How indicators are drawn that a config has asked for, by the key of their request."""
    previous_close: float | None = None
    """The close before the first bar; None if it is not known."""
    decimals: int = 2
    """The decimals that prices are quoted with."""

    @property
    def base(self) -> float | None:
        """The price that values are relative to: the first close on a percent or indexed scale, else None."""
        if self.look.price_scale not in {"percent", "indexed"} or not len(self.candles):
            return None
        first = float(self.candles.close[0])
        return first if first > 0 else None

    inks: Mapping[str, IndicatorColors] = field(default_factory=dict)
    """The colours of the indicators, by the key of their request."""
    ahead: int = 0
    """The bars after the last one for which there is room."""

    def x_to(self, count: int) -> Values:
        """Returns the middle of each bar, and of those after the last one if `count` is more than the number of bars."""
        more = count - len(self.x)
        if more <= 0 or not len(self.x):
            return self.x
        return np.concatenate((self.x, self.x[-1] + self.slot * np.arange(1, more + 1)))


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
    area: Box, picture: ChartPicture, overlays: list[Computed], corner: Corner, drawn: Sequence[float] = ()
) -> Panel:
    """Returns the price panel, with a scale that keeps the price clear of the legend.

    `drawn` are the prices of annotations. Those close to the bars enlarge the scale, the others do not.
    """
    candles, look = picture.candles, picture.look
    prices = [candles.close] if look.style in CLOSE_STYLES else [candles.high, candles.low]
    also, ahead, levels = _reach(overlays, picture.ahead)
    drawn = (*drawn, *levels)
    inner = Box(area.left, area.top + corner.strip, area.right, area.bottom - area.height * 0.03)
    base = picture.base
    relative = look.price_scale in {"percent", "indexed"}
    kind: Kind = "linear" if relative and base is None else look.price_scale  # type: ignore[assignment]
    near = [np.array(_near(drawn, extent([*prices, *also, *ahead]), kind))] if drawn else []
    if picture.options.price_range and len(candles):
        low, high = picture.options.price_range
        scale = Scale(low, high, area, "linear" if kind == "log" and low <= 0 else kind, base or 1.0)
    else:
        scale = fit(prices, inner, kind, [*also, *ahead, *near], base or 1.0)
        under = int(np.searchsorted(picture.x, corner.width))
        if found := extent([values[:under] for values in (*prices, *also)]):
            scale = _lowered(scale, found[1], area.top + corner.bottom)
        scale = scale.continued(area)
    ticks = _ticks(scale, area, 44.0) if len(candles) else ()
    return Panel(area, scale, format_of(picture, ticks), ticks, corner=corner)


def format_of(picture: ChartPicture, ticks: Sequence[float] = ()) -> NumberFormat:
    """Returns the format of prices on the scale of the look, and of the axis with these ticks."""
    base = picture.base
    if base is not None and picture.look.price_scale == "indexed":
        return indexed_format(ticks, base)
    return price_format(picture.decimals, ticks, base)


def _reach(overlays: list[Computed], ahead: int) -> tuple[list[Values], list[Values], list[float]]:
    """Returns the values of lines at the bars and after them, and the newest values of levels."""
    values: list[Values] = []
    after: list[Values] = []
    levels: list[float] = []
    for each in overlays:
        level = style_for(each).lines in {"levels", "retracement"}
        levels += each.channels.hlines
        for line in each.channels.lines:
            if level:
                levels += line.values[np.isfinite(line.values)][-1:].tolist()
                continue
            values.append(line.values)
            if line.ahead is not None:
                after.append(line.ahead[:ahead])
    return values, after, levels


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
    """Returns an indicator's panel. Low panels have less margin. `more` are indicators that are drawn in the same panel.

    The scale has the declared range if the values use most of it, or if the indicator has a pair of levels such as 30 and
    70; otherwise it fits the values. The levels are among the ticks.
    """
    every = [computed.channels, *(each.channels for each in more)]
    inner = Box(
        area.left, area.top + min(20.0, area.height * 0.3), area.right, area.bottom - min(4.0, area.height * 0.1)
    )
    values = [line.values for channels in every for line in (*channels.lines, *channels.histogram)]
    if extent(values) is None:
        return Panel(area, Scale(0.0, 1.0, area), NumberFormat(), (), computed, empty=True, more=more)
    y_range, *others = {channels.y_range for channels in every}
    if others:
        y_range = None
    levels = tuple(sorted({level for channels in every for level in channels.hlines}))
    if y_range and (len(levels) > 1 or _uses_most(values, y_range)):
        scale = Scale(*y_range, inner)
    else:
        zero = [np.zeros(1)] if any(channels.histogram for channels in every) else []
        scale = fit([*values, np.array(levels, dtype=np.float64), *zero], inner)
    low, high = scale.low, scale.high
    scale = scale.continued(area)
    ticks = _ticks(scale, area, 26.0, y_range, levels)
    return Panel(area, scale, value_format(low, high, ticks), ticks, computed, more=more)


def _uses_most(values: Sequence[Values], y_range: tuple[float, float]) -> bool:
    found = extent(values)
    return found is not None and found[1] - found[0] >= _MOST_OF_RANGE * (y_range[1] - y_range[0])


def _ticks(
    scale: Scale,
    area: Box,
    spacing: float,
    within: tuple[float, float] | None = None,
    levels: Sequence[float] = (),
) -> tuple[float, ...]:
    """Returns the levels, and the ticks, whose labels fit into the panel without touching each other."""
    low, high = within or (scale.low, scale.high)
    chosen: dict[float, float] = {}
    for value in (*levels, *scale.ticks(spacing)):
        y = scale.at(value)
        inside = low <= value <= high and area.top + 8 < y < area.bottom - 8
        if inside and all(abs(y - other) >= LABEL_SPACING - 2 for other in chosen.values()):
            chosen[value] = y
    return tuple(sorted(chosen))
