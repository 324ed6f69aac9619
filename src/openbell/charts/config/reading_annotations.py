"""Reads the drawings of a chart config, in the contract's form (type, coordinates, style) or the vendor's (name, input)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from openbell.charts.config.annotation_kinds import KINDS, TYPES, AnnotationKind, Coordinate, kind_of
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.config.problems import Problems, is_finite, shorten
from openbell.charts.config.ranges import EARLIEST, LATEST_YEAR
from openbell.charts.config.reading_studies import MOST_READ
from openbell.market.nearest import did_you_mean

LONGEST_TEXT = 500
_KEYS = ("type", "name", "coordinates", "input", "style", "override", "zOrder")


def read_annotations(value: object, problems: Problems) -> tuple[ConfigAnnotation, ...]:
    """Returns the drawings that can be read; the others are problems."""
    if value is None:
        return ()
    if not isinstance(value, list):
        problems.error("drawings", f"drawings must be a list of at most {MOST_READ} drawings, not {shorten(value)}")
        return ()
    if len(value) > MOST_READ:
        problems.error("drawings", f"{len(value)} drawings, and a config may have {MOST_READ}")
        return ()
    read = (_read(each, f"drawings[{at}]", problems) for at, each in enumerate(value))
    return tuple(each for each in read if each is not None)


def _read(raw: object, at: str, problems: Problems) -> ConfigAnnotation | None:
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
        if key not in _KEYS and not problems.full("warning"):
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
    kind: AnnotationKind, place: Mapping[Any, Any], at: str, problems: Problems
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


_SIDES = {"Long Position": 1, "Short Position": -1}


def _check_sides(kind: AnnotationKind, prices: Mapping[str, float], at: str, problems: Problems) -> None:
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


def _price(field: str, value: object, problems: Problems) -> float | None:
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


def _time(field: str, value: object, problems: Problems) -> datetime | None:
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


def _text(field: str, value: object, problems: Problems) -> str | None:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        problems.error(field, f"text must have at most {LONGEST_TEXT} characters")
        return None
    return value


_READERS = {Coordinate.PRICE: _price, Coordinate.TIME: _time, Coordinate.TEXT: _text}
