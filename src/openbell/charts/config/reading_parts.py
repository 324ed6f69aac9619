"""Reads the studies and the annotations of a chart config.

Studies have inputs by the contract's or by the vendor's names. Annotations are in the contract's form (type, coordinates,
style) or the vendor's (name, input).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from openbell.charts.config.model import (
    KINDS,
    TYPES,
    AnnotationKind,
    ConfigAnnotation,
    ConfigStudy,
    Coordinate,
    kind_of,
)
from openbell.charts.config.problems import ConfigProblems, is_finite, shorten
from openbell.charts.config.ranges import EARLIEST, LATEST_YEAR
from openbell.charts.studies import catalogue
from openbell.charts.studies.study import Input, Study
from openbell.indicators.spec import Setting
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean

MOST_READ = 50
"""Studies or annotations of one config, whatever the plan."""
_STUDY_KEYS = ("name", "inputs", "input", "override", "forceOverlay")
_SECOND_KEYS = {"BollingerBands": {"in_1": "stdDev"}}
"""Keys that one of two sources names for an input, if its value is a number."""
LONGEST_TEXT = 500
_ANNOTATION_KEYS = ("type", "name", "coordinates", "input", "style", "override", "zOrder")

_SIDES = {"Long Position": 1, "Short Position": -1}


def read_studies(value: object, problems: ConfigProblems) -> tuple[ConfigStudy, ...]:
    """Returns the studies that can be read; the others are problems."""
    if value is None:
        return ()
    if not isinstance(value, list):
        problems.error("studies", f"studies must be a list of at most {MOST_READ} studies, not {shorten(value)}")
        return ()
    if len(value) > MOST_READ:
        problems.error("studies", f"{len(value)} studies, and a config may have {MOST_READ}")
        return ()
    found: list[ConfigStudy] = []
    for at, each in enumerate(value):
        study = _read_study(each, f"studies[{at}]", problems)
        if study is not None:
            if any(study == other for other in found):
                problems.warning(
                    f"studies[{at}]",
                    f"{study.study.title} is there twice with the same inputs",
                    f"Remove studies[{at}]",
                )
            found.append(study)
    return tuple(found)


def _read_study(raw: object, at: str, problems: ConfigProblems) -> ConfigStudy | None:
    if isinstance(raw, str):
        raw = {"name": raw}
    if not isinstance(raw, Mapping):
        problems.error(at, f"a study must be an object with a name, not {shorten(raw)}")
        return None
    name = raw.get("name")
    if not isinstance(name, str):
        problems.error(f"{at}.name", "a study needs a name", "Names are in fetch_chart_documentation")
        return None
    try:
        study = catalogue.find(name)
    except InvalidParameter as error:
        problems.error(f"{at}.name", error.message, "Use a name from fetch_chart_documentation, section indicators")
        return None
    for key in raw:
        if key not in _STUDY_KEYS and not problems.full("warning"):
            problems.warning(
                f"{at}.{str(key)[:40]}",
                f"unknown field {str(key)[:40]!r} is ignored{did_you_mean(str(key)[:40], _STUDY_KEYS)}",
            )
    override, forced = raw.get("override") or {}, raw.get("forceOverlay", False)
    if not isinstance(override, Mapping):
        problems.error(f"{at}.override", f"override must be an object, not {shorten(override)}")
        override = {}
    if not is_finite(override):
        problems.error(f"{at}.override", "numbers of override must be finite")
    if not isinstance(forced, bool):
        problems.error(f"{at}.forceOverlay", f"forceOverlay must be true or false, not {shorten(forced)}")
    return ConfigStudy(study, _inputs(study, raw, at, problems), override, forced is True)


def _inputs(study: Study, raw: Mapping[str, Any], at: str, problems: ConfigProblems) -> dict[str, Setting]:
    given: dict[str, object] = {}
    where = "input" if "input" in raw else "inputs"
    for key in ("inputs", "input"):
        part = raw.get(key) or {}
        if not isinstance(part, Mapping):
            problems.error(f"{at}.{key}", f"{key} must be an object, not {shorten(part)}")
            continue
        given |= {str(name): value for name, value in part.items()}
    named = {each.name: each for each in study.inputs}
    # Other clients count the inputs of every study, also of those whose inputs have names.
    keyed = {f"in_{number}": each for number, each in enumerate(study.inputs)} | {
        each.key: each for each in study.inputs
    }
    found: dict[str, Setting] = {}
    for name, value in given.items():
        if problems.full("error"):
            break
        second = _SECOND_KEYS.get(study.short, {}).get(name, "")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        known = named[second] if second and is_number else named.get(name) or keyed.get(name)
        if known is None:
            has = ", ".join(named) or "none"
            advice = did_you_mean(name[:40], named) or f"; it has {has}"
            problems.error(
                f"{at}.{where}.{name[:40]}",
                f"{study.title} has no input {name[:40]!r}{advice}",
                f"Inputs of {study.title}: {has}",
            )
            continue
        try:
            found[known.name] = known.check(value)
        except InvalidParameter as error:
            problems.error(f"{at}.{where}.{name[:40]}", f"{study.title}: {error.message}", _mended(known, value))
    return found


def _mended(known: Input, value: object) -> str:
    """Returns how to write a value that was refused: the number in a text, else the default."""
    if isinstance(value, str) and known.kind == "number":
        with suppress(ValueError, InvalidParameter):
            number = float(value)
            return f"Set {known.name} to {known.check(number)} without quotation marks"
    return f"Set {known.name} to {known.default}"


def read_annotations(value: object, problems: ConfigProblems) -> tuple[ConfigAnnotation, ...]:
    """Returns the annotations that can be read; the others are problems."""
    if value is None:
        return ()
    if not isinstance(value, list):
        problems.error("drawings", f"drawings must be a list of at most {MOST_READ} drawings, not {shorten(value)}")
        return ()
    if len(value) > MOST_READ:
        problems.error("drawings", f"{len(value)} drawings, and a config may have {MOST_READ}")
        return ()
    read = (_read_annotation(each, f"drawings[{at}]", problems) for at, each in enumerate(value))
    return tuple(each for each in read if each is not None)


def _read_annotation(raw: object, at: str, problems: ConfigProblems) -> ConfigAnnotation | None:
    if not isinstance(raw, Mapping):
        problems.error(at, f"a drawing must be an object with a type, not {shorten(raw)}")
        return None
    name = raw.get("type", raw.get("name"))
    kind = kind_of(name) if isinstance(name, str) and len(name) <= 80 else None
    if kind is None:
        advice = did_you_mean(name[:80], KINDS) if isinstance(name, str) else ""
        problems.error(f"{at}.type", f"no drawing {shorten(name)}{advice}", f"Drawings are {', '.join(KINDS)}")
        return None
    for key in raw:
        if key not in _ANNOTATION_KEYS and not problems.full("warning"):
            problems.warning(f"{at}.{str(key)[:40]}", f"unknown field {str(key)[:40]!r} is ignored")
    place = raw.get("coordinates", raw.get("input"))
    if not isinstance(place, Mapping):
        wanted = ", ".join(kind.required)
        problems.error(
            f"{at}.coordinates", f"{kind.name} needs coordinates: {wanted}", f"Add coordinates with {wanted}"
        )
        return None
    override = raw.get("style", raw.get("override")) or {}
    if not isinstance(override, Mapping):
        problems.error(f"{at}.style", f"style must be an object, not {shorten(override)}")
        return None
    if not is_finite(override):
        problems.error(f"{at}.style", "numbers of style must be finite")
    order = raw.get("zOrder", "top")
    on_top = problems.choose(f"{at}.zOrder", order, ("top", "bottom")) != "bottom"
    found = _coordinates(kind, place, at, problems)
    prices = {key: each for key, each in found.items() if isinstance(each, float)}
    _check_sides(kind, prices, at, problems)
    times = {key: each for key, each in found.items() if isinstance(each, datetime)}
    return ConfigAnnotation(kind, prices, times, str(found.get("text", "")), override, on_top)


def _coordinates(
    kind: AnnotationKind, place: Mapping[Any, Any], at: str, problems: ConfigProblems
) -> dict[str, float | datetime | str]:
    found: dict[str, float | datetime | str] = {}
    for name in kind.required:
        if place.get(name) is None:
            problems.error(f"{at}.coordinates.{name}", f"{kind.name} needs {name}", f"Add {name}")
    for name, value in place.items():
        if problems.full("error"):
            break
        field = f"{at}.coordinates.{str(name)[:40]}"
        if name not in kind.coordinates:
            advice = did_you_mean(str(name)[:40], kind.coordinates) or f"; it has {', '.join(kind.coordinates)}"
            problems.error(field, f"{kind.name} has no coordinate {str(name)[:40]!r}{advice}")
        elif value is not None and (read := _READERS[TYPES[name]](field, value, problems)) is not None:
            found[name] = read
    return found


def _check_sides(kind: AnnotationKind, prices: Mapping[str, float], at: str, problems: ConfigProblems) -> None:
    """Adds an error for each price of a position that lies on the wrong side of its entry: a target would be a loss."""
    sign = _SIDES.get(kind.name, 0)
    if not sign or not {"entryPrice", "targetPrice", "stopPrice"} <= set(prices):
        return
    for name, side in (("targetPrice", sign), ("stopPrice", -sign)):
        if (prices[name] - prices["entryPrice"]) * side <= 0:
            word = "above" if side > 0 else "below"
            problems.error(
                f"{at}.coordinates.{name}",
                f"{kind.name}: {name} must be {word} entryPrice",
                "Exchange stopPrice and targetPrice, or use the other kind of position",
            )


def _price(field: str, value: object, problems: ConfigProblems) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value) or value <= 0:
        problems.error(
            field,
            f"{field.rpartition('.')[2]} must be a positive number, not {shorten(value)}",
            "Write it as a number such as 65000",
        )
        return None
    return float(value)


def _finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _time(field: str, value: object, problems: ConfigProblems) -> datetime | None:
    try:
        if not isinstance(value, str) or len(value) > 40:
            raise ValueError
        found = datetime.fromisoformat(value.strip())
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        problems.error(
            field,
            f"{field.rpartition('.')[2]} must be an ISO 8601 time, not {shorten(value)}",
            "Write it as 2026-03-03T00:00:00Z",
        )
        return None
    if not EARLIEST.year <= found.year <= LATEST_YEAR:
        years = f"{EARLIEST.year} and {LATEST_YEAR}"
        problems.error(field, f"{field.rpartition('.')[2]} must be between {years}, not {shorten(value)}")
        return None
    return found


def _text(field: str, value: object, problems: ConfigProblems) -> str | None:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        problems.error(field, f"text must have at most {LONGEST_TEXT} characters")
        return None
    return value


_READERS = {Coordinate.PRICE: _price, Coordinate.TIME: _time, Coordinate.TEXT: _text}
