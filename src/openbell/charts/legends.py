"""Legends: the title with the last bar, a row for each overlay, a row in each panel, and the badge of simulated data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from openbell.charts import fonts
from openbell.charts.annotations.place import lines_of
from openbell.charts.numbers import NumberFormat, percent, short
from openbell.charts.paint import line_colors
from openbell.charts.panels import LEGEND_ROW, LEGEND_SHARE, TITLE_ROW, ChartPicture, Corner, Panel, format_of
from openbell.charts.price import last_color
from openbell.charts.scene import Box, Color, Label, Layer, box
from openbell.charts.styles import style_for
from openbell.charts.themes import Theme, faded
from openbell.indicators.evaluation import Computed
from openbell.market.price_history import percent_change

_LEFT = 12.0
_SPACE = 2.0
_TITLE, _TEXT, _BADGE = 14.0, 12.0, 11.0
_MIN_LEGEND_HEIGHT, _MIN_ROW_HEIGHT, _MIN_CLEAR_HEIGHT = 16.0, 80.0, 60.0
"""Minimum heights of a panel: for a legend, for a row of overlays, and for a legend without a background box."""
_MAX_VALUES = 8
_PRICE, _CHANGE = "Last", "Change"
"""The names of the last price beside averaged or relative values, and of the last bar's change beside per cents."""
_LEAST_MARK = 6.0
"""The smallest font size of a watermark."""


class LegendWord(NamedTuple):
    """A text in one colour."""

    text: str
    color: Color
    size: float = _TEXT
    bold: bool = False
    names_next: bool = False
    """It is the name of the next word, and left out with it."""

    @property
    def wide(self) -> float:
        """The width, including the space to the next word."""
        return fonts.width(self.text, self.size, self.bold) + _SPACE


Row = list[LegendWord]


def rows_of(rows: list[Row], theme: Theme, height: float) -> list[Row]:
    """Returns the rows of the overlays that fit into a price panel of this height; the last row counts the others."""
    most = max(int(height >= _MIN_ROW_HEIGHT), int((height * LEGEND_SHARE - TITLE_ROW) / LEGEND_ROW))
    if len(rows) <= most:
        return rows
    return [*rows[: most - 1], [LegendWord(f"+{len(rows) - most + 1} more", theme.faint)]] if most else []


def corner(rows: list[Row], title: str, badge: str, right: float, height: float) -> Corner:
    """Returns the area that the legend covers."""
    strip = TITLE_ROW + (LEGEND_ROW if badge and not _badge_fits(title, badge, right) else 0)
    wide = max((sum(word.wide for word in row) for row in rows), default=0.0)
    bottom = TITLE_ROW + LEGEND_ROW * len(rows)
    return Corner(_LEFT + wide, max(strip, bottom) if rows else 0.0, min(strip, height * LEGEND_SHARE))


def _badge_fits(title: str, badge: str, right: float) -> bool:
    """Returns True if the badge fits into the title's row."""
    return _LEFT + fonts.width(title, _TITLE, True) + _badge_width(badge) + 20 <= right


def _badge_width(badge: str) -> float:
    return fonts.width(badge, _BADGE, True) + 12 if badge else 0.0


def price_legend(layer: Layer, picture: ChartPicture, rows: list[Row], badge: str) -> None:
    """Draws the title with the last bar, and the rows of the overlays."""
    ends = picture.plot.right - 4
    beside_badge = ends - _badge_width(badge) - 8 if badge else ends
    beside = _badge_fits(picture.title, badge, picture.plot.right)
    right = beside_badge if beside else ends
    y = TITLE_ROW - 10
    x = _put(layer, _LEFT, y, [LegendWord(picture.title, picture.theme.text, _TITLE, True)], right) + 10
    _put(layer, x, y, _last_bar(picture, right - x), right)
    for index, row in enumerate(rows):
        y += LEGEND_ROW
        # A badge that does not fit beside the title is drawn beside the first row.
        _put(layer, _LEFT, y, row, ends if beside or index else beside_badge)


def corner_badge(layer: Layer, picture: ChartPicture, text: str) -> None:
    """Draws the badge at the top right, on top of everything."""
    theme, right = picture.theme, picture.plot.right - 6
    y = TITLE_ROW - 10 + (0 if _badge_fits(picture.title, text, picture.plot.right) else LEGEND_ROW)
    layer.items.append(box(right - _badge_width(text), y - 9, right, y + 9, faded(theme.background, 200)))
    layer.items.append(Label(right - 6, y, text, _BADGE, theme.highlight, "right", True))


def panel_legend(layer: Layer, picture: ChartPicture, panel: Panel) -> None:
    """Draws the indicator's name and last values, or that it needs more bars, if the panel is high enough."""
    if panel.indicator is None or panel.box.height < _MIN_LEGEND_HEIGHT:
        return
    y = panel.box.top + min(14.0, panel.box.height / 2)
    row: Row = []
    for each in panel.indicators:
        row += row_of(picture, each, panel.number_format)
    if panel.empty:
        row.append(LegendWord("needs more bars", faded(picture.theme.faint, 170), 11.0))
    place = len(layer.items)
    ends = _put(layer, _LEFT, y, row, picture.plot.right - 4)
    if panel.box.height < _MIN_CLEAR_HEIGHT:
        layer.items.insert(place, box(_LEFT - 4, y - 8, ends, y + 8, faded(picture.theme.background, 140)))


def row_of(picture: ChartPicture, computed: Computed, number_format: NumberFormat) -> Row:
    """Returns an indicator's name and its last values, each in the colour of its line."""
    theme = picture.theme
    label = computed.request.label
    if computed.note:
        label += f" ({'finer bars' if computed.request.indicator.finer else 'minutes'} missing)"
    row = [LegendWord(label + " ", theme.faint)]
    if not picture.options.legend_values:
        return row
    channels, named = computed.channels, style_for(computed).legend_names
    colors = line_colors(picture, computed)
    for line, color in zip((*channels.lines, *channels.histogram)[:_MAX_VALUES], colors, strict=False):
        values = line.values
        if line.label in computed.request.indicator.displaced:
            values = values[np.isfinite(values)]  # its newest value is drawn at an earlier bar
        value = float(values[-1]) if len(values) else float("nan")
        if np.isfinite(value):
            row += [LegendWord(f"{line.label} ", theme.faint, names_next=True)] if named else []
            row.append(LegendWord(number_format.text(value) + " ", color))
    return row


def _last_bar(picture: ChartPicture, room: float) -> Row:
    """Returns open, high, low, close, change and volume of the last bar as it is drawn, and the price if it differs.

    Narrow charts drop values, the close last.
    """
    theme = picture.theme
    if not len(picture.bars) or not picture.look.last_bar:
        return []
    color = last_color(picture)
    words = {
        name: [LegendWord(name + " ", theme.faint), LegendWord(text + " ", color)]
        for name, text in _pairs(picture).items()
    }
    for dropped in (("O", "H", "L"), ("Vol",), ("", _CHANGE), (_PRICE,), ("C",)):
        if sum(word.wide for pair in words.values() for word in pair) <= room:
            break
        words = {name: pair for name, pair in words.items() if name not in dropped}
    return [word for pair in words.values() for word in pair]


def _pairs(picture: ChartPicture) -> dict[str, str]:
    """Returns the names and texts of the last bar's values."""
    bars, options, relative = picture.candles, picture.options, picture.base is not None
    pairs: dict[str, str] = {}
    if options.ohlc:
        number_format = format_of(picture)
        columns = (("O", bars.open), ("H", bars.high), ("L", bars.low), ("C", bars.close))
        pairs = {name: number_format.text(float(column[-1])) for name, column in columns}
    if options.bar_change and len(bars) > 1:
        change = percent_change(float(bars.close[-2]), float(bars.close[-1]))
        if change is not None:
            pairs[_CHANGE if relative else ""] = percent(change)
    if options.ohlc and (relative or bars is not picture.bars):
        pairs[_PRICE] = NumberFormat(picture.decimals).text(float(picture.bars.close[-1]))
    if picture.look.volume:
        pairs["Vol"] = short(float(bars.volume[-1]))
    return pairs


def _put(layer: Layer, x: float, y: float, words: Row, right: float) -> float:
    """Draws as many words as fit into one row; a first word that does not fit is cut. Returns the x after the last word."""
    for index, word in enumerate(words):
        text = word.text
        wide = word.wide + (words[index + 1].wide if word.names_next else 0.0)
        if x + wide - _SPACE > right:
            text = _cut(word, right - x) if index == 0 else ""
        if not text:
            break
        layer.items.append(Label(x, y, text, word.size, word.color, "left", word.bold))
        x += fonts.width(text, word.size, word.bold) + _SPACE
        if text != word.text:
            break
    return x


def _cut(word: LegendWord, room: float) -> str:
    """Returns the text shortened to the available width; empty if fewer than three characters fit."""
    for length in range(len(word.text) - 1, 2, -1):
        shorter = word.text[:length].rstrip() + "…"
        if fonts.width(shorter, word.size, word.bold) <= room:
            return shorter
    return ""


def background_texts(layer: Layer, area: Box, badge: str, picture: ChartPicture) -> None:
    """Draws the badge and the watermarks large and faint across the price panel, below everything else."""
    theme, options = picture.theme, picture.options
    middle, y = (area.left + area.right) / 2, (area.top + area.bottom) / 2
    texts: list[LegendWord] = []
    if badge:
        texts.append(LegendWord(badge, faded(theme.highlight, 34), min(64.0, area.width / 12), True))
    if options.symbol_watermark and picture.title:
        texts.append(LegendWord(picture.title, faded(theme.faint, 40), min(56.0, area.width / 14), True))
    if (mark := options.watermark) and (text := " ".join(lines_of(mark.text))):
        size = max(_LEAST_MARK, min(mark.size, area.height))
        wide = fonts.width(text, size, True)
        size = size if wide <= area.width else size * area.width / wide * 0.95
        texts.append(LegendWord(text, faded(theme.faint, round(255 * min(max(mark.opacity, 0.0), 1.0))), size, True))
    for at, word in enumerate(texts):
        y += (texts[at - 1].size + word.size) * 0.6 if at else 0.0
        layer.items.append(Label(middle, y, word.text, word.size, word.color, "center", True))
