"""Dataclasses to rows and back. Rows are plain JSON with amounts as text, as tables and the ledger store them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from decimal import Decimal
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

from openbell.trading import amounts

T = TypeVar("T")


def to_row(value: Any) -> dict[str, Any]:
    """Returns a dataclass as a row. Float fields become floats even if they hold an int, as the database returns them."""
    row = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    for name, wanted in _types(cast("Hashable", type(value))).items():
        if wanted is float and row[name] is not None:
            row[name] = float(row[name])
    return row


def from_row(kind: type[T], row: dict[str, Any]) -> T:
    """Returns the dataclass of a row."""
    return kind(
        **{
            name: value if (value := row[name]) is None or isinstance(value, wanted) else read(value)
            for name, wanted, read in _readers(cast("Hashable", kind))
        }
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return amounts.text(value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | frozenset):
        return sorted(value) if isinstance(value, frozenset) else list(value)
    return value


@cache
def _readers(kind: Any) -> list[tuple[str, type[Any], Callable[[Any], Any]]]:
    """Returns the name and type of each field, and what makes its value. Members of enums are cached: they are few."""
    return [
        (name, wanted, cache(wanted) if issubclass(wanted, StrEnum) else wanted)
        for name, wanted in _types(kind).items()
    ]


@cache
def _types(kind: Any) -> dict[str, type[Any]]:
    """Returns the type of each field; for an optional field, the type other than None."""
    found: dict[str, type[Any]] = {}
    for name, hint in get_type_hints(kind).items():
        wanted = (
            next(each for each in get_args(hint) if each is not type(None)) if isinstance(hint, UnionType) else hint
        )
        found[name] = getattr(wanted, "__origin__", wanted)
    return found
