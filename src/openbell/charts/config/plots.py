"""The studies of a config as requests for indicators, with how each is drawn.

Some studies have inputs that their indicator does not have; the indicators for those are no entries of the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from openbell.charts.annotations.overrides import color_of, number_of
from openbell.charts.config.model import ChartConfig, ConfigStudy
from openbell.charts.scene import Color
from openbell.charts.studies.study import Plot
from openbell.indicators.averages import sma, wilder
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.catalogue.dpo import lag
from openbell.indicators.channels import ZERO, Channels, FilledBand, Line
from openbell.indicators.evaluation import SMOOTHED, IndicatorChanges, IndicatorRequest
from openbell.indicators.registry import all_indicators, get
from openbell.indicators.spec import Indicator, Parameter, Setting
from openbell.market.bars import Bars
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe

VOLUME = "Volume"
"""The study that the chart itself draws below the price."""
THINNEST_LINE, WIDEST_LINE = 0.5, 10.0
_AVERAGES = {"Simple": "sma", "Exponential": "ema_line", "Weighted": "wma"}

# Colours and widths of lines

_READERS: dict[str, Callable[[object], object]] = {
    "color": color_of,
    "linewidth": lambda value: number_of(value, THINNEST_LINE, WIDEST_LINE),
    "visible": lambda value: value if isinstance(value, bool) else None,
}

_SYNONYMS = {"median": "middle", "basis": "middle", "smoothingline": "smoothedma"}


@dataclass(frozen=True, slots=True)
class LineStyle:
    """How one line is drawn, as far as a config says so."""

    color: Color | None = None
    width: float | None = None
    visible: bool = True


@dataclass(frozen=True, slots=True)
class StudyPlot:
    """One indicator that draws a study, or a part of it."""

    request: IndicatorRequest
    study: int = 0
    """The position of the study in the config. All plots of a study share a panel."""
    floating: bool = False
    """Drawn over the price with a scale of its own, although the indicator has a panel of its own."""
    styles: Mapping[str, LineStyle] = field(default_factory=dict)
    """By the label of a line or histogram."""
    bar_colors: Mapping[int, Color] = field(default_factory=dict)
    """Colours of a histogram's bars: 0 growing above zero, 1 falling above it, 2 growing below it, 3 falling below it."""
    value_area: float | None = None
    """The share of a profile's volume whose rows are drawn stronger."""
    color: Color | None = None
    """The main colour of the indicator. None for a hue of the theme."""
    width: float | None = None
    """The width of its lines in pixels, as far as `styles` have no other."""


def requests_of(config: ChartConfig) -> list[StudyPlot]:
    """Returns the plots of all studies that can be drawn; see `undrawn` for the others.

    `request` of each goes to `evaluate`, the plots themselves to `compose`, which finds them by the request's key.
    """
    seen: dict[str, int] = {}
    found = []
    for at, asked in enumerate(config.studies):
        for plot in asked.study.plots:
            if plot.indicator not in all_indicators():
                continue
            seen[plot.indicator] = seen.get(plot.indicator, 0) + 1
            key = plot.indicator if seen[plot.indicator] == 1 else f"{plot.indicator}_{seen[plot.indicator]}"
            found.append(_plot(asked, plot, key, at))
    return found


def undrawn(config: ChartConfig) -> list[str]:
    """Returns the vendor's names of the studies for which there is no indicator, each once."""
    missing = [
        asked.study.title
        for asked in config.studies
        if asked.study.short != VOLUME
        and (not asked.study.plots or any(each.indicator not in all_indicators() for each in asked.study.plots))
    ]
    return list(dict.fromkeys(missing))


def has_volume(config: ChartConfig) -> bool:
    """Returns True if the config has the study Volume."""
    return any(asked.study.short == VOLUME for asked in config.studies)


def _plot(asked: ConfigStudy, plot: Plot, key: str, at: int) -> StudyPlot:
    indicator, more = _indicator(asked, plot)
    chosen = {name: _setting(indicator, name, asked.value(each)) for name, each in plot.uses.items()}
    settings = indicator.settings(**{**chosen, **plot.fixed, **more})
    request = IndicatorRequest(key, indicator, settings, _changes(asked, plot))
    own = {each.name for each in asked.study.inputs}
    return StudyPlot(
        request,
        at,
        asked.force_overlay and not indicator.overlay,
        styles_of(asked, plot),
        bar_colors(asked.override),
        float(asked.value("vaVolume")) / 100 if "vaVolume" in own else None,
    )


def _indicator(asked: ConfigStudy, plot: Plot) -> tuple[Indicator, dict[str, Setting]]:
    """Returns the indicator with the inputs that only the study has, and their settings."""
    names = {each.name for each in asked.study.inputs} - set(plot.uses.values())

    def has(name: str, value: Setting) -> bool:
        return name in names and asked.value(name) == value

    if "method" in names and plot.indicator == "sma":
        return all_indicators()[_AVERAGES[str(asked.value("method"))]], {}
    if has("useEMA", value=False):
        return simple_keltner(), {}
    if has("centered", value=True):
        return centered_dpo(), {}
    if "smoothing" in names and asked.value("smoothing") != asked.value("length"):
        return smoothed_adx(), {"smoothing": asked.value("smoothing")}
    more: dict[str, Setting] = {"split_up_down": asked.value("volume") == "Up/Down"} if "volume" in names else {}
    return all_indicators()[plot.indicator], more


def _setting(indicator: Indicator, name: str, value: Setting) -> Setting:
    """Returns an input's value as the indicator writes it: its choices are in lower case."""
    parameter = next((each for each in indicator.parameters if each.name == name), None)
    if parameter is not None and isinstance(value, str) and value not in parameter.choices:
        return value.lower()
    return value


def _changes(asked: ConfigStudy, plot: Plot) -> IndicatorChanges | None:
    names = {each.name for each in asked.study.inputs} - set(plot.uses.values())
    smoothed = bool({"smoothingLine", "smoothingLength"} & set(asked.inputs))
    changes = IndicatorChanges(
        str(asked.value("source")) if "source" in names else "close",
        plot.lines,
        str(asked.value("smoothingLine")) if smoothed else "",
        int(asked.value("smoothingLength")) if smoothed else 1,
        int(asked.value("offset")) if "offset" in names else 0,
    )
    return changes if changes != IndicatorChanges() else None


def bar_colors(override: Mapping[str, object]) -> dict[int, Color]:
    """Returns the colours of a histogram's bars."""
    found = {at: color_of(override.get(f"Histogram.color.{at}")) for at in range(4)}
    return {at: color for at, color in found.items() if color is not None}


def styles_of(asked: ConfigStudy, plot: Plot) -> dict[str, LineStyle]:
    """Returns the styles of the lines of a plot that the study's overrides name."""
    given: dict[str, dict[str, object]] = {}
    for key, value in asked.override.items():
        if (named := line_of(asked, plot, key)) and (read := _READERS[named[1]](value)) is not None:
            given.setdefault(named[0], {})[named[1]] = read
    return {
        label: LineStyle(each.get("color"), each.get("linewidth"), bool(each.get("visible", True)))  # type: ignore[arg-type]
        for label, each in given.items()
    }


def line_of(asked: ConfigStudy, plot: Plot, key: str) -> tuple[str, str] | None:
    """Returns the label of the line and the property that an override's key names (`Upper.color`); None if none.

    `Plot` is the first line; `Plot2` is that of the second plot. `Median` and `Basis` are the middle line of a channel.
    """
    name, dot, what = key.rpartition(".")
    if not dot or what not in _READERS:
        return None
    labels = line_labels(_indicator(asked, plot)[0].name)
    kept = [label for label in labels if not plot.lines or label in plot.lines]
    if "smoothingLine" in asked.inputs or "smoothingLength" in asked.inputs:
        kept.append(SMOOTHED)
    number = asked.study.plots.index(plot) + 1
    if name == f"Plot{number}" or (name == "Plot" and number == 1):
        return (kept[0], what) if kept else None
    wanted = _SYNONYMS.get(_plain(name), _plain(name))
    return next(((label, what) for label in kept if _plain(label) == wanted), None)


def _plain(label: str) -> str:
    return "".join(letter for letter in label.lower() if letter.isalnum() or letter in "+-%")


def line_labels(name: str) -> tuple[str, ...]:
    """Returns the labels of an indicator's lines, then of its histograms."""
    channels = _channels(name)
    return tuple(line.label for line in (*channels.lines, *channels.histogram))


def has_histogram(name: str) -> bool:
    """Returns True if an indicator has a histogram."""
    return bool(_channels(name).histogram)


@cache
def _channels(name: str) -> Channels:
    """Returns the channels of an indicator for three equal bars, because indicators do not declare their lines."""
    one = np.ones(3)
    bars = Bars(parse("BTC/USD"), Timeframe.D1, np.arange(3) * Timeframe.D1.seconds, one, one, one, one, one)
    with np.errstate(all="ignore"):
        return all_indicators()[name].run(bars)


def simple_keltner() -> Indicator:
    """Returns Keltner channels around the simple average."""
    return replace(get("keltner"), compute=_simple_keltner)


def _simple_keltner(bars: Bars, length: int, multiplier: float, atr_length: int) -> Channels:
    middle, width = sma(bars.close, length), multiplier * atr(bars, atr_length)
    upper, lower = middle + width, middle - width
    lines = (Line("upper", upper), Line("middle", middle), Line("lower", lower))
    return Channels(lines=lines, fills=(FilledBand(upper, lower),))


def centered_dpo() -> Indicator:
    """Returns the detrended price oscillator with each close compared with the average around it, not before it."""
    return replace(get("dpo"), compute=_centered_dpo, displaced=("DPO",))


def _centered_dpo(bars: Bars, length: int) -> Channels:
    back = lag(length)
    values = np.full(len(bars), np.nan)
    values[:-back] = bars.close[:-back] - sma(bars.close, length)[back:]
    return Channels(lines=(Line("DPO", values),), hlines=(ZERO,))


def smoothed_adx() -> Indicator:
    """Returns the directional movement whose ADX is smoothed over another length than +DI and −DI."""
    plain = get("adx")
    return replace(
        plain,
        compute=_smoothed_adx,
        warmup=lambda length, smoothing: length + smoothing,
        parameters=(*plain.parameters, Parameter("smoothing", 14, 1, 500)),
    )


def _smoothed_adx(bars: Bars, length: int, smoothing: int) -> Channels:
    plain = get("adx").run(bars, length=length)
    _, plus, minus = (line.values for line in plain.lines)
    both = plus + minus
    apart = 100.0 * np.divide(np.abs(plus - minus), both, out=np.where(np.isnan(both), np.nan, 0.0), where=both > 0.0)
    return replace(plain, lines=(Line("ADX", wilder(apart, smoothing)), *plain.lines[1:]))
