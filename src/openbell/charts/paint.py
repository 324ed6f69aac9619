"""Draws the panels and the channels of indicators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.charts import price
from openbell.charts.drawings import drawing_of
from openbell.charts.intersections import masked, with_intersections
from openbell.charts.panels import Panel, Picture
from openbell.charts.scales import Scale
from openbell.charts.scene import Band, Boxes, Color, Dot, Layer, Scene, Stroke, box
from openbell.charts.themes import Theme, faded, mixed
from openbell.indicators.channels import Direction, HorizontalBar
from openbell.indicators.evaluation import Computed
from openbell.market.bars import Values

_DOT = 3.5
_OPACITY = 0.28


def color_numbers(overlays: list[Computed]) -> list[int]:
    """Returns for each overlay the colour number of its first line. Numbers continue from one overlay to the next."""
    counts = [max(1, len(each.channels.lines)) for each in overlays]
    return [sum(counts[:at]) for at in range(len(counts))]


def line_colors(picture: Picture, computed: Computed, first: int) -> list[Color]:
    """Returns the colour of each line, then of each histogram. For lines that change colour, it is the latest colour."""
    channels, theme = computed.channels, picture.theme
    count = len(channels.lines) + len(channels.histogram)
    kind = drawing_of(computed).lines
    if kind == "line" or not len(picture.bars):
        return [_line_color(theme, first + index) for index in range(count)]
    begun = channels.lines[0].values[-1]
    rises = (channels.lines[-1].values[-1] if kind == "candles" else picture.bars.close[-1]) >= begun
    return [theme.up if rises else theme.down] * count


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
    if len(picture.bars):
        y = panel.scale.at(float(picture.bars.close[-1]))
        up = picture.bars.close[-1] >= picture.bars.open[-1]
        color = picture.theme.up if up else picture.theme.down
        edges = np.array([panel.box.left, panel.box.right])
        layer.items.append(Stroke(edges, np.array([y, y]), faded(color, 200), 1.0, (2.0, 3.0)))


def indicator_panel(scene: Scene, picture: Picture, panel: Panel) -> None:
    """Draws the levels, histogram, areas and lines of one indicator."""
    if panel.indicator is None or panel.empty:
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
    for line in channels.histogram:
        _histogram(layer, picture, panel.scale, line.values)
    _areas(layer, picture, panel.scale, panel.indicator, 0)
    _lines(layer, picture, panel.scale, panel.indicator, 0)


# Areas


def _areas(layer: Layer, picture: Picture, scale: Scale, computed: Computed, first: int) -> None:
    drawing = drawing_of(computed)
    for index, fill in enumerate(computed.channels.fills):
        upper, lower = scale.y(fill.upper), scale.y(fill.lower)
        if drawing.fills == "sided":
            _sided_band(layer, picture, upper, lower)
        else:
            color = faded(_line_color(picture.theme, first + index), 26)
            layer.items.append(Band(picture.x, upper, lower, color))
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
    if settings.get("split_up_down"):
        layer.items.append(_rows(picture, scale, bars[::2], faded(theme.up, alpha)))
        layer.items.append(_rows(picture, scale, bars[1::2], faded(theme.down, alpha)))
    else:
        layer.items.append(_rows(picture, scale, bars, faded(theme.lines[3], alpha)))


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
        y = scale.y(line.values)
        if kind == "line":
            layer.items.append(Stroke(picture.x, y, _line_color(theme, first + index), 1.5))
        elif kind != "candles":
            below = line.values <= picture.bars.close
            (_dots if kind == "dots" else _trail)(layer, picture, y, below)
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


def _dots(layer: Layer, picture: Picture, y: Values, below: npt.NDArray[np.bool_]) -> None:
    """Draws a dot for each bar, green below the price and red above it."""
    radius = min(2.5, max(1.2, picture.slot * 0.28))
    theme = picture.theme
    for x, level, up in zip(picture.x.tolist(), y.tolist(), below.tolist(), strict=True):
        if level == level:  # noqa: PLR0124 - NaN
            layer.items.append(Dot(x, level, radius, theme.up if up else theme.down))


def _trail(layer: Layer, picture: Picture, y: Values, below: npt.NDArray[np.bool_]) -> None:
    """Draws a line that is green below the price and red above it, with a gap where it crosses the price."""
    for chosen, color in ((below, picture.theme.up), (~below, picture.theme.down)):
        layer.items.append(Stroke(picture.x, masked(chosen, y), color, 2.0))


def _signal_color(theme: Theme, computed: Computed, label: str) -> Color:
    """Returns green for an upward signal, red for a downward one; the drawing decides if a signal has no direction."""
    colors = {Direction.UP: theme.up, Direction.DOWN: theme.down, Direction.STRONGLY_UP: theme.highlight}
    direction = computed.request.indicator.signals[label]
    return colors.get(direction) or (theme.up if label in drawing_of(computed).green else theme.down)


def _histogram(layer: Layer, picture: Picture, scale: Scale, values: Values) -> None:
    """Draws bars from zero, pale if they are closer to zero than the bar before."""
    theme = picture.theme
    body = price.body_width(picture.slot)
    left = np.floor(picture.x - body / 2)
    zero = scale.at(0.0)
    values = np.nan_to_num(values)
    y = scale.y(values)
    growing = np.concatenate(([True], values[1:] >= values[:-1])) if len(values) else np.zeros(0, dtype=bool)
    for positive, strong, color in (
        (True, True, theme.up),
        (True, False, mixed(theme.up, theme.background, 0.5)),
        (False, False, theme.down),
        (False, True, mixed(theme.down, theme.background, 0.5)),
    ):
        chosen = ((values > 0) if positive else (values < 0)) & (growing == strong)
        top, bottom = np.minimum(y[chosen], zero), np.maximum(y[chosen], zero)
        layer.items.append(Boxes(left[chosen], top, left[chosen] + body, np.maximum(bottom, top + 1), color))
