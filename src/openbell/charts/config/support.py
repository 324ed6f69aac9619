"""What a config asks for that this renderer does not draw. Results name it, so that nothing is ignored silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from openbell.charts.annotations.catalogue import ANNOTATIONS
from openbell.charts.annotations.overrides import OVERRIDES
from openbell.charts.config.looks import (
    CANDLE_COLORS,
    CANDLE_SWITCHES,
    CANDLES,
    LEAST_FONT,
    LEAST_PRICE_HEIGHT,
    MOST_FONT,
    SWITCHES,
    VOLUME_COLORS,
    price_range_of,
)
from openbell.charts.config.model import ChartConfig, ConfigAnnotation, ConfigStudy
from openbell.charts.config.plots import VOLUME, bar_colors, has_histogram, line_of, styles_of
from openbell.charts.override_values import color_of, number_of
from openbell.indicators.registry import all_indicators

_LONGEST = 80
_CANDLE_STYLES = ("candle", "heikinAshi", "hollowCandle")


def unsupported(config: ChartConfig) -> list[str]:
    """Returns a sentence for each part of a config that has no effect. Studies without an indicator are in `undrawn`."""
    found = [*_overrides(config.override)]
    if config.override.get("style") and config.style not in _CANDLE_STYLES:
        found.append(f"override.style has no effect on the style {config.style}")
    for at, study in enumerate(config.studies):
        found += [f"studies[{at}].override.{each}" for each in _study(study)]
    for at, drawing in enumerate(config.drawings):
        found += [f"drawings[{at}].override.{each}" for each in _drawing(drawing)]
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


_ENDS = ("from", "to")


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


def _drawing(drawing: ConfigAnnotation) -> Iterator[str]:
    for key, value in drawing.override.items():
        if key not in ANNOTATIONS[drawing.kind.name].honours:
            yield f"{_cut(key)} is not supported"
        elif OVERRIDES[key](value) is None:
            yield f"{_cut(key)} cannot be {_cut(repr(value))}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
