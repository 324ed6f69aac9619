"""The JSON of clients, read the same way from pipes and from sockets."""

from __future__ import annotations

import json
import re
from math import inf
from typing import Any

from pydantic_core import from_json

_KEY = re.compile(rb'"[ \t\r\n]*:')
"""The end of each key of an object. A text may also contain it, behind a backslash."""
_MOST_BITS = 1024
"""Bits of a whole number: more digits than a float can have. A longer one takes milliseconds each time it is written."""


def parse(text: bytes, *, nan: bool = False) -> Any:
    """Returns the value of JSON; with `nan`, NaN and Infinity are read too, which Python's clients write.

    A whole number that no float can hold becomes an infinity, as 1e999 does, except in the id, which is sent back: so the
    argument that it belongs to is named. Raises `ValueError` if the text is no JSON or has an object with a key twice:
    programs disagree about which of two equal keys counts, so one could check a message that another runs.
    """
    found = from_json(text, allow_inf_nan=nan)
    identity = found.get("id") if isinstance(found, dict) else None
    if len(_KEY.findall(text)) != _count_keys(found):
        json.loads(text, object_pairs_hook=_once)
    if type(identity) is int:
        found["id"] = identity
    return found


def _count_keys(value: Any) -> int:
    """Returns the number of keys of all objects, and turns numbers that are too long into infinities."""
    count, left = 0, [value] if isinstance(value, dict | list) else []
    while left:
        each = left.pop()
        if type(each) is dict:
            count += len(each)
            inner: Any = each.items()
        else:
            inner = enumerate(each)
        for key, one in inner:
            kind = type(one)
            if kind is dict or kind is list:
                left.append(one)
            elif kind is int and one.bit_length() > _MOST_BITS:
                each[key] = inf if one > 0 else -inf
    return count


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found
