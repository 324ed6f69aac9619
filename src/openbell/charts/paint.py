"""Draws the panels and the channels of indicators, and profiles.

The rows of a profile are at prices, strong inside the value area and pale outside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from openbell.charts import price
from openbell.charts.config.plots import LineStyle
from openbell.charts.levels import broken, extremes, levels, named_levels, names_at_ends, retracement, zigzag
from openbell.charts.panels import ChartPicture, Panel
from openbell.charts.price import masked, with_intersections
from openbell.charts.scales import Scale
from openbell.charts.scene import Band, Boxes, Color, Dot, Layer, Scene, Stroke, box
from openbell.charts.styles import SIDED, style_for
from openbell.charts.themes import Theme, faded, mixed
from openbell.indicators.channels import Direction, Line
from openbell.indicators.evaluation import Computed
from openbell.indicators.profiles import VALUE_AREA, control_row, value_area
from openbell.market.bars import Values

_DOT = 3.5
_DEFAULT = LineStyle()
_OPACITY = 0.4
_OUTER = 0.45
"""The opacity of a profile's rows outside the value area, as a share of that of the rows inside."""
EDGE = 0.6
"""Rows at the edge are drawn this share of their width long, because a chart leaves room for them beside the newest bar."""
_LEAST_ROWS = 3
"""Fewer rows at one place are single levels, which have no value area."""


def line_colors(picture: ChartPicture, computed: Computed) -> list[Color]:
    """Returns the colour of each line, then of each histogram. For those that change colour, it is the latest colour."""
    channels, theme = computed.channels, picture.theme
    kind, ink = style_for(computed).lines, picture.inks[computed.request.key]
    found = []
    for line in channels.lines:
        color = ink.lines[line.label]
        if kind in SIDED and len(picture.bars):
            begun = channels.lines[0].values[-1]
            rises = (channels.lines[-1].values[-1] if kind == "candles" else picture.bars.close[-1]) >= begun
            color = ink.own or (theme.up if rises else theme.down)
        found.append(style_of(picture, computed, line.label).color or color)
    return found + [_newest_tone(picture, computed, line) for line in channels.histogram]


def style_of(picture: ChartPicture, computed: Computed, label: str) -> LineStyle:
    """Returns how the caller wants a line to be drawn."""
    plot = picture.plots.get(computed.request.key)
    if plot is None:
        return _DEFAULT
    style = plot.styles.get(label, _DEFAULT)
    return style if plot.width is None or style.width else replace(style, width=plot.width)


def price_panel(scene: Scene, picture: ChartPicture, panel: Panel, overlays: list[Computed]) -> None:
    """Draws the volume, the areas of the overlays, the price, and the lines of the overlays."""
    layer = scene.layer(panel.box)
    if picture.look.volume and len(picture.bars):
        price.volume(layer, picture, panel.box)
    for computed in overlays:
        _areas(layer, picture, panel, computed)
    price.price(layer, picture, panel.scale)
    for computed in overlays:
        _lines(layer, picture, panel, computed)
    if len(picture.bars) and picture.options.price_line:
        y, color = panel.scale.at(float(picture.bars.close[-1])), price.last_color(picture)
        edges = np.array([panel.box.left, panel.box.right])
        layer.items.append(Stroke(edges, np.array([y, y]), faded(color, 200), 1.0, (2.0, 3.0)))


def indicator_panel(scene: Scene, picture: ChartPicture, panel: Panel) -> None:
    """Draws the indicators of a panel."""
    if panel.empty:
        return
    layer = scene.layer(panel.box)
    for computed in panel.indicators:
        _indicator(layer, picture, panel, computed)


def _indicator(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed) -> None:
    """Draws the levels, histogram, areas and lines of one indicator."""
    edges = np.array([panel.box.left, panel.box.right])
    channels = computed.channels
    if len(channels.hlines) == 2:
        low, high = sorted(panel.scale.at(value) for value in channels.hlines)
        layer.items.append(
            box(panel.box.left, low, panel.box.right, high, faded(picture.inks[computed.request.key].main, 14))
        )
    for value in channels.hlines:
        y = panel.scale.at(value)
        layer.items.append(Stroke(edges, np.array([y, y]), faded(picture.theme.faint, 150), 1.0, (4.0, 4.0)))
    for line in channels.histogram:
        _histogram(layer, picture, panel.scale, computed, line)
    _areas(layer, picture, panel, computed)
    _lines(layer, picture, panel, computed)


# Areas


def _areas(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed) -> None:
    shown, scale, channels = style_for(computed), panel.scale, computed.channels
    own = style_of(picture, computed, channels.lines[0].label).color if channels.lines else None
    color = own or picture.inks[computed.request.key].main
    for fill in channels.fills:
        upper, lower = (scale.y(values) for values in _with_ahead(picture, (fill.upper, fill.lower), fill.ahead))
        x = picture.x_to(len(upper))
        if shown.fills == "sided":
            _sided_band(layer, picture, x, upper, lower)
        else:
            x, upper, lower = broken(picture, x, upper, lower) if shown.restarts else (x, upper, lower)
            layer.items.append(Band(x, upper, lower, faded(color, 26)))
    if shown.lines == "candles":
        _pale_bodies(layer, picture, scale, computed)
    profile(layer, picture, scale, computed)


def _with_ahead(picture: ChartPicture, values: Sequence[Values], ahead: Sequence[Values] | None) -> Sequence[Values]:
    """Returns each series with its values after the last bar, as far as there is room."""
    if not ahead or not picture.ahead:
        return values
    return [np.concatenate((each, more[: picture.ahead])) for each, more in zip(values, ahead, strict=True)]


def _sided_band(layer: Layer, picture: ChartPicture, x: Values, one: Values, two: Values) -> None:
    x, one, two = with_intersections(x, one, two)
    for chosen, color in ((one <= two, picture.theme.up), (one >= two, picture.theme.down)):
        if chosen.any():
            layer.items.append(Band(x, masked(chosen, one), two, faded(color, 34)))


def _pale_bodies(layer: Layer, picture: ChartPicture, scale: Scale, computed: Computed) -> None:
    opened, _, _, close = (scale.y(line.values) for line in computed.channels.lines)
    wide = price.body_width(picture.slot) + 2 if picture.slot >= 5 else max(1.0, picture.slot)
    left = np.floor(picture.x - wide / 2)
    top, bottom = np.minimum(opened, close), np.maximum(opened, close)
    for chosen, color in ((close <= opened, picture.theme.up), (close > opened, picture.theme.down)):
        x, y = left[chosen], top[chosen]
        pale = mixed(color, picture.theme.background, 0.4)
        layer.items.append(Boxes(x, y, x + wide, np.maximum(bottom[chosen], y + 1), pale))


# Lines


def _lines(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed) -> None:
    shown, scale = style_for(computed), panel.scale
    if shown.lines == "levels":
        levels(layer, picture, panel, computed, line_colors(picture, computed))
    elif shown.lines == "retracement":
        retracement(layer, picture, panel, computed, line_colors(picture, computed))
    else:
        _curves(layer, picture, panel, computed)
    if shown.swings:
        zigzag(layer, picture, panel, computed)
    else:
        _segments(layer, picture, scale, computed)
    if computed.request.indicator.overlay:
        named_levels(layer, picture, panel, computed)
    if shown.signals == "extremes":
        extremes(layer, picture, scale, computed)
    elif shown.signals == "dots":
        _signals(layer, picture, scale, computed)


def _curves(layer: Layer, picture: ChartPicture, panel: Panel, computed: Computed) -> None:
    shown, channels, colors = style_for(computed), computed.channels, line_colors(picture, computed)
    for line, color in zip(channels.lines, colors, strict=False):
        style = style_of(picture, computed, line.label)
        (values,) = _with_ahead(picture, (line.values,), None if line.ahead is None else (line.ahead,))
        y = panel.scale.y(values)
        if shown.lines == "line":
            x = picture.x_to(len(y))
            x, y = broken(picture, x, y) if shown.restarts else (x, y)
            layer.items.append(Stroke(x, y, color, style.width or 1.5))
        elif shown.lines != "candles":
            below = line.values <= picture.bars.close
            own = style.color or picture.inks[computed.request.key].own
            (_dots if shown.lines == "dots" else _trail)(layer, picture, y, below, replace(style, color=own))
    if shown.names:
        names_at_ends(layer, picture, panel, computed, colors)


def _segments(layer: Layer, picture: ChartPicture, scale: Scale, computed: Computed) -> None:
    """Draws divergences, and the levels of each session of a profile: dashed ones bound the value area."""
    highlight, ink = picture.theme.highlight, picture.inks[computed.request.key]
    bounds = ink.main if computed.channels.hbars else highlight
    for segment in computed.channels.divlines:
        x = np.array([picture.x[segment.x1], picture.x[segment.x2]])
        y = scale.y(np.array([segment.y1, segment.y2]))
        dash = (5.0, 4.0) if segment.dashed else None
        layer.items.append(Stroke(x, y, bounds if segment.dashed else highlight, 1.5, dash))


def _signals(layer: Layer, picture: ChartPicture, scale: Scale, computed: Computed) -> None:
    for signal in computed.channels.signals:
        x, y = float(picture.x[signal.index]), scale.at(signal.value)
        layer.items.append(Dot(x, y, _DOT, _signal_color(picture.theme, computed, signal.label)))


def _dots(layer: Layer, picture: ChartPicture, y: Values, below: npt.NDArray[np.bool_], style: LineStyle) -> None:
    """Draws a dot for each bar, green below the price and red above it."""
    radius = min(2.5, max(1.2, picture.slot * 0.28))
    theme = picture.theme
    for x, level, up in zip(picture.x.tolist(), y.tolist(), below.tolist(), strict=True):
        if level == level:  # noqa: PLR0124 - NaN
            layer.items.append(Dot(x, level, radius, style.color or (theme.up if up else theme.down)))


def _trail(layer: Layer, picture: ChartPicture, y: Values, below: npt.NDArray[np.bool_], style: LineStyle) -> None:
    """Draws a line that is green below the price and red above it, with a gap where it crosses the price."""
    for chosen, color in ((below, picture.theme.up), (~below, picture.theme.down)):
        layer.items.append(Stroke(picture.x, masked(chosen, y), style.color or color, style.width or 2.0))


def _signal_color(theme: Theme, computed: Computed, label: str) -> Color:
    """Returns green for an upward signal, red for a downward one; the style decides if a signal has no direction."""
    colors = {Direction.UP: theme.up, Direction.DOWN: theme.down, Direction.STRONGLY_UP: theme.highlight}
    direction = computed.request.indicator.signals[label]
    return colors.get(direction) or (theme.up if label in style_for(computed).green else theme.down)


def _tones(picture: ChartPicture, computed: Computed, line: Line) -> dict[tuple[bool, bool], Color]:
    """Returns the colours of a histogram's bars by their side and growth: (above zero, not lower than the bar before)."""
    theme, plot = picture.theme, picture.plots.get(computed.request.key)
    own, every = plot.bar_colors if plot else {}, style_of(picture, computed, line.label).color
    one = None if computed.channels.lines else picture.inks[computed.request.key].own
    up, down = one or theme.up, one or theme.down
    return {
        (True, True): own.get(0) or every or up,
        (True, False): own.get(1) or every or mixed(up, theme.background, 0.5),
        (False, False): own.get(3) or every or down,
        (False, True): own.get(2) or every or mixed(down, theme.background, 0.5),
    }


def _newest_tone(picture: ChartPicture, computed: Computed, line: Line) -> Color:
    """Returns the full tone of the side of the last value: text in the pale one would hardly be readable."""
    above = not (len(line.values) and line.values[-1] < 0.0)
    return _tones(picture, computed, line)[above, above]


def _histogram(layer: Layer, picture: ChartPicture, scale: Scale, computed: Computed, line: Line) -> None:
    """Draws bars from zero, pale if they are closer to zero than the bar before."""
    body = price.body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    zero = scale.at(0.0)
    values = np.nan_to_num(line.values)
    y = scale.y(values)
    growing = np.concatenate(([True], values[1:] >= values[:-1])) if len(values) else np.zeros(0, dtype=bool)
    for (above, grows), color in _tones(picture, computed, line).items():
        chosen = ((values > 0) if above else (values < 0)) & (growing == grows)
        top, bottom = np.minimum(y[chosen], zero), np.maximum(y[chosen], zero)
        layer.items.append(Boxes(left[chosen], top, left[chosen] + body, np.maximum(bottom, top + 1), color))


def profile(layer: Layer, picture: ChartPicture, scale: Scale, computed: Computed) -> None:
    """Draws the rows of a profile. A split profile has pairs of rows: first rising volume, then falling volume."""
    settings, theme = computed.request.settings, picture.theme
    if not computed.channels.hbars or not len(picture.bars):
        return
    rows = np.array(computed.channels.hbars, dtype=np.float64)
    alpha = round(255 * float(settings.get("opacity", _OPACITY)))
    split = bool(settings.get("split_up_down"))
    colors = (theme.up, theme.down) if split else (picture.inks[computed.request.key].main,)
    plot = picture.plots.get(computed.request.key)
    share = plot.value_area if plot and plot.value_area is not None else _share(computed)
    inside = _inside(rows, len(colors), share)
    edge = style_for(computed).profile == "edge"
    for number, color in enumerate(colors):
        part, strong = rows[number :: len(colors)], inside[number :: len(colors)]
        for chosen, tone in ((strong, faded(color, alpha)), (~strong, faded(color, round(alpha * _OUTER)))):
            if chosen.any():
                layer.items.append(_boxes(picture, scale, part[chosen], tone, edge=edge))


def _share(computed: Computed) -> float:
    return float(computed.request.settings.get("value_area", 100.0 * VALUE_AREA)) / 100.0


def _inside(rows: npt.NDArray[np.float64], sides: int, share: float) -> npt.NDArray[np.bool_]:
    """Returns True for each row in the value area of its profile. Rows with the same offset are one profile."""
    first = rows[::sides]
    begins = np.flatnonzero(np.diff(first[:, 3], prepend=np.nan))
    widths = rows[:, 2].reshape(-1, sides).sum(axis=1)
    inside = np.ones(len(first), dtype=bool)
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(first)], strict=True):
        volumes = widths[begin:end]
        if end - begin < _LEAST_ROWS or not volumes.any():
            continue
        below = np.concatenate(([0.0], np.cumsum(volumes)))
        low, high = value_area(below.tolist(), int(control_row(volumes, float(below[-1]))), share)
        inside[begin : begin + low] = inside[begin + high + 1 : end] = False
    return np.repeat(inside, sides)


def _boxes(picture: ChartPicture, scale: Scale, rows: npt.NDArray[np.float64], color: Color, *, edge: bool) -> Boxes:
    y, height, wide, offset, left = rows.T
    top, bottom = scale.y(y + height / 2), scale.y(y - height / 2)
    first, last = float(picture.x[0]) - picture.slot / 2, float(picture.x[-1]) + picture.slot / 2
    # A profile at the edge has the chart's width as its unit, one among the bars the width of all bars.
    reach, right = (picture.plot.width * EDGE, picture.plot.right) if edge else (last - first, last)
    start: Values = np.where(left > 0.0, first + offset * reach, right - (offset + wide) * reach)
    return Boxes(start, top, start + wide * reach, np.maximum(top + 1, bottom - 1), color)
