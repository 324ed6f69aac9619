"""Draws the panels and the channels of indicators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.charts import price
from openbell.charts.config.plots import LineStyle
from openbell.charts.drawings import drawing_of
from openbell.charts.intersections import masked, with_intersections
from openbell.charts.panels import Panel, Picture
from openbell.charts.scales import Scale
from openbell.charts.scene import Band, Boxes, Color, Dot, Layer, Scene, Stroke, box
from openbell.charts.themes import Theme, faded, mixed
from openbell.indicators.channels import Direction, HorizontalBar, Line
from openbell.indicators.evaluation import Computed
from openbell.indicators.value_area import control_row, value_area
from openbell.market.bars import Values

_DOT = 3.5
_OPACITY = 0.28
_OUTER = 0.45
"""The opacity of a profile's rows outside the value area, as a share of that of the rows inside."""
_DEFAULT = LineStyle()


def color_numbers(overlays: list[Computed]) -> list[int]:
    """Returns for each overlay the colour number of its first line. Numbers continue from one overlay to the next."""
    counts = [max(1, len(each.channels.lines)) for each in overlays]
    return [sum(counts[:at]) for at in range(len(counts))]


def line_colors(picture: Picture, computed: Computed, first: int) -> list[Color]:
    """Returns the colour of each line, then of each histogram. For lines that change colour, it is the latest colour."""
    channels, theme = computed.channels, picture.theme
    kind = drawing_of(computed).lines
    lines = (*channels.lines, *channels.histogram)
    styles = [style_of(picture, computed, line.label) for line in lines]
    if kind == "line" or not len(picture.bars):
        return [style.color or _line_color(theme, first + index) for index, style in enumerate(styles)]
    begun = channels.lines[0].values[-1]
    rises = (channels.lines[-1].values[-1] if kind == "candles" else picture.bars.close[-1]) >= begun
    return [style.color or (theme.up if rises else theme.down) for style in styles]


def style_of(picture: Picture, computed: Computed, label: str) -> LineStyle:
    """Returns how a config wants a line to be drawn."""
    plot = picture.plots.get(computed.request.key)
    return plot.styles.get(label, _DEFAULT) if plot else _DEFAULT


def _line_color(theme: Theme, index: int) -> Color:
    return theme.lines[index % len(theme.lines)]


def price_panel(scene: Scene, picture: Picture, panel: Panel, overlays: list[Computed]) -> None:
    """Draws the volume, the areas of the overlays, the price, and the lines of the overlays."""
    layer = scene.layer(panel.box)
    if picture.look.volume and len(picture.bars):
        price.volume(layer, picture, panel.box)
    firsts = color_numbers(overlays)
    for first, computed in zip(firsts, overlays, strict=True):
        _areas(layer, picture, panel.scale, computed, first)
    price.price(layer, picture, panel.scale)
    for first, computed in zip(firsts, overlays, strict=True):
        _lines(layer, picture, panel.scale, computed, first)
    if len(picture.bars) and picture.options.price_line:
        y = panel.scale.at(float(picture.bars.close[-1]))
        color = price.price_color(picture, bool(picture.bars.close[-1] >= picture.bars.open[-1]))
        edges = np.array([panel.box.left, panel.box.right])
        layer.items.append(Stroke(edges, np.array([y, y]), faded(color, 200), 1.0, (2.0, 3.0)))


def indicator_panel(scene: Scene, picture: Picture, panel: Panel, first: int = 0) -> None:
    """Draws the indicators of a panel. `first` is the colour number of the first line."""
    if panel.empty:
        return
    layer = scene.layer(panel.box)
    for number, computed in zip(color_numbers(list(panel.indicators)), panel.indicators, strict=True):
        _indicator(layer, picture, panel, computed, first + number)


def _indicator(layer: Layer, picture: Picture, panel: Panel, computed: Computed, first: int) -> None:
    """Draws the levels, histogram, areas and lines of one indicator."""
    edges = np.array([panel.box.left, panel.box.right])
    channels = computed.channels
    if len(channels.hlines) == 2:
        low, high = sorted(panel.scale.at(value) for value in channels.hlines)
        layer.items.append(box(panel.box.left, low, panel.box.right, high, faded(picture.theme.lines[0], 14)))
    for value in channels.hlines:
        y = panel.scale.at(value)
        layer.items.append(Stroke(edges, np.array([y, y]), faded(picture.theme.faint, 150), 1.0, (4.0, 4.0)))
    for line in channels.histogram:
        _histogram(layer, picture, panel.scale, computed, line)
    _areas(layer, picture, panel.scale, computed, first)
    _lines(layer, picture, panel.scale, computed, first)


# Areas


def _areas(layer: Layer, picture: Picture, scale: Scale, computed: Computed, first: int) -> None:
    drawing, colors = drawing_of(computed), line_colors(picture, computed, first)
    for index, fill in enumerate(computed.channels.fills):
        upper, lower = scale.y(fill.upper), scale.y(fill.lower)
        if drawing.fills == "sided":
            _sided_band(layer, picture, upper, lower)
        else:
            color = colors[0] if index == 0 and colors else _line_color(picture.theme, first + index)
            layer.items.append(Band(picture.x, upper, lower, faded(color, 26)))
    if drawing.lines == "candles":
        _pale_bodies(layer, picture, scale, computed)
    _profile(layer, picture, scale, computed)


def _sided_band(layer: Layer, picture: Picture, one: Values, two: Values) -> None:
    x, one, two = with_intersections(picture.x, one, two)
    for chosen, color in ((one <= two, picture.theme.up), (one >= two, picture.theme.down)):
        if chosen.any():
            layer.items.append(Band(x, masked(chosen, one), two, faded(color, 34)))


def _pale_bodies(layer: Layer, picture: Picture, scale: Scale, computed: Computed) -> None:
    opened, _, _, close = (scale.y(line.values) for line in computed.channels.lines)
    wide = price.body_width(picture.slot) + 2 if picture.slot >= 5 else max(1.0, picture.slot)
    left = np.floor(picture.x - wide / 2)
    top, bottom = np.minimum(opened, close), np.maximum(opened, close)
    for chosen, color in ((close <= opened, picture.theme.up), (close > opened, picture.theme.down)):
        x, y = left[chosen], top[chosen]
        pale = mixed(color, picture.theme.background, 0.4)
        layer.items.append(Boxes(x, y, x + wide, np.maximum(bottom[chosen], y + 1), pale))


def _profile(layer: Layer, picture: Picture, scale: Scale, computed: Computed) -> None:
    """Draws the rows of a profile. A split profile has pairs of rows: first rising volume, then falling volume."""
    theme, settings, bars = picture.theme, computed.request.settings, computed.channels.hbars
    if not bars:
        return
    alpha = round(255 * float(settings.get("opacity", _OPACITY)))
    colors = (theme.up, theme.down) if settings.get("split_up_down") else (theme.lines[3],)
    plot = picture.plots.get(computed.request.key)
    area = slice(None) if plot is None or plot.value_area is None else _value_area(bars, len(colors), plot.value_area)
    for number, color in enumerate(colors):
        rows = bars[number :: len(colors)]
        layer.items.append(_rows(picture, scale, rows[area], faded(color, alpha)))
        outer = () if area == slice(None) else rows[: area.start] + rows[area.stop :]
        if outer:
            layer.items.append(_rows(picture, scale, outer, faded(color, round(alpha * _OUTER))))


def _value_area(bars: tuple[HorizontalBar, ...], sides: int, share: float) -> slice:
    """Returns the rows around the one with the most volume that hold a share of all the volume."""
    volumes = np.array([bar.width for bar in bars], dtype=np.float64).reshape(-1, sides).sum(axis=1)
    below = np.concatenate(([0.0], np.cumsum(volumes)))
    first, last = value_area(below.tolist(), int(control_row(volumes, float(below[-1]))), share)
    return slice(first, last + 1)


def _rows(picture: Picture, scale: Scale, bars: tuple[HorizontalBar, ...], color: Color) -> Boxes:
    columns = zip(*((bar.y, bar.height, bar.width, bar.offset, bar.left) for bar in bars), strict=True)
    y, height, wide, offset, left = (np.array(column, dtype=np.float64) for column in columns)
    top, bottom = scale.y(y + height / 2), scale.y(y - height / 2)
    # A profile at the left is placed among the bars, which do not reach the right edge of the plot.
    reach = np.where(left, picture.slot * len(picture.bars), picture.plot.width)
    start = np.where(
        left, picture.x[0] - picture.slot / 2 + offset * reach, picture.plot.right - (offset + wide) * reach
    )
    return Boxes(start, top, start + wide * reach, np.maximum(top + 1, bottom - 1), color)


# Lines


def _lines(layer: Layer, picture: Picture, scale: Scale, computed: Computed, first: int) -> None:
    theme, channels = picture.theme, computed.channels
    kind = drawing_of(computed).lines
    for index, line in enumerate(channels.lines):
        y, style = scale.y(line.values), style_of(picture, computed, line.label)
        if kind == "line":
            color = style.color or _line_color(theme, first + index)
            layer.items.append(Stroke(picture.x, y, color, style.width or 1.5))
        elif kind != "candles":
            below = line.values <= picture.bars.close
            (_dots if kind == "dots" else _trail)(layer, picture, y, below, style)
    for segment in channels.divlines:
        x = np.array([picture.x[segment.x1], picture.x[segment.x2]])
        y = scale.y(np.array([segment.y1, segment.y2]))
        dash = (5.0, 4.0) if segment.dashed else None
        layer.items.append(Stroke(x, y, theme.highlight, 1.5, dash))
    if computed.request.indicator.overlay:
        edges = np.array([picture.plot.left, picture.plot.right])
        for value in channels.hlines:
            level = np.full(2, scale.at(value))
            layer.items.append(Stroke(edges, level, faded(theme.lines[3], 190), 1.0, (6.0, 4.0)))
    for signal in channels.signals:
        layer.items.append(
            Dot(
                float(picture.x[signal.index]),
                scale.at(signal.value),
                _DOT,
                _signal_color(theme, computed, signal.label),
            )
        )


def _dots(layer: Layer, picture: Picture, y: Values, below: npt.NDArray[np.bool_], style: LineStyle) -> None:
    """Draws a dot for each bar, green below the price and red above it."""
    radius = min(2.5, max(1.2, picture.slot * 0.28))
    theme = picture.theme
    for x, level, up in zip(picture.x.tolist(), y.tolist(), below.tolist(), strict=True):
        if level == level:  # noqa: PLR0124 - NaN
            layer.items.append(Dot(x, level, radius, style.color or (theme.up if up else theme.down)))


def _trail(layer: Layer, picture: Picture, y: Values, below: npt.NDArray[np.bool_], style: LineStyle) -> None:
    """Draws a line that is green below the price and red above it, with a gap where it crosses the price."""
    for chosen, color in ((below, picture.theme.up), (~below, picture.theme.down)):
        layer.items.append(Stroke(picture.x, masked(chosen, y), style.color or color, style.width or 2.0))


def _signal_color(theme: Theme, computed: Computed, label: str) -> Color:
    """Returns green for an upward signal, red for a downward one; the drawing decides if a signal has no direction."""
    colors = {Direction.UP: theme.up, Direction.DOWN: theme.down, Direction.STRONGLY_UP: theme.highlight}
    direction = computed.request.indicator.signals[label]
    return colors.get(direction) or (theme.up if label in drawing_of(computed).green else theme.down)


def _histogram(layer: Layer, picture: Picture, scale: Scale, computed: Computed, line: Line) -> None:
    """Draws bars from zero, pale if they are closer to zero than the bar before."""
    theme, plot = picture.theme, picture.plots.get(computed.request.key)
    own, every = plot.bar_colors if plot else {}, style_of(picture, computed, line.label).color
    body = price.body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    zero = scale.at(0.0)
    values = np.nan_to_num(line.values)
    y = scale.y(values)
    growing = np.concatenate(([True], values[1:] >= values[:-1])) if len(values) else np.zeros(0, dtype=bool)
    for number, positive, strong, usual in (
        (0, True, True, theme.up),
        (1, True, False, mixed(theme.up, theme.background, 0.5)),
        (3, False, False, theme.down),
        (2, False, True, mixed(theme.down, theme.background, 0.5)),
    ):
        color = own.get(number) or every or usual
        chosen = ((values > 0) if positive else (values < 0)) & (growing == strong)
        top, bottom = np.minimum(y[chosen], zero), np.maximum(y[chosen], zero)
        layer.items.append(Boxes(left[chosen], top, left[chosen] + body, np.maximum(bottom, top + 1), color))
