"""Draws the price in each of its styles, and the volume below it.

Two lines that colour the area between them also get their intersections as points, so that colours can change exactly there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.charts.panels import ChartPicture
from openbell.charts.scales import Scale
from openbell.charts.scene import Band, Box, Boxes, Color, Dot, Layer, Stroke
from openbell.charts.themes import faded, mixed
from openbell.indicators.registry import get
from openbell.market.bars import Bars, Values

_WIDEST_BODY = 56.0
"""Pixels. A few bars are far apart, but not wider."""
_LONE = 3.0
"""The radius of the dot that is drawn if a line has one bar only."""


def candles_of(bars: Bars, style: str, whole: Bars | None) -> Bars:
    """Returns the bars to draw as the price: for `heikin_ashi` averages from the first bar of `whole` on, else `bars`."""
    if style != "heikin_ashi" or not len(bars):
        return bars
    whole = whole or bars
    lines = get("heikin_ashi").run(whole).since(len(whole) - len(bars)).lines
    opened, high, low, close = (line.values for line in lines)
    return Bars(bars.instrument, bars.timeframe, bars.time, opened, high, low, close, bars.volume)


def price(layer: Layer, picture: ChartPicture, scale: Scale) -> None:
    """Draws the bars in the style of the look."""
    style, theme = picture.look.style, picture.theme
    close = scale.y(picture.bars.close)
    if style == "line":
        _line(layer, picture, close)
    elif style == "area":
        bottom = np.full(len(close), scale.box.bottom)
        layer.items.append(Band(picture.x, close, bottom, faded(theme.accent, 46)))
        _line(layer, picture, close)
    elif style == "baseline":
        _baseline(layer, picture, close)
    elif style == "bars":
        _ohlc(layer, picture, scale)
    elif style == "hilo":
        _high_low(layer, picture, scale)
    elif style == "columns":
        _columns(layer, picture, close, scale.box.bottom)
    else:
        _candles(layer, picture, scale, hollow=style == "hollow")


def price_color(picture: ChartPicture, rising: bool) -> Color:
    """Returns the colour of a bar that rises or falls."""
    colors, theme = picture.options.candles, picture.theme
    return (colors.up or theme.up) if rising else (colors.down or theme.down)


def last_color(picture: ChartPicture) -> Color:
    """Returns the colour of the last candle, which its price at the axis and in the legend have too."""
    return price_color(picture, bool(_rising(picture)[-1]))


def _rising(picture: ChartPicture) -> npt.NDArray[np.bool_]:
    """Returns True for the candles in the colour of rising prices: they close at their open or higher.

    Hollow candles are compared with the close before instead: whether they are filled shows their open.
    """
    bars = picture.candles
    if picture.look.style != "hollow":
        return np.asarray(bars.close >= bars.open)
    first = bars.open[:1] if picture.previous_close is None else np.array([picture.previous_close])
    return np.asarray(bars.close >= np.concatenate((first, bars.close[:-1])))


def _line(layer: Layer, picture: ChartPicture, close: Values) -> None:
    layer.items.append(Stroke(picture.x, close, picture.theme.accent, 2.0))
    _lone_dot(layer, picture, close)


def _lone_dot(layer: Layer, picture: ChartPicture, close: Values) -> None:
    if len(close) == 1:
        layer.items.append(Dot(float(picture.x[0]), float(close[0]), _LONE, picture.theme.accent))


def _baseline(layer: Layer, picture: ChartPicture, close: Values) -> None:
    """Draws the close green above the first close and red below it."""
    base = np.full(len(close), close[0] if len(close) else 0.0)
    x, line, level = with_intersections(picture.x, close, base)
    sides = ((line <= level, picture.theme.up), (line >= level, picture.theme.down))
    for chosen, color in sides:
        layer.items.append(Band(x, masked(chosen, line), level, faded(color, 40)))
    for chosen, color in sides:
        layer.items.append(Stroke(x, masked(chosen, line), color, 2.0))
    _lone_dot(layer, picture, close)


def _candles(layer: Layer, picture: ChartPicture, scale: Scale, *, hollow: bool) -> None:
    bars = picture.candles
    body = body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    wick = np.floor(left + body / 2)
    high, low = scale.y(bars.high), scale.y(bars.low)
    top, bottom = scale.y(np.maximum(bars.open, bars.close)), scale.y(np.minimum(bars.open, bars.close))
    bottom = np.maximum(bottom, top + 1)
    rising, up, colors = _rising(picture), bars.close >= bars.open, picture.options.candles
    groups = [(rising, True, False), (~rising, False, False)]
    if hollow:
        groups = [(up & rising, True, True), (up & ~rising, False, True)]
        groups += [(~up & rising, True, False), (~up & ~rising, False, False)]
    for chosen, rises, unfilled in groups:
        color = price_color(picture, rises)
        border, thread = (colors.border_up, colors.wick_up) if rises else (colors.border_down, colors.wick_down)
        x, w = left[chosen], wick[chosen]
        if colors.draw_wick:
            layer.items.append(Boxes(w, high[chosen], w + 1, low[chosen], thread or color))
        inside = picture.theme.background if unfilled else color
        edge = (border or color) if colors.draw_border else inside
        if not colors.draw_body and not unfilled:
            inside = picture.theme.background
        layer.items.append(Boxes(x, top[chosen], x + body, bottom[chosen], edge))
        if inside != edge and body >= 3:
            inner = Boxes(x + 1, top[chosen] + 1, x + body - 1, bottom[chosen] - 1, inside)
            layer.items.append(inner)


def _high_low(layer: Layer, picture: ChartPicture, scale: Scale) -> None:
    """Draws a box from the low to the high of each bar, green if it closed higher than it opened."""
    bars = picture.bars
    body = body_width(picture.slot)
    left, top = np.floor(picture.x - body / 2), scale.y(bars.high)
    bottom = np.maximum(scale.y(bars.low), top + 1)
    rising = bars.close >= bars.open
    for chosen in (rising, ~rising):
        x, color = left[chosen], price_color(picture, chosen is rising)
        layer.items.append(Boxes(x, top[chosen], x + body, bottom[chosen], color))


def _columns(layer: Layer, picture: ChartPicture, close: Values, bottom: float) -> None:
    """Draws a column up to each close, green if it is not lower than the close before."""
    body = body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    rising = np.concatenate(([True], np.diff(picture.bars.close) >= 0.0))[: len(left)]
    for chosen in (rising, ~rising):
        x, color = left[chosen], mixed(price_color(picture, chosen is rising), picture.theme.background, 0.6)
        layer.items.append(Boxes(x, close[chosen], x + body, np.full(len(x), bottom), color))


def body_width(slot: float) -> int:
    """Returns the width of a candle's body in pixels; odd if at least 3, so that the wick is in the middle."""
    width = max(1, int(min(slot * 0.72, _WIDEST_BODY)))
    return width if width % 2 or width < 3 else width - 1


def _ohlc(layer: Layer, picture: ChartPicture, scale: Scale) -> None:
    bars = picture.bars
    arm = max(1.0, np.floor(min(picture.slot * 0.36, _WIDEST_BODY / 2)))
    x = np.floor(picture.x)
    opened, high, low, close = (scale.y(column) for column in (bars.open, bars.high, bars.low, bars.close))
    rising = bars.close >= bars.open
    for chosen in (rising, ~rising):
        at, color = x[chosen], price_color(picture, chosen is rising)
        layer.items.append(Boxes(at, high[chosen], at + 1, np.maximum(low[chosen], high[chosen] + 1), color))
        layer.items.append(Boxes(at - arm, np.floor(opened[chosen]), at, np.floor(opened[chosen]) + 1, color))
        layer.items.append(Boxes(at + 1, np.floor(close[chosen]), at + 1 + arm, np.floor(close[chosen]) + 1, color))


def volume(layer: Layer, picture: ChartPicture, area: Box) -> None:
    """Draws the volume as pale bars at the bottom of the price panel."""
    bars = picture.bars
    highest = float(bars.volume.max(initial=0)) or 1.0
    body = body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    top = area.bottom - bars.volume / highest * area.height * 0.18
    rising, options, theme = bars.close >= bars.open, picture.options, picture.theme
    for chosen, color in ((rising, options.volume_up or theme.up), (~rising, options.volume_down or theme.down)):
        x = left[chosen]
        bottom = np.full(len(x), area.bottom)
        layer.items.append(Boxes(x, top[chosen], x + body, bottom, mixed(color, picture.theme.background, 0.35)))


def with_intersections(x: Values, one: Values, two: Values) -> tuple[Values, Values, Values]:
    """Returns the x and both lines with a point added wherever the lines intersect."""
    apart = one - two
    before = np.flatnonzero(apart[:-1] * apart[1:] < 0)
    if not len(before):
        return x, one, two
    after = before + 1
    share = apart[before] / (apart[before] - apart[after])
    meet = one[before] + share * (one[after] - one[before])
    between = x[before] + share * (x[after] - x[before])
    return np.insert(x, after, between), np.insert(one, after, meet), np.insert(two, after, meet)


def masked(chosen: npt.NDArray[np.bool_], values: Values) -> Values:
    """Returns the chosen values and NaN elsewhere."""
    return np.where(chosen, values, np.nan)
