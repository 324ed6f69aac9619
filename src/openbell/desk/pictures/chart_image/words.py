"""Texts and values that the vendor sends: bounded, printable, and without the API key."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from openbell.market.foreign_text import one_visible_line

LONGEST = 300
"""Characters of a text of the vendor."""
_READ = 4000
"""Characters of a text that are looked at."""
_MILLISECONDS_FROM = 1e11
"""Epochs of this size and more are milliseconds."""
_MOST_PROBLEMS = 20
_FIELDS = ("message", "error", "msg", "detail", "errors")
"""Where the vendor's errors have their text, in order of precedence."""
_SUBJECTS = (
    "symbol",
    "interval",
    "range",
    "width",
    "height",
    "style",
    "theme",
    "timezone",
    "session",
    "scale",
    "format",
)


def clean(text: object, key: str, longest: int = LONGEST) -> str:
    """Returns a text in printable characters on one line, without the key."""
    whole = str(text)
    shown = one_visible_line(whole[:_READ])
    if key:
        shown = re.sub(re.escape(key), "[key]", shown, flags=re.IGNORECASE)
        if len(whole) > _READ:
            shown = shown[: -len(key)]  # may end with a part of the key
    return one_visible_line(" ".join(shown.split()), longest)


def parse_json(body: bytes) -> Any:
    """Returns the value of a JSON text; None if it is none."""
    try:
        return json.loads(body, parse_constant=lambda _name: None)
    except (ValueError, RecursionError):
        return None


def words_of(value: object, key: str) -> str:
    """Returns the text of an error in JSON; "" if there is none."""
    if isinstance(value, str):
        return clean(value, key)
    if isinstance(value, dict):
        for name in _FIELDS:
            if value.get(name):
                return words_of(value[name], key)
    if isinstance(value, list):
        return "; ".join(filter(None, (words_of(each, key) for each in value[:3] if isinstance(each, str | dict))))
    return ""


def problems_of(value: object, key: str) -> list[dict[str, str]]:
    """Returns the fields that a config has wrong: of a list of `{value, msg, param, location}`, or of a text."""
    listed = _listed(value)
    found = [
        {
            "field": clean(each.get("param") or each.get("path") or each.get("field") or "config", key),
            "message": words_of(each, key) or "not valid",
        }
        for each in listed[:_MOST_PROBLEMS]
        if isinstance(each, dict)
    ]
    if found:
        return found
    text = words_of(value, key) or "the vendor does not accept it"
    lowered = text.lower()
    field = next((each for each in _SUBJECTS if each in lowered), "config")
    return [
        {"field": "studies" if "stud" in lowered else "drawings" if "drawing" in lowered else field, "message": text}
    ]


def _listed(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return next((value[name] for name in _FIELDS if isinstance(value.get(name), list)), [])
    return []


def moment_of(value: object) -> datetime | None:
    """Returns a time that is written in ISO 8601, or as epoch seconds or milliseconds; None if it is none."""
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                found = datetime.fromisoformat(str(value).strip())
                return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS_FROM else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
