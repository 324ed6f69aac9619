"""The look and the options that a config asks for, and what it asks for that this renderer does not draw.

Results name what is not drawn, so that nothing is ignored silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from openbell.charts.annotations.catalogue import ANNOTATIONS
from openbell.charts.annotations.overrides import OVERRIDES, color_of, number_of
from openbell.charts.choices import STYLES_OF_CONFIGS
from openbell.charts.config.model import ChartConfig, ConfigAnnotation, ConfigStudy
from openbell.charts.config.plots import VOLUME, bar_colors, has_histogram, has_volume, line_of, styles_of
from openbell.charts.look import CandleColors, ChartOptions, Look
from openbell.charts.time_axis import zone_called
from openbell.indicators.registry import all_indicators

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
_LONGEST = 80
_CANDLE_STYLES = ("candle", "heikinAshi", "hollowCandle")

_ENDS = ("from", "to")


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


def options_of(config: ChartConfig) -> ChartOptions:
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
    return ChartOptions(
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


def unsupported(config: ChartConfig) -> list[str]:
    """Returns a sentence for each part of a config that has no effect. Studies without an indicator are in `undrawn`."""
    found = [*_overrides(config.override)]
    if config.override.get("style") and config.style not in _CANDLE_STYLES:
        found.append(f"override.style has no effect on the style {config.style}")
    for at, study in enumerate(config.studies):
        found += [f"studies[{at}].override.{each}" for each in _study(study)]
    for at, annotation in enumerate(config.drawings):
        found += [f"drawings[{at}].override.{each}" for each in _annotation(annotation)]
    return found


def _overrides(override: Mapping[str, object]) -> Iterator[str]:
    for key, value in override.items():
        if key in SWITCHES:
            good = isinstance(value, bool)
        elif key == "mainPaneHeight":
            good = number_of(value, LEAST_PRICE_HEIGHT, 1e4) is not None
        elif key == "scalesFontSize":
            good = number_of(value, LEAST_FONT, MOST_FONT) is not None
        elif key == "priceRange":
            good = price_range_of(value) is not None
            if good and isinstance(value, Mapping):
                yield from (f"override.priceRange.{_cut(each)} is not supported" for each in value if each not in _ENDS)
        elif key == "style" and isinstance(value, Mapping):
            good = True
            yield from _style(value)
        else:
            yield f"override.{_cut(key)} is not supported"
            continue
        if not good:
            yield f"override.{key} cannot be {_cut(repr(value))}"


def _style(style: Mapping[str, object]) -> Iterator[str]:
    for key, value in style.items():
        name = key.removeprefix(CANDLES)
        if not key.startswith(CANDLES) or name not in {*CANDLE_COLORS, *CANDLE_SWITCHES}:
            yield f"override.style.{_cut(key)} is not supported"
        elif not (isinstance(value, bool) if name in CANDLE_SWITCHES else color_of(value)):
            yield f"override.style.{key} cannot be {_cut(repr(value))}"


def _study(asked: ConfigStudy) -> Iterator[str]:
    """Yields the overrides of a study that name no line, or no colour or width."""
    plots = [each for each in asked.study.plots if each.indicator in all_indicators()]
    for key, value in asked.override.items():
        if asked.study.short == VOLUME and key in VOLUME_COLORS:
            good = color_of(value) is not None
        elif asked.study.short == VOLUME and key == "Volume.plottype":
            good = value == "columns"
        elif key.startswith("Histogram.color.") and any(has_histogram(each.indicator) for each in plots):
            good = bool(bar_colors({key: value}))
        elif (asked.study.plots and not plots) or any(line_of(asked, plot, key) for plot in plots):
            single = ConfigStudy(asked.study, asked.inputs, {key: value})
            good = not plots or any(styles_of(single, plot) for plot in plots)
        else:
            yield f"{_cut(key)} is not supported"
            continue
        if not good:
            yield f"{_cut(key)} cannot be {_cut(repr(value))}"


def _annotation(annotation: ConfigAnnotation) -> Iterator[str]:
    for key, value in annotation.override.items():
        if key not in ANNOTATIONS[annotation.kind.name].honours:
            yield f"{_cut(key)} is not supported"
        elif OVERRIDES[key](value) is None:
            yield f"{_cut(key)} cannot be {_cut(repr(value))}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
