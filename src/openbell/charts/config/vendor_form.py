"""A chart config as the JSON that the vendor's API v2 expects.

`settled` gives a config the values that the vendor's form cannot leave open: lengths such as `7D` become two times, studies
get their main inputs, positions get a start. `vendor_body` writes a settled config; what it wrote is read as that config.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from openbell.charts.config.choices import PRESETS
from openbell.charts.config.model import ChartConfig, ConfigAnnotation, ConfigStudy
from openbell.charts.config.ranges import RangeBounds, bounds_of

_MOMENT = timedelta(milliseconds=1)
"""The smallest step of the vendor's times."""
_DATE_LENGTH = len("2026-03-03")
_SHOWN_BARS = 120
"""About how many bars the vendor shows of a chart without a range."""
_UNITS = {"m": 60, "h": 3600, "D": 86_400, "W": 604_800, "M": 2_629_746, "Y": 31_556_952}
"""Seconds of the units of intervals."""
_POSITIONS = ("Long Position", "Short Position")


def vendor_body(config: ChartConfig, now: datetime) -> dict[str, Any]:
    """Returns the body of a request for a chart at a time."""
    config = settled(config, now)
    body: dict[str, Any] = {
        "symbol": config.symbol,
        "interval": config.interval,
        "width": config.width,
        "height": config.height,
        "style": config.style,
        "theme": config.theme,
        "scale": config.scale,
        "session": config.session,
        "timezone": config.timezone,
        "format": config.format,
    }
    if config.range is not None:
        start, slash, end = config.range.partition("/")
        body["range"] = {"from": start, "to": end} if slash else config.range
    if config.shift_left:
        body["shiftLeft"] = config.shift_left
    if config.shift_right:
        body["shiftRight"] = config.shift_right
    if config.watermark is not None:
        mark = config.watermark
        body |= {"watermark": mark.text, "watermarkSize": mark.size, "watermarkOpacity": mark.opacity}
    if config.override:
        body["override"] = _copied(config.override)
    if config.studies:
        body["studies"] = [_study(each) for each in config.studies]
    if config.drawings:
        body["drawings"] = [_annotation(each) for each in config.drawings]
    return body


def settled(config: ChartConfig, now: datetime) -> ChartConfig:
    """Returns the config that the vendor draws at a time. Settling it again changes nothing."""
    return replace(
        config,
        range=_settled_range(config.range, now),
        studies=tuple(replace(each, inputs=_sent_inputs(each)) for each in config.studies),
        drawings=tuple(_settled_annotation(each, config, now) for each in config.drawings),
    )


def _settled_range(text: str | None, now: datetime) -> str | None:
    if text is None or text in PRESETS:
        return text
    bounds = bounds_of(text, now)
    start, end = _whole(bounds.start or bounds.end), _whole(bounds.end)
    if len(text.rpartition("/")[2].strip()) == _DATE_LENGTH:
        end -= _MOMENT  # the last day is included: its last moment
    return f"{_iso(start)}/{_iso(max(end, start + _MOMENT))}"


def _sent_inputs(entry: ConfigStudy) -> dict[str, Any]:
    """Returns the inputs of a config and the main ones, in the order of the catalogue."""
    wanted = (each.name for each in entry.study.inputs if each.name in entry.inputs or not each.extra)
    return {name: entry.value(name) for name in wanted}


def _settled_annotation(annotation: ConfigAnnotation, config: ChartConfig, now: datetime) -> ConfigAnnotation:
    times = {name: _whole(moment) for name, moment in annotation.times.items()}
    if annotation.kind.name in _POSITIONS and "startDatetime" not in times:
        start = _position_start(config, now)
        if "endDatetime" in times:
            start = min(start, times["endDatetime"] - timedelta(seconds=_seconds(config.interval)))
        times["startDatetime"] = start
    return replace(annotation, times=times)


def _position_start(config: ChartConfig, now: datetime) -> datetime:
    """Returns the time at three quarters of what a chart shows."""
    bounds = RangeBounds(None, now) if config.range is None else bounds_of(config.range, now)
    shown = timedelta(seconds=_SHOWN_BARS * _seconds(config.interval))
    start = max(bounds.end - shown, datetime(1900, 1, 1, tzinfo=UTC)) if bounds.start is None else bounds.start
    return _whole(start + (bounds.end - start) * 3 / 4)


def _seconds(interval: str) -> int:
    return int(interval[:-1]) * _UNITS[interval[-1]]


def _study(entry: ConfigStudy) -> dict[str, Any]:
    keys = {each.name: each.key for each in entry.study.inputs}
    body: dict[str, Any] = {"name": entry.study.title}
    if entry.force_overlay:
        body["forceOverlay"] = True
    if entry.inputs:
        body["input"] = {keys[name]: value for name, value in entry.inputs.items()}
    if entry.override:
        body["override"] = _copied(entry.override)
    return body


def _annotation(annotation: ConfigAnnotation) -> dict[str, Any]:
    values: dict[str, Any] = dict(annotation.prices)
    values |= {name: _iso(moment) for name, moment in annotation.times.items()}
    if annotation.text:
        values["text"] = annotation.text
    wanted = {name: values[name] for name in annotation.kind.coordinates if name in values}
    body: dict[str, Any] = {"name": annotation.kind.name, "input": wanted}
    if annotation.override:
        body["override"] = _copied(annotation.override)
    return body | {"zOrder": "top" if annotation.on_top else "bottom"}


def _whole(moment: datetime) -> datetime:
    """Returns a time in whole milliseconds of UTC."""
    moment = moment.astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return deepcopy(dict(values))
