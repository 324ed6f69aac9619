"""JSON has no NaN and no infinity: results that hold one are refused, notifications and error details get null."""

from __future__ import annotations

from math import isfinite
from typing import Any

from openbell.market.errors import NotFinite


def require_finite(value: Any, tool: str) -> None:
    """Raises `NotFinite`, which names the field, if a result holds NaN or an infinity."""
    place = _find(value)
    if place is not None:
        raise NotFinite(
            f"{tool}: {place.lstrip('.')} is no finite number. The stored prices or volumes are too large or too small "
            "to calculate with: check the file that they were imported from",
            field=place.lstrip("."),
        )


def _find(value: Any) -> str | None:
    """Where the first such number is: `.snapshot.macd`, `.items[3].close`."""
    if isinstance(value, float):
        return None if isfinite(value) else ""
    if isinstance(value, dict):
        for name, each in value.items():
            if type(each) is not str and (place := _find(each)) is not None:
                return f".{name}{place}"
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            if type(each) is float:  # long series are lists of plain floats
                if not isfinite(each):
                    return f"[{index}]"
            elif (place := _find(each)) is not None:
                return f"[{index}]{place}"
    return None


def finite_or_null(value: Any) -> Any:
    """The same value with null for every number that JSON does not have."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite_or_null(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_null(each) for each in value]
    return value
