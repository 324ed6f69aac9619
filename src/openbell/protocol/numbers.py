"""Two kinds of numbers in the types of results, and the rounding that they call for (`market/digits.py`).

A `Computed` number leaves with 10 significant digits: the runner rounds it. An `Exact` one leaves as the handler returns it:
a price of the feed, a volume, an amount, a number that a caller or a setting gave. Every float in the type of a result is
one of the two; a test refuses any other.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import UnionType
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

from openbell.market.digits import significant


class Digits(Enum):
    """The digits with which a number leaves."""

    SIGNIFICANT = "significant"
    OWN = "own"


Computed = Annotated[float, Digits.SIGNIFICANT]
Exact = Annotated[float, Digits.OWN]

Rounding = Callable[[Any], Any]


def rounding(kind: Any) -> Rounding | None:
    """Returns the function that rounds the computed numbers of a value of this type; None if the type has none.

    The function copies what it changes, because a handler may return parts of what the desk keeps.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        marked = next((each for each in parts[1:] if isinstance(each, Digits)), None)
        return _number if marked is Digits.SIGNIFICANT else rounding(parts[0])
    if origin in {Required, NotRequired}:
        return rounding(parts[0])
    if origin in {Union, UnionType}:
        return next(filter(None, map(rounding, parts)), None)
    if origin in {list, dict}:
        each = rounding(parts[-1])
        return each and (_of_items(each) if origin is list else _of_values(each))
    return _of_fields(kind) if is_typeddict(kind) else None


def _number(value: Any) -> Any:
    return significant(value) if isinstance(value, float) else value


def _of_items(each: Rounding) -> Rounding:
    return lambda value: [each(item) for item in value]


def _of_values(each: Rounding) -> Rounding:
    return lambda value: {name: item if item is None else each(item) for name, item in value.items()}


def _of_fields(kind: Any) -> Rounding | None:
    hints = get_type_hints(kind, include_extras=True)
    fields = [(name, each) for name, hint in hints.items() if (each := rounding(hint))]
    if not fields:
        return None

    def rounded(value: Any) -> Any:
        copy = dict(value)
        for name, each in fields:
            if copy.get(name) is not None:
                copy[name] = each(copy[name])
        return copy

    return rounded
