"""JSON has no NaN and no infinity: results that contain one are refused, notifications and error details get null."""

from __future__ import annotations

from math import isfinite
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from openbell.market.errors import NotFinite


def require_finite(value: Any, tool: str) -> None:
    """Raises `NotFinite`, which names the field, if a result contains NaN or an infinity."""
    place = _find(value) if _may_have_one(value) else None
    if place is not None:
        raise NotFinite(
            f"{tool}: {place.lstrip('.')} is not a finite number. The stored prices or volumes are too large or too small "
            "to calculate with: check the file that they were imported from",
            field=place.lstrip("."),
        )


def _may_have_one(value: Any) -> bool:
    """Returns False for most values without NaN and infinity, in a tenth of the time of `_find` for 1,000 bars."""
    try:
        text = to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError:  # a text with half a surrogate pair
        return True
    return b"NaN" in text or b"Infinity" in text


def _find(value: Any) -> str | None:
    """Returns the path of the first NaN or infinity, such as `.items[3].close`, or None.

    Floats are checked in place: a call for each of them would take twice as long.
    """
    if isinstance(value, float):
        return None if isfinite(value) else ""
    if isinstance(value, dict):
        for name, each in value.items():
            if type(each) is float:
                if not isfinite(each):
                    return f".{name}"
            elif type(each) is not str and (place := _find(each)) is not None:
                return f".{name}{place}"
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            if type(each) is float:
                if not isfinite(each):
                    return f"[{index}]"
            elif (place := _find(each)) is not None:
                return f"[{index}]{place}"
    return None


def finite_or_null(value: Any) -> Any:
    """Returns the value with null in place of every NaN and infinity."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite_or_null(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_null(each) for each in value]
    return value
