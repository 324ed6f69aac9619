"""From bars and indicators to a scene: panels from top to bottom, axes, legend, the mark of simulated data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openbell.charts import fonts, paint
from openbell.charts.request import Computed, Look
from openbell.charts.scales import Scale, decimals_for, fit, number, short
from openbell.charts.scene import Box, Boxes, Color, Label, Layer, Scene, box
from openbell.charts.themes import THEMES, Theme
from openbell.charts.time_axis import TimeTick, time_ticks
from openbell.market.bars import Bars, Values

TIME_AXIS = 28.0
TICK_SIZE = 11.0
LEGEND_SIZE = 12.0
_LEGEND_ROW = 18.0
_GAP = 1.0


@dataclass(frozen=True, slots=True)
class Panel:
    """A pane with its scale."""

    box: Box
    scale: Scale
    decimals: int
    indicator: Computed | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """All that painting needs."""

    bars: Bars
    title: str
    look: Look
    theme: Theme
    x: Values
    slot: float
    plot: Box
    times: list[TimeTick]


def compose(bars: Bars, indicators: list[Computed], look: Look, title: str, mark: str = "") -> Scene:
    """The scene of a chart. `mark` is shown across the price when the data is not real."""
    theme = THEMES[look.theme]
    scene = Scene(look.width, look.height, theme.background)
    overlays = [each for each in indicators if each.wanted.indicator.overlay]
    others = [each for each in indicators if not each.wanted.indicator.overlay]
    axis = _axis_width(bars, others)
    plot = Box(0.0, 0.0, look.width - axis, look.height - TIME_AXIS)
    slot = plot.width / (len(bars) + max(2.0, len(bars) * 0.03))
    middles = (np.arange(len(bars), dtype=np.float64) + 0.5) * slot
    picture = Picture(bars, title, look, theme, middles, slot, plot, time_ticks(bars, slot))
    panels = _panels(picture, overlays, others)
    if mark:
        paint.mark(scene, panels[0].box, mark, theme)
    for panel in panels:
        _grid(scene, picture, panel)
    _time_axis(scene, picture)
    paint.price_panel(scene, picture, panels[0], overlays)
    for panel in panels[1:]:
        paint.indicator_panel(scene, picture, panel)
    _frame(scene, picture, panels)
    _price_axis(scene, picture, panels)
    _legends(scene, picture, panels, overlays)
    if mark:
        paint.small_mark(scene.layer(), panels[0].box, mark, theme)
    return scene


def _axis_width(bars: Bars, others: list[Computed]) -> float:
    """Wide enough for the longest label."""
    decimals = decimals_for(bars.close)
    texts = [number(float(value), decimals) for value in (bars.high.max(initial=0), bars.low.min(initial=1e9))]
    for each in others:
        for line in (*each.channels.lines, *each.channels.histogram):
            finite = line.values[np.isfinite(line.values)]
            if len(finite):
                texts += [short(float(finite.max())), short(float(finite.min()))]
    return max(52.0, max(fonts.width(text, TICK_SIZE) for text in texts) + 18.0)


def _panels(picture: Picture, overlays: list[Computed], others: list[Computed]) -> list[Panel]:
    """The price on top, then the others, each with a share of the height."""
    plot, bars = picture.plot, picture.bars
    share = min(0.22, 0.62 / len(others)) if others else 0.0
    height = plot.height * (1 - share * len(others))
    top = Box(plot.left, plot.top, plot.right, plot.top + height)
    rows = min(len(overlays) + 1, 6)
    inner = Box(top.left, top.top + 24 + rows * 9, top.right, top.bottom - (height * 0.03))
    seen = [bars.high, bars.low] if picture.look.style not in {"line", "area"} else [bars.close]
    for each in overlays:
        seen += [line.values for line in each.channels.lines]
    kind = picture.look.price_scale
    base = float(bars.close[0]) if len(bars) else 1.0
    price = fit(seen, inner, kind, base=base)  # type: ignore[arg-type]
    panels = [Panel(top, _stretch(price, top), decimals_for(bars.close))]
    at = top.bottom
    for each in others:
        area = Box(plot.left, at + _GAP, plot.right, at + plot.height * share)
        panels.append(_indicator_panel(area, each))
        at = area.bottom
    return panels


def _stretch(scale: Scale, area: Box) -> Scale:
    """The same scale, continued to the edges of a larger area."""
    probe = Scale(scale.low, scale.high, scale.box, scale.kind, scale.base)
    if probe.kind == "log":
        per = (np.log(scale.high) - np.log(scale.low)) / scale.box.height
        high = float(np.exp(np.log(scale.high) + (scale.box.top - area.top) * per))
        low = float(np.exp(np.log(scale.low) - (area.bottom - scale.box.bottom) * per))
    else:
        per = (scale.high - scale.low) / scale.box.height
        high = scale.high + (scale.box.top - area.top) * per
        low = scale.low - (area.bottom - scale.box.bottom) * per
    return Scale(low, high, area, scale.kind, scale.base)


def _indicator_panel(area: Box, computed: Computed) -> Panel:
    channels = computed.channels
    inner = Box(area.left, area.top + 20, area.right, area.bottom - 4)
    if channels.y_range:
        scale = Scale(*channels.y_range, inner)
    else:
        seen = [line.values for line in (*channels.lines, *channels.histogram)]
        seen += [np.array(channels.hlines)] if channels.hlines else []
        seen += [np.zeros(1)] if channels.histogram else []
        scale = fit(seen, inner, "linear")
    return Panel(area, _stretch(scale, area), 2, computed)


def _grid(scene: Scene, picture: Picture, panel: Panel) -> None:
    layer, area = scene.layer(panel.box), panel.box
    y = np.rint([panel.scale.at(value) for value in _ticks(panel)])
    x = np.rint(picture.x[[tick.index for tick in picture.times]])
    for left, top, right, bottom in ((area.left, y, area.right, y + 1), (x, area.top, x + 1, area.bottom)):
        edges = np.broadcast_arrays(left, top, right, bottom)
        layer.items.append(Boxes(edges[0], edges[1], edges[2], edges[3], picture.theme.grid))


def _ticks(panel: Panel) -> list[float]:
    spacing = 44.0 if panel.indicator is None else 30.0
    return [v for v in panel.scale.ticks(spacing) if panel.box.top + 8 < panel.scale.at(v) < panel.box.bottom - 8]


def _time_axis(scene: Scene, picture: Picture) -> None:
    layer = scene.layer()
    theme, plot = picture.theme, picture.plot
    middle = plot.bottom + TIME_AXIS / 2
    for tick in picture.times:
        x = float(picture.x[tick.index])
        if 18 < x < plot.right - 18:
            color = theme.text if tick.major else theme.faint
            layer.items.append(Label(x, middle, tick.text, TICK_SIZE, color, "center", tick.major))


def _frame(scene: Scene, picture: Picture, panels: list[Panel]) -> None:
    layer = scene.layer()
    theme, plot, look = picture.theme, picture.plot, picture.look
    layer.items.append(box(plot.right, 0, plot.right + 1, look.height, theme.border))
    layer.items.append(box(0, plot.bottom, look.width, plot.bottom + 1, theme.border))
    for panel in panels[1:]:
        layer.items.append(box(0, panel.box.top - 1, look.width, panel.box.top, theme.border))


def _price_axis(scene: Scene, picture: Picture, panels: list[Panel]) -> None:
    layer = scene.layer()
    theme, plot = picture.theme, picture.plot
    for panel in panels:
        tags = _tags(picture, panel)
        for value in _ticks(panel):
            y = panel.scale.at(value)
            if all(abs(y - tag_y) > 15 for tag_y, _, _ in tags):
                text = panel.scale.label(value, panel.decimals) if panel.indicator is None else short(value)
                layer.items.append(Label(plot.right + 9, y, text, TICK_SIZE, theme.faint))
        for y, text, color in tags:
            layer.items.append(box(plot.right + 1, y - 9, picture.look.width, y + 9, color))
            layer.items.append(Label(plot.right + 9, y, text, TICK_SIZE, (255, 255, 255, 255), bold=True))


def _tags(picture: Picture, panel: Panel) -> list[tuple[float, str, tuple[int, int, int, int]]]:
    """The last price (or the last value of a panel's first line) on the axis."""
    theme, bars = picture.theme, picture.bars
    if panel.indicator is None:
        if not len(bars):
            return []
        last = float(bars.close[-1])
        color = theme.up if last >= bars.open[-1] else theme.down
        return [(_inside(panel, panel.scale.at(last)), panel.scale.label(last, panel.decimals), color)]
    lines = panel.indicator.channels.lines
    if not lines or not np.isfinite(lines[0].values[-1:]).all() or not len(bars):
        return []
    last = float(lines[0].values[-1])
    return [(_inside(panel, panel.scale.at(last)), short(last), theme.lines[0])]


def _inside(panel: Panel, y: float) -> float:
    return min(max(y, panel.box.top + 10), panel.box.bottom - 10)


def _legends(scene: Scene, picture: Picture, panels: list[Panel], overlays: list[Computed]) -> None:
    layer = scene.layer(picture.plot)
    theme, bars = picture.theme, picture.bars
    x, y = 12.0, panels[0].box.top + 16.0
    x = _words(layer, x, y, [(picture.title, theme.text, True)], 14.0) + 10
    if len(bars):
        decimals = panels[0].decimals
        color = theme.up if bars.close[-1] >= bars.open[-1] else theme.down
        words = []
        for name, column in (("O", bars.open), ("H", bars.high), ("L", bars.low), ("C", bars.close)):
            words += [(name, theme.faint, False), (number(float(column[-1]), decimals) + " ", color, False)]
        if len(bars) > 1:
            change = (float(bars.close[-1]) / float(bars.close[-2]) - 1) * 100
            words.append((f"{change:+.2f}%".replace("-", "−"), color, False))
        if picture.look.volume:
            words += [("  Vol", theme.faint, False), (short(float(bars.volume[-1])), color, False)]
        _words(layer, x, y, words, LEGEND_SIZE)
    for first, computed in zip(paint.color_numbers(overlays), overlays, strict=True):
        y += _LEGEND_ROW
        _legend(layer, y, computed, theme, first, panels[0].decimals)
    for panel in panels[1:]:
        if panel.indicator:
            _legend(layer, panel.box.top + 14, panel.indicator, theme, 0, None)


def _legend(layer: Layer, y: float, computed: Computed, theme: Theme, first: int, decimals: int | None) -> None:
    """An indicator's name and its last values, each in its line's colour."""
    words = [(computed.wanted.label + " ", theme.faint, False)]
    channels = computed.channels
    for index, line in enumerate((*channels.lines, *channels.histogram)[:8]):
        value = float(line.values[-1]) if len(line.values) else float("nan")
        if np.isfinite(value):
            text = short(value) if decimals is None else number(value, decimals)
            words.append((text + " ", paint.line_color(theme, first + index), False))
    _words(layer, 12.0, y, words, LEGEND_SIZE)


def _words(layer: Layer, x: float, y: float, words: list[tuple[str, Color, bool]], size: float) -> float:
    """Texts one behind the other, as many as fit; where the next would begin."""
    for text, color, bold in words:
        wide = fonts.width(text, size, bold)
        if x + wide > layer.clip.right - 4:
            break
        layer.items.append(Label(x, y, text, size, color, "left", bold))
        x += wide + 2
    return x
