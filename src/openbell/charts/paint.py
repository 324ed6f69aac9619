"""Painters: price styles, volume, indicator channels, the mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openbell.charts import fonts
from openbell.charts.request import Computed
from openbell.charts.scales import Scale
from openbell.charts.scene import Band, Box, Boxes, Color, Dot, Label, Layer, Scene, Stroke, box
from openbell.charts.themes import Theme, faded, mixed
from openbell.market.bars import Bars, Values

if TYPE_CHECKING:
    from openbell.charts.compose import Panel, Picture

_DOT = 3.5
_OPACITY = 0.28


def line_color(theme: Theme, index: int) -> Color:
    """The colour of an indicator's nth line."""
    return theme.lines[index % len(theme.lines)]


def color_numbers(overlays: list[Computed]) -> list[int]:
    """The number of each overlay's first line: colours go on from one indicator to the next."""
    counts = [max(1, len(each.channels.lines)) for each in overlays]
    return [sum(counts[:at]) for at in range(len(counts))]


def mark(scene: Scene, area: Box, text: str, theme: Theme) -> None:
    """A large faint word across the price, under everything."""
    layer = scene.layer(area)
    middle = (area.left + area.right) / 2
    size = min(64.0, area.width / 12)
    layer.items.append(Label(middle, (area.top + area.bottom) / 2, text, size, faded(theme.mark, 34), "center", True))


def small_mark(layer: Layer, area: Box, text: str, theme: Theme) -> None:
    """The same word small and plain, on top of everything."""
    width = fonts.width(text, 11.0, True)
    layer.items.append(
        box(area.right - width - 18, area.bottom - 22, area.right - 6, area.bottom - 5, theme.background)
    )
    layer.items.append(Label(area.right - 12, area.bottom - 13, text, 11.0, theme.mark, "right", True))


def price_panel(scene: Scene, picture: Picture, panel: Panel, overlays: list[Computed]) -> None:
    """Volume at the bottom, overlays' areas, the price, overlays' lines."""
    layer = scene.layer(panel.box)
    if picture.look.volume and len(picture.bars):
        _volume(layer, picture, panel.box)
    firsts = color_numbers(overlays)
    for first, computed in zip(firsts, overlays, strict=True):
        _areas(layer, picture, panel.scale, computed, first)
    _price(layer, picture, panel.scale)
    for first, computed in zip(firsts, overlays, strict=True):
        _lines(layer, picture, panel.scale, computed, first)
    if len(picture.bars):
        y = panel.scale.at(float(picture.bars.close[-1]))
        up = picture.bars.close[-1] >= picture.bars.open[-1]
        color = picture.theme.up if up else picture.theme.down
        edges = np.array([panel.box.left, panel.box.right])
        layer.items.append(Stroke(edges, np.array([y, y]), faded(color, 200), 1.0, (2.0, 3.0)))


def indicator_panel(scene: Scene, picture: Picture, panel: Panel) -> None:
    """Reference levels, histogram, areas and lines of one indicator."""
    if panel.indicator is None:
        return
    layer = scene.layer(panel.box)
    edges = np.array([panel.box.left, panel.box.right])
    channels = panel.indicator.channels
    if len(channels.hlines) == 2:
        low, high = sorted(panel.scale.at(value) for value in channels.hlines)
        layer.items.append(box(panel.box.left, low, panel.box.right, high, faded(picture.theme.lines[0], 14)))
    for value in channels.hlines:
        y = panel.scale.at(value)
        layer.items.append(Stroke(edges, np.array([y, y]), faded(picture.theme.faint, 150), 1.0, (4.0, 4.0)))
    _histogram(layer, picture, panel)
    _areas(layer, picture, panel.scale, panel.indicator, 0)
    _lines(layer, picture, panel.scale, panel.indicator, 0)


# Price


def _price(layer: Layer, picture: Picture, scale: Scale) -> None:
    style, bars, theme = picture.look.style, picture.bars, picture.theme
    close = scale.y(bars.close)
    if style == "line":
        layer.items.append(Stroke(picture.x, close, theme.accent, 2.0))
    elif style == "area":
        bottom = np.full(len(bars), scale.box.bottom)
        layer.items.append(Band(picture.x, close, bottom, faded(theme.accent, 46)))
        layer.items.append(Stroke(picture.x, close, theme.accent, 2.0))
    elif style == "baseline":
        _baseline(layer, picture, close)
    elif style == "bars":
        _ohlc(layer, picture, scale)
    else:
        shown = heikin_ashi(bars) if style == "heikin_ashi" else bars
        _candles(layer, picture, scale, shown, hollow=style == "hollow")


def heikin_ashi(bars: Bars) -> Bars:
    """Averaged candles."""
    if not len(bars):
        return bars
    close = (bars.open + bars.high + bars.low + bars.close) / 4
    opened = np.empty(len(bars))
    opened[0] = (bars.open[0] + bars.close[0]) / 2
    values = close.tolist()
    current = float(opened[0])
    for index in range(1, len(bars)):
        current = (current + values[index - 1]) / 2
        opened[index] = current
    high = np.maximum(bars.high, np.maximum(opened, close))
    low = np.minimum(bars.low, np.minimum(opened, close))
    return Bars(bars.instrument, bars.timeframe, bars.time, opened, high, low, close, bars.volume)


def _candles(layer: Layer, picture: Picture, scale: Scale, bars: Bars, *, hollow: bool) -> None:
    body = _body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    wick = np.floor(left + body / 2)
    high, low = scale.y(bars.high), scale.y(bars.low)
    top, bottom = scale.y(np.maximum(bars.open, bars.close)), scale.y(np.minimum(bars.open, bars.close))
    bottom = np.maximum(bottom, top + 1)
    rising = bars.close >= bars.open
    for chosen, color in ((rising, picture.theme.up), (~rising, picture.theme.down)):
        x, w = left[chosen], wick[chosen]
        layer.items.append(Boxes(w, high[chosen], w + 1, low[chosen], color))
        layer.items.append(Boxes(x, top[chosen], x + body, bottom[chosen], color))
        if hollow and body >= 3 and chosen is rising:
            inner = Boxes(x + 1, top[chosen] + 1, x + body - 1, bottom[chosen] - 1, picture.theme.background)
            layer.items.append(inner)


def _body_width(slot: float) -> int:
    """Odd, so that the wick stands in the middle."""
    width = max(1, int(slot * 0.72))
    return width if width % 2 or width < 3 else width - 1


def _ohlc(layer: Layer, picture: Picture, scale: Scale) -> None:
    bars = picture.bars
    arm = max(1.0, np.floor(picture.slot * 0.36))
    x = np.floor(picture.x)
    opened, high, low, close = (scale.y(column) for column in (bars.open, bars.high, bars.low, bars.close))
    rising = bars.close >= bars.open
    for chosen, color in ((rising, picture.theme.up), (~rising, picture.theme.down)):
        at = x[chosen]
        layer.items.append(Boxes(at, high[chosen], at + 1, np.maximum(low[chosen], high[chosen] + 1), color))
        layer.items.append(Boxes(at - arm, np.floor(opened[chosen]), at, np.floor(opened[chosen]) + 1, color))
        layer.items.append(Boxes(at + 1, np.floor(close[chosen]), at + 1 + arm, np.floor(close[chosen]) + 1, color))


def _baseline(layer: Layer, picture: Picture, close: Values) -> None:
    """Green above the first close, red below it."""
    base = float(close[0]) if len(close) else 0.0
    level = np.full(len(close), base)
    for part, color in ((np.minimum(close, base), picture.theme.up), (np.maximum(close, base), picture.theme.down)):
        layer.items.append(Band(picture.x, part, level, faded(color, 40)))
    above = np.where(close <= base, close, np.nan)
    below = np.where(close > base, close, np.nan)
    # Each piece reaches one bar into the other, so that the line has no gap where it crosses.
    layer.items.append(Stroke(picture.x, _widened(above, close), picture.theme.up, 2.0))
    layer.items.append(Stroke(picture.x, _widened(below, close), picture.theme.down, 2.0))


def _widened(part: Values, whole: Values) -> Values:
    out = part.copy()
    gaps = np.flatnonzero(np.isnan(part[1:]) & ~np.isnan(part[:-1])) + 1
    out[gaps] = whole[gaps]
    return out


def _volume(layer: Layer, picture: Picture, area: Box) -> None:
    bars = picture.bars
    highest = float(bars.volume.max()) or 1.0
    body = _body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    top = area.bottom - bars.volume / highest * area.height * 0.18
    rising = bars.close >= bars.open
    for chosen, color in ((rising, picture.theme.up), (~rising, picture.theme.down)):
        x = left[chosen]
        bottom = np.full(len(x), area.bottom)
        layer.items.append(Boxes(x, top[chosen], x + body, bottom, mixed(color, picture.theme.background, 0.35)))


# Indicators


def _areas(layer: Layer, picture: Picture, scale: Scale, computed: Computed, number: int) -> None:
    theme = picture.theme
    for index, fill in enumerate(computed.channels.fills):
        color = faded(line_color(theme, number + index), 26)
        layer.items.append(Band(picture.x, scale.y(fill.upper), scale.y(fill.lower), color))
    width = picture.plot.width
    opacity = round(255 * float(computed.wanted.settings.get("opacity", _OPACITY)))
    for bar in computed.channels.hbars:
        top, bottom = scale.at(bar.y + bar.height / 2), scale.at(bar.y - bar.height / 2)
        start = bar.offset * width
        left = picture.plot.left + start if bar.left else picture.plot.right - start - bar.width * width
        edge = max(top + 1, bottom - 1)
        layer.items.append(box(left, top, left + bar.width * width, edge, faded(theme.lines[3], opacity)))


def _lines(layer: Layer, picture: Picture, scale: Scale, computed: Computed, number: int) -> None:
    theme, channels = picture.theme, computed.channels
    for index, line in enumerate(channels.lines):
        layer.items.append(Stroke(picture.x, scale.y(line.values), line_color(theme, number + index), 1.5))
    for segment in channels.divlines:
        x = np.array([picture.x[segment.x1], picture.x[segment.x2]])
        y = scale.y(np.array([segment.y1, segment.y2]))
        dash = (5.0, 4.0) if segment.dashed else None
        layer.items.append(Stroke(x, y, theme.mark, 1.5, dash))
    if computed.wanted.indicator.overlay:
        edges = np.array([picture.plot.left, picture.plot.right])
        for value in channels.hlines:
            level = np.full(2, scale.at(value))
            layer.items.append(Stroke(edges, level, faded(theme.lines[3], 190), 1.0, (6.0, 4.0)))
    for signal in channels.signals:
        layer.items.append(
            Dot(float(picture.x[signal.index]), scale.at(signal.value), _DOT, _signal_color(theme, signal.label))
        )


def _signal_color(theme: Theme, label: str) -> Color:
    """Green for what speaks for a rise, red for the opposite."""
    rising = ("buy", "oversold", "up", "bull", "low", "off")
    if any(word in label for word in ("gold",)):
        return theme.mark
    return theme.up if any(word in label for word in rising) else theme.down


def _histogram(layer: Layer, picture: Picture, panel: Panel) -> None:
    if panel.indicator is None:
        return
    body = _body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    zero = panel.scale.at(0.0)
    pale_up, pale_down = (
        mixed(color, picture.theme.background, 0.5) for color in (picture.theme.up, picture.theme.down)
    )
    for line in panel.indicator.channels.histogram:
        values = np.nan_to_num(line.values)
        y = panel.scale.y(values)
        growing = np.concatenate(([True], values[1:] >= values[:-1])) if len(values) else np.zeros(0, dtype=bool)
        for positive, strong, color in (
            (True, True, picture.theme.up),
            (True, False, pale_up),
            (False, False, picture.theme.down),
            (False, True, pale_down),
        ):
            chosen = ((values > 0) if positive else (values < 0)) & (growing == strong)
            top, bottom = np.minimum(y[chosen], zero), np.maximum(y[chosen], zero)
            layer.items.append(Boxes(left[chosen], top, left[chosen] + body, np.maximum(bottom, top + 1), color))
