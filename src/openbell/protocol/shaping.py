"""Results made of what the desk returns: a shape takes the fields that a value has under the same names.

A new field of a result is written twice: in the dataclass that has it, and in the shape, with its description.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Annotated, Any, NotRequired, Required, TypeVar, Union, cast, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

T = TypeVar("T")
Shaping = Callable[[Any], Any]


def shaped(shape: type[T], value: object, **own: Any) -> T:
    """Returns a shape with the attributes of a value, and with `own` fields, which it lacks or has in another form.

    A field whose type is a shape is made the same way, also in a list and beside null. Fields that are not required are
    there only if they are among `own`. Raises `AttributeError`, which names the field, if the value lacks one of the others.
    """
    return cast("T", _filling(cast("Any", shape), tuple(own))(value, own))


@cache
def _filling(shape: Any, own: tuple[str, ...]) -> Callable[[object, dict[str, Any]], dict[str, Any]]:
    hints: dict[str, Any] = get_type_hints(shape, include_extras=True)
    if unknown := [name for name in own if name not in hints]:
        raise TypeError(f"{shape.__name__} has no field {', '.join(unknown)}")
    copied = [name for name, hint in hints.items() if name not in own and get_origin(hint) is not NotRequired]
    nested = [(name, made) for name in copied if (made := _shaping(hints[name]))]
    in_order = dict.fromkeys(name for name in hints if name in own or name in copied)

    def fill(value: object, own: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {**in_order, **own}
        for name in copied:
            found[name] = getattr(value, name)
        for name, made in nested:
            found[name] = made(found[name])
        return found

    return fill


def _shaping(kind: Any) -> Shaping | None:
    """Returns the function that makes a field of this type; None if its values are taken as they are."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in {Annotated, Required}:
        return _shaping(parts[0])
    if origin in {Union, UnionType}:
        made = next(filter(None, map(_shaping, parts)), None)
        return made and (lambda value: None if value is None else made(value))
    if origin is list:
        each = _shaping(parts[0])
        return each and (lambda values: [each(value) for value in values])
    return (lambda value: shaped(kind, value)) if is_typeddict(kind) else None
