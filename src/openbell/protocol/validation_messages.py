"""Explains in our own words why arguments do not fit their types: one clause for each fault, without the values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from openbell.market.nearest import did_you_mean

_MOST_CLAUSES = 8
_MOST_NAMES = 10
_LONGEST_PLACE = 80
_KINDS = {
    "string_type": "text",
    "string_sub_type": "text",
    "string_unicode": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "typed_dict_type": "an object",
}
"""What each fault of a type asks for. Several at one place are the choices of a union."""
_REASONS = {
    "missing": "is required",
    "none_required": "must be null",
    "finite_number": "must be a finite number",
    "int_parsing_size": "has too many digits",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "too_short": "must have at least {min_length} entries, not {actual_length}",
    "too_long": "must have at most {max_length} entries, not {actual_length}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "does not have the right form",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "recursion_loop": "is nested too deeply",
}
"""The reason of each other fault, with the limits that it names."""


class _Fault(NamedTuple):
    place: tuple[str | int, ...]
    kind: str
    limits: Mapping[str, Any]


def faults_of(error: ValidationError) -> list[ErrorDetails]:
    """Returns the faults that a validation has found. Of thousands this takes tens of milliseconds: call it once."""
    return error.errors(include_url=False, include_input=False)


def explain(faults: Iterable[Mapping[str, Any]], given: Any, whole: str, wanted: type[BaseModel] | None = None) -> str:
    """Returns what is wrong with `given`, such as "limit must be at most 1000; symbol is required".

    `whole` is its name, `wanted` the type of the arguments, for suggestions of names.
    """
    found = [_Fault(_place(each, given), each["type"], _limits(each)) for each in faults]
    return "; ".join(islice(_once(_clauses(found, given, whole, wanted)), _MOST_CLAUSES))


def faulty_arguments(faults: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the names of the first arguments that are wrong, missing or unknown."""
    return list(islice(_once(str(each["loc"][0])[:_LONGEST_PLACE] for each in faults if each["loc"]), _MOST_NAMES))


def _once(clauses: Iterable[str]) -> Iterator[str]:
    """Yields each clause once. The others are not even made: each name that is suggested takes a search."""
    seen: set[str] = set()
    for each in clauses:
        if each not in seen:
            seen.add(each)
            yield each


def _limits(fault: Mapping[str, Any]) -> dict[str, Any]:
    return {name: f"{value:g}" if isinstance(value, float) else value for name, value in fault.get("ctx", {}).items()}


def _place(fault: Mapping[str, Any], given: Any) -> tuple[str | int, ...]:
    """Returns the path of a fault in the arguments. Its other parts name the choices of a union."""
    place: list[str | int] = []
    value = given
    for number, part in enumerate(fault["loc"], 1):
        if _holds(value, part):
            place.append(part)
            value = value[part]
        elif fault["type"] == "missing" and number == len(fault["loc"]):
            place.append(part)
    return tuple(place)


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(part, int):
        return isinstance(value, list) and part < len(value)
    return isinstance(value, Mapping) and part in value


def _clauses(found: list[_Fault], given: Any, whole: str, wanted: type[BaseModel] | None) -> Iterator[str]:
    at: dict[tuple[str | int, ...], list[_Fault]] = {}
    for each in found:
        at.setdefault(each.place, []).append(each)
    above = {place[:length] for place in at for length in range(len(place))}
    for place, here in at.items():
        others = [each for each in here if each.kind not in _KINDS and each.kind != "none_required"]
        if place in above and not others:  # one choice of a union fits, and the fault is inside of it
            continue
        name = _written(place) or whole
        if others:
            yield from (f"{name} {_reason(each, given, wanted)}" for each in others)
        elif kinds := list(dict.fromkeys(_KINDS[each.kind] for each in here if each.kind in _KINDS)):
            yield f"{name} must be {' or '.join(kinds)}, not {_kind_of(_value_at(given, place))}"
        else:
            yield f"{name} {_REASONS['none_required']}"


def _reason(fault: _Fault, given: Any, wanted: type[BaseModel] | None) -> str:
    if fault.kind == "extra_forbidden":
        names = list(_fields_at(wanted, fault.place[:-1]))
        advice = did_you_mean(fault.place[-1], names) if names else ""
        return f"is not {'an argument of this tool' if len(fault.place) == 1 else 'a known field'}{advice}"
    reason = _REASONS.get(fault.kind, "is not valid").format_map(fault.limits)
    if fault.kind == "literal_error":
        choices = str(fault.limits["expected"]).replace("'", "")
        return (
            f"must be {choices}{did_you_mean(_value_at(given, fault.place), choices.replace(' or ', ', ').split(', '))}"
        )
    return reason.replace("1 entries", "1 entry")


def _written(place: tuple[str | int, ...]) -> str:
    """Returns a path such as `indicators[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    return text if len(text) <= _LONGEST_PLACE else f"{text[:_LONGEST_PLACE]}..."


def _value_at(given: Any, place: tuple[str | int, ...]) -> Any:
    for part in place:
        given = given[part]
    return given


def _kind_of(value: Any) -> str:
    """Returns what kind of JSON a value is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    for kind, name in ((int, "a number"), (float, "a number"), (str, "text"), (list, "a list"), (Mapping, "an object")):
        if isinstance(value, kind):
            return name
    return "another value"


def _fields_at(wanted: Any, place: tuple[str | int, ...]) -> Iterator[str]:
    """Yields the names of the fields of the objects at a path."""
    models = [wanted] if wanted is not None else []
    for part in place:
        if isinstance(part, str):
            fields = [model.model_fields[part] for model in models if part in model.model_fields]
            models = [model for field in fields for model in _models_in(field.annotation)]
    for model in models:
        yield from (field.alias or name for name, field in model.model_fields.items())


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models_in(each)
