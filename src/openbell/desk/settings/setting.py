"""The declaration of one setting: its default, its text, and how a text of the environment or the file becomes a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import Field, dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from openbell.desk.settings.checks import Check, one_of, variable_of
from openbell.feeds.registry import Option
from openbell.market.errors import SettingsError

_DECLARED = "setting"
_PASSWORD = re.compile(r"://[^/]*:[^/]*@|[?&]password=")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: a field of `Settings`, or an option of a feed or broker."""

    name: str
    """Its key in `openbell.toml`."""
    default: Any
    """Its type is the type of the setting."""
    help: str
    checks: tuple[Check, ...] = ()
    secret: bool = False

    @property
    def variable(self) -> str:
        """Its variable in the environment."""
        return variable_of(self.name)

    def typed(self, value: Any) -> Any:
        """Returns a value in the type of the setting; text is parsed, other types must fit. Raises `SettingsError`."""
        if isinstance(self.default, bool):
            return _flag(self.variable, value)
        if isinstance(self.default, Decimal):
            return _decimal(self.variable, value)
        if isinstance(self.default, int | float):
            return _number(self.variable, value, type(self.default))
        if isinstance(self.default, str) and not isinstance(value, str):
            return str(value)
        return value

    def shows_secret(self, value: str) -> bool:
        """Returns True if a value is a secret, or a URL with a password."""
        return self.secret and ("://" not in value or _PASSWORD.search(value) is not None)

    def check(self, value: Any) -> None:
        """Raise `SettingsError` for a value that is not accepted."""
        for each in self.checks:
            each(self.variable, value)


def setting(default: Any, doc: str | Callable[[], str], *checks: Check, secret: bool = False) -> Any:
    """Returns a field of `Settings`. `doc` is its documentation, or returns it; `secret` keeps its value out of texts."""
    return field(default=default, metadata={_DECLARED: (doc, checks)}, repr=not secret)


def of_field(each: Field[Any]) -> Setting | None:
    """Returns the setting that a field declares; None if it declares none."""
    if _DECLARED not in each.metadata:
        return None
    doc, checks = each.metadata[_DECLARED]
    return Setting(each.name, each.default, doc if isinstance(doc, str) else doc(), checks, not each.repr)


def of_option(option: Option) -> Setting:
    """Returns the setting that a feed or broker declares."""
    checks = (one_of(*option.choices),) if option.choices else ()
    return Setting(option.name, option.default, option.help, checks)


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
