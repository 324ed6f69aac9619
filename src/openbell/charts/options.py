"""Options of a chart besides its look: what is shown around the price, and in which colours."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo

from openbell.charts.config.model import Watermark
from openbell.charts.scene import Color


@dataclass(frozen=True, slots=True)
class CandleColors:
    """The colours of candles. None for the theme's; a border or wick without a colour has that of its body."""

    up: Color | None = None
    down: Color | None = None
    border_up: Color | None = None
    border_down: Color | None = None
    wick_up: Color | None = None
    wick_down: Color | None = None
    draw_body: bool = True
    draw_border: bool = True
    draw_wick: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a chart. The defaults change nothing."""

    zone: tzinfo | None = None
    """The time zone of the axis. None for New York if the chart shows a stock, else UTC."""
    shift_right: int = 0
    """Empty bars at the right."""
    watermark: Watermark | None = None
    symbol_watermark: bool = False
    """Write the title large and faint behind the price."""
    legend: bool = True
    legend_values: bool = True
    """Write the last values of indicators in the legend."""
    ohlc: bool = True
    """Write open, high, low and close of the last bar beside the title."""
    bar_change: bool = True
    """Write the change of the last bar beside the title."""
    price_line: bool = True
    """Draw a dotted line at the last price."""
    last_value: bool = True
    """Write the last price in a box at the axis."""
    study_last_value: bool = True
    """Write the last value of each indicator in a box at the axis."""
    price_height: float | None = None
    """The height of the price panel in pixels. None for what the other panels leave."""
    price_range: tuple[float, float] | None = None
    """The lowest and the highest price of the scale. None to fit the bars."""
    font_size: float = 11.0
    """Of the labels at the axes."""
    candles: CandleColors = field(default_factory=CandleColors)
    volume_up: Color | None = None
    volume_down: Color | None = None
