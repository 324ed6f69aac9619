"""Reads a client's JSON into a `ChartConfig`. Each part of a config has its own reader; all problems are found at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openbell.charts.choices import LARGEST, MOST_PIXELS
from openbell.charts.config import choices
from openbell.charts.config.model import SYMBOL, ChartConfig, Watermark
from openbell.charts.config.problems import ConfigProblem, ConfigProblems, is_finite, is_nested, shorten
from openbell.charts.config.ranges import read_range
from openbell.charts.config.reading_parts import read_annotations, read_studies
from openbell.charts.time_axis import zone_advice, zone_names
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean
from openbell.market.timeframes import CHART, name_of, read_timeframe

_MOST_SHIFT = 500
_MOST_LEVELS = 8
"""Levels of lists and objects. The deepest config that has a meaning has 5."""
_LONGEST_WATERMARK = 200
_FIELDS = (
    *("symbol", "interval", "range", "theme", "style", "width", "height", "scale", "session", "timezone", "format"),
    *("shiftLeft", "shiftRight", "watermark", "watermarkSize", "watermarkOpacity", "override", "studies", "drawings"),
)
_CHOICES = {
    "theme": choices.THEMES,
    "style": choices.STYLES,
    "scale": choices.SCALES,
    "session": choices.SESSIONS,
    "format": choices.FORMATS,
}
_WRITE_SYMBOL = "Write the symbol as EXCHANGE:SYMBOL, such as BINANCE:BTCUSDT or NASDAQ:AAPL"


@dataclass(frozen=True, slots=True)
class Form:
    """What differs between the contract's configs and the vendor's requests."""

    required: tuple[str, ...]
    width: int
    height: int


CONTRACT = Form(("symbol", "interval"), choices.WIDTH, choices.HEIGHT)
VENDOR = Form((), choices.VENDOR_WIDTH, choices.VENDOR_HEIGHT)
_VENDOR_SYMBOL = "BINANCE:BTCUSDT"


@dataclass(frozen=True, slots=True)
class ConfigReading:
    """The result: a config if there is no error, and all problems."""

    config: ChartConfig | None
    problems: tuple[ConfigProblem, ...]


def read_config(raw: object, form: Form = CONTRACT) -> ConfigReading:
    """Reads a config. Never raises: whatever is wrong is a problem."""
    problems = ConfigProblems()
    if not isinstance(raw, Mapping):
        problems.error("config", f"config must be an object, not {shorten(raw)}")
        return ConfigReading(None, tuple(problems.found))
    if is_nested(raw, _MOST_LEVELS):
        problems.error("config", f"config must not be nested in more than {_MOST_LEVELS} levels")
        return ConfigReading(None, tuple(problems.found))
    given = {name: value for name, value in raw.items() if value is not None and isinstance(name, str)}
    for name in given:
        if name not in _FIELDS and not problems.full("warning"):
            advice = did_you_mean(name[:80], _FIELDS)
            problems.warning(name[:80], f"unknown field {name[:80]!r} is ignored{advice}", f"Remove {name[:80]}")
    values: dict[str, Any] = {"symbol": _symbol(given, form, problems), **_plain(given, form, problems)}
    values["width"] = _side(given, "width", form.width, choices.LEAST_WIDTH, problems)
    values["height"] = _side(given, "height", form.height, choices.LEAST_HEIGHT, problems)
    _check_pixels(values["width"], values["height"], problems)
    values["shift_left"] = _whole(given, "shiftLeft", 0, 0, _MOST_SHIFT, problems)
    values["shift_right"] = _whole(given, "shiftRight", 0, 0, _MOST_SHIFT, problems)
    values["watermark"] = _watermark(given, problems)
    values["override"] = _object(given, "override", problems)
    values["studies"] = read_studies(given.get("studies"), problems)
    values["drawings"] = read_annotations(given.get("drawings"), problems)
    return ConfigReading(None if problems.errors else ChartConfig(**values), tuple(problems.found))


def _symbol(given: Mapping[str, Any], form: Form, problems: ConfigProblems) -> str:
    value = given.get("symbol")
    if value is None:
        if "symbol" in form.required:
            problems.error("symbol", "symbol is required", _WRITE_SYMBOL)
        return _VENDOR_SYMBOL
    found = value.strip().upper() if isinstance(value, str) and value.isascii() else ""
    if not SYMBOL.fullmatch(found):
        problems.error("symbol", "Invalid symbol format", _symbol_advice(found))
    return found


def _symbol_advice(text: str) -> str:
    """Returns the symbol that a ticker or pair means, if it is known."""
    from openbell.charts.language.choosing import NoInstrument, asset_of

    try:
        return f"Set symbol to {asset_of(text, '').symbol}" if text and ":" not in text else _WRITE_SYMBOL
    except NoInstrument:
        return _WRITE_SYMBOL


def _plain(given: Mapping[str, Any], form: Form, problems: ConfigProblems) -> dict[str, Any]:
    """Reads the fields with a fixed list of values, the range and the time zone."""
    values: dict[str, Any] = {}
    if "interval" in given:
        values["interval"] = _interval(given["interval"], problems)
    elif "interval" in form.required:
        problems.error("interval", "interval is required", "Set interval, for example to 1D")
    for name, allowed in _CHOICES.items():
        if name in given and (found := problems.choose(name, given[name], allowed)) is not None:
            values[name] = found
    if "range" in given:
        try:
            values["range"] = read_range(given["range"])
        except InvalidParameter as error:
            swapped = "ends before it begins" in error.message
            advice = "Exchange the two times" if swapped else "Set range to a preset such as 1M, or leave it out"
            problems.error("range", error.message, advice)
    if "timezone" in given:
        values["timezone"] = _zone(given["timezone"], problems)
    return values


def _interval(value: object, problems: ConfigProblems) -> str | None:
    """Returns the name of an interval in any spelling; 1m is a minute and 1M is a month."""
    if isinstance(value, str) and (found := CHART.get(value) or read_timeframe(value)) is not None:
        return name_of(found, CHART)
    allowed = ", ".join(choices.INTERVALS)
    advice = did_you_mean(value, choices.INTERVALS) if isinstance(value, str) else ""
    problems.error(
        "interval",
        f"interval {shorten(value)} is not one of {allowed}{advice}",
        f"Set interval to one of {allowed}",
    )
    return None


def _zone(value: object, problems: ConfigProblems) -> str:
    """Returns a time zone, or UTC with an error if there is no such zone."""
    if isinstance(value, str) and (found := zone_names().get(value.lower())):
        return found
    advice = zone_advice(value) if isinstance(value, str) else ""
    problems.error(
        "timezone", f"no time zone {shorten(value)}{advice}", "Set timezone to a name such as America/New_York"
    )
    return "Etc/UTC"


def _side(given: Mapping[str, Any], name: str, default: int, least: int, problems: ConfigProblems) -> int:
    return _whole(given, name, default, least, LARGEST, problems)


def _check_pixels(width: int, height: int, problems: ConfigProblems) -> None:
    if width * height > MOST_PIXELS:
        problems.error(
            "resolution",
            f"a picture has at most {MOST_PIXELS:,} pixels, not {width}x{height}",
            f"Set height to {MOST_PIXELS // width}",
        )


def _whole(given: Mapping[str, Any], name: str, default: int, least: int, most: int, problems: ConfigProblems) -> int:
    value = given.get(name, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        problems.error(
            name,
            f"{name} must be a whole number from {least} to {most}, not {shorten(value)}",
            f"Set {name} to {_meant(value, least, most) or default}",
        )
        return default
    return value


def _meant(value: object, least: int, most: int) -> int | None:
    """Returns the number that a text, or a number outside of its bounds, means."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 9:
        value = int(value)
    return None if isinstance(value, bool) or not isinstance(value, int) else max(least, min(most, value))


def _watermark(given: Mapping[str, Any], problems: ConfigProblems) -> Watermark | None:
    text = given.get("watermark", "")
    if not isinstance(text, str) or len(text) > _LONGEST_WATERMARK:
        problems.error("watermark", f"watermark must be a text of at most {_LONGEST_WATERMARK} characters")
        return None
    size = _number(given, "watermarkSize", 64.0, 1.0, 500.0, problems)
    opacity = _number(given, "watermarkOpacity", 0.3, 0.0, 1.0, problems)
    return Watermark(text, size, opacity) if text.strip() else None


def _number(
    given: Mapping[str, Any], name: str, default: float, low: float, high: float, problems: ConfigProblems
) -> float:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        problems.error(name, f"{name} must be a number from {low:g} to {high:g}, not {shorten(value)}")
        return default
    return float(value)


def _object(given: Mapping[str, Any], name: str, problems: ConfigProblems) -> Mapping[str, Any]:
    value = given.get(name, {})
    if not isinstance(value, Mapping):
        problems.error(name, f"{name} must be an object, not {shorten(value)}")
        return {}
    if not is_finite(value):
        problems.error(name, f"numbers of {name} must be finite")
    return value
