"""Which version a changed manifest needs.

A change that can break a client that was written for the older manifest needs a new major version: something is removed,
or a constraint differs. Additions that no client has to know need a minor version: methods, optional fields, and further
values of an argument. Other words need a patch. Other constraints that allow more are not told apart from those that allow
less.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class Bump(IntEnum):
    """The part of a version that grows."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3


_WORDS = frozenset({"description", "title", "contact", "license", "examples"})
"""Keys whose values are read by people."""
_SETS = frozenset({"required", "type", "enum"})
"""Keys of lists whose order means nothing."""
_NAMED = frozenset({"properties", "methods"})
"""Keys whose values have names of fields or methods, which may be added."""


def needed_bump(old: Mapping[str, Any], new: Mapping[str, Any]) -> Bump:
    """Returns what the version has to grow by from an older manifest to a newer one."""
    return _compared({**old, "version": ""}, {**new, "version": ""}, "", is_input=False)


def is_enough(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Returns True if the newer manifest has a version that its changes allow."""
    before, after = _parts(old["version"]), _parts(new["version"])
    needed = needed_bump(old, new)
    if needed is Bump.NONE:
        return after >= before
    place = Bump.MAJOR - needed  # 0 for the major part
    return after[: place + 1] > before[: place + 1]


def _compared(old: Any, new: Any, key: str, *, is_input: bool) -> Bump:
    """Returns what a part of the manifest needs; `key` is the one that leads to it."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return max((_one(old, new, name, key, is_input=is_input) for name in {*old, *new}), default=Bump.NONE)
    if isinstance(old, list) and isinstance(new, list):
        if key == "methods":
            before, after = ({each["name"]: each for each in methods} for methods in (old, new))
            return _compared(before, after, key, is_input=is_input)
        if key == "enum" and is_input and all(value in new for value in old):
            return Bump.MINOR if len(new) > len(old) else Bump.NONE
        if key in _SETS:
            old, new = sorted(map(repr, old)), sorted(map(repr, new))
    return Bump.NONE if old == new and type(old) is type(new) else Bump.MAJOR


def _one(old: Mapping[str, Any], new: Mapping[str, Any], name: str, key: str, *, is_input: bool) -> Bump:
    """Returns what one entry of an object needs. Names of fields are no keywords, whatever they are."""
    keyword = "" if key in _NAMED else name
    if keyword in _WORDS:
        return Bump.NONE if old.get(name) == new.get(name) else Bump.PATCH
    if name not in new:
        return Bump.MAJOR
    if name not in old:
        return Bump.MINOR if key in _NAMED else Bump.MAJOR
    return _compared(old[name], new[name], keyword, is_input=is_input or keyword == "input_schema")


def _parts(version: str) -> tuple[int, ...]:
    """Returns the three numbers of a version. Raises `ValueError` for any other text."""
    major, minor, patch = version.split(".")
    return int(major), int(minor), int(patch)
