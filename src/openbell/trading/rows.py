"""Values as rows: what the store keeps and the ledger seals is plain JSON, amounts as text."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from decimal import Decimal
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

from openbell.trading import amounts

T = TypeVar("T")


def to_row(value: Any) -> dict[str, Any]:
    """A dataclass as a row; a time that happens to be whole is written as it will be read back."""
    row = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    for name, wanted in _types(cast("Hashable", type(value))).items():
        if wanted is float and row[name] is not None:
            row[name] = float(row[name])
    return row


def from_row(kind: type[T], row: dict[str, Any]) -> T:
    """The dataclass of a row."""
    return kind(**{name: _typed(wanted, row[name]) for name, wanted in _types(cast("Hashable", kind)).items()})


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return amounts.text(value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | frozenset):
        return sorted(value) if isinstance(value, frozenset) else list(value)
    return value


def _typed(wanted: type[Any], value: Any) -> Any:
    if value is None or isinstance(value, wanted):
        return value
    return wanted(value)


@cache
def _types(kind: Any) -> dict[str, type[Any]]:
    """Each field's type; of an optional one, that which it has when it is there."""
    found: dict[str, type[Any]] = {}
    for name, hint in get_type_hints(kind).items():
        wanted = (
            next(each for each in get_args(hint) if each is not type(None)) if isinstance(hint, UnionType) else hint
        )
        found[name] = getattr(wanted, "__origin__", wanted)
    return found
