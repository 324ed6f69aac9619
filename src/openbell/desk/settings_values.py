"""Values of settings: texts of the environment and values of the file, in the type of the setting."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from openbell.market.errors import SettingsError


def typed(variable: str, default: Any, value: Any) -> Any:
    """Returns a value in the type of its setting's default; text is parsed, other types must fit. Raises `SettingsError`."""
    if isinstance(default, bool):
        return _flag(variable, value)
    if isinstance(default, Decimal):
        return _decimal(variable, value)
    if isinstance(default, int | float):
        return _number(variable, value, type(default))
    if isinstance(default, str) and not isinstance(value, str):
        return str(value)
    return value


def _number(variable: str, value: Any, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(value)
        if not isinstance(value, bool) and (isinstance(value, str) or number == value):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise SettingsError(f"{variable} must be a {'whole ' if kind is int else ''}number, not {value!r}")


def _decimal(variable: str, value: Any) -> Decimal:
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        number = Decimal("nan")
    if isinstance(value, bool) or not number.is_finite():
        raise SettingsError(f"{variable} must be a number, not {value!r}")
    return number


def _flag(variable: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off"}:
        return False
    raise SettingsError(f"{variable} must be true or false, not {value!r}")
