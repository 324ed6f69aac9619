"""The look and the options that a config asks for."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from openbell.charts.choices import STYLES_OF_CONFIGS
from openbell.charts.config.model import ChartConfig
from openbell.charts.config.plots import VOLUME, has_volume
from openbell.charts.look import Look
from openbell.charts.options import CandleColors, Options
from openbell.charts.override_values import color_of, number_of
from openbell.charts.zones import zone_called

SCALES = {"regular": "linear", "percent": "percent", "indexedTo100": "indexed", "logarithmic": "log"}
SWITCHES = {
    "showLegend": "legend",
    "showLegendValues": "legend_values",
    "showSeriesOHLC": "ohlc",
    "showBarChange": "bar_change",
    "showPriceLine": "price_line",
    "showSeriesLastValue": "last_value",
    "showStudyLastValue": "study_last_value",
    "showSymbolWatermark": "symbol_watermark",
}
"""The option that each switch among the overrides sets."""
CANDLE_COLORS = {
    "upColor": "up",
    "downColor": "down",
    "borderUpColor": "border_up",
    "borderDownColor": "border_down",
    "wickUpColor": "wick_up",
    "wickDownColor": "wick_down",
}
CANDLE_SWITCHES = {"drawBody": "draw_body", "drawBorder": "draw_border", "drawWick": "draw_wick"}
CANDLES = "candleStyle."
LEAST_FONT, MOST_FONT = 6.0, 18.0
LEAST_PRICE_HEIGHT = 60.0
VOLUME_COLORS = {"Volume.color.0": "volume_down", "Volume.color.1": "volume_up"}


def look_of(config: ChartConfig, scale: float = 1.0) -> Look:
    """Returns the look. `scale` is the number of device pixels per pixel."""
    return Look(
        config.width,
        config.height,
        scale,
        STYLES_OF_CONFIGS[config.style],
        config.theme,
        SCALES[config.scale],
        volume=has_volume(config),
    )


def options_of(config: ChartConfig) -> Options:
    """Returns the options. Overrides that `unsupported` reports have no effect."""
    given = config.override
    chosen: dict[str, Any] = {name: given[key] for key, name in SWITCHES.items() if isinstance(given.get(key), bool)}
    if (height := number_of(given.get("mainPaneHeight"), LEAST_PRICE_HEIGHT, 1e4)) is not None:
        chosen["price_height"] = height
    if (size := number_of(given.get("scalesFontSize"), LEAST_FONT, MOST_FONT)) is not None:
        chosen["font_size"] = size
    for study in config.studies:
        if study.study.short == VOLUME:
            found = {name: color_of(study.override.get(key)) for key, name in VOLUME_COLORS.items()}
            chosen |= {name: color for name, color in found.items() if color is not None}
    return Options(
        zone=zone_called(config.timezone),
        shift_right=config.shift_right,
        watermark=config.watermark,
        price_range=price_range_of(given.get("priceRange")),
        candles=_candles(given.get("style")),
        **chosen,
    )


def price_range_of(value: object) -> tuple[float, float] | None:
    """Returns the two prices of `{"from": …, "to": …}`; None if they are not two prices."""
    if not isinstance(value, Mapping):
        return None
    low, high = (number_of(value.get(name), -1e15, 1e15) for name in ("from", "to"))
    if low is None or high is None or not isfinite(high - low) or high - low <= 1e-12 * max(abs(low), abs(high)):
        return None
    return low, high


def _candles(style: object) -> CandleColors:
    if not isinstance(style, Mapping):
        return CandleColors()
    chosen: dict[str, Any] = {name: color_of(style.get(CANDLES + key)) for key, name in CANDLE_COLORS.items()}
    for key, name in CANDLE_SWITCHES.items():
        if isinstance(style.get(CANDLES + key), bool):
            chosen[name] = style[CANDLES + key]
    return CandleColors(**chosen)
