"""The look and the options of a chart: size, style, theme and scale, and what is shown around the price in which colours."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo

from openbell.charts.choices import LARGEST, LEAST_SCALE, MOST_PIXELS, MOST_SCALE, SCALES, SMALLEST, STYLES, THEME_NAMES
from openbell.charts.config.model import Watermark
from openbell.charts.scene import Color
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import check_one_of


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a chart. Raises `InvalidParameter` if a value is not allowed."""

    width: int = 1200
    height: int = 675
    scale: float = 1.0
    style: str = "candles"
    theme: str = "dark"
    price_scale: str = "linear"
    volume: bool = True
    last_bar: bool = True
    """Write the prices of the last bar beside the title."""

    def __post_init__(self) -> None:
        check_one_of("style", self.style, STYLES)
        check_one_of("theme", self.theme, THEME_NAMES)
        check_one_of("price_scale", self.price_scale, SCALES)
        if not LEAST_SCALE <= self.scale <= MOST_SCALE:
            raise InvalidParameter(f"scale must be between {LEAST_SCALE:g} and {MOST_SCALE:g}, not {self.scale}")
        times = f" × scale {self.scale:g}" if self.scale != 1 else ""
        for name, side in (("width", self.width), ("height", self.height)):
            if min(side, side * self.scale) < SMALLEST or max(side, side * self.scale) > LARGEST:
                raise InvalidParameter(
                    f"{name} must be {SMALLEST} to {LARGEST} pixels, scale included, not {side}{times}"
                )
        if round(self.width * self.scale) * round(self.height * self.scale) > MOST_PIXELS:
            raise InvalidParameter(
                f"a picture has at most {MOST_PIXELS:,} pixels, scale included, not {self.width}×{self.height}{times}"
            )


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
class ChartOptions:
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
