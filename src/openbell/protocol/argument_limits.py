"""Limits on the size of messages and arguments, checked before any other code reads them, and on the values that are stored.

A request must not stop the event loop. Its cost grows with the number of its values, not with its bytes: a megabyte of `[],`
has 350,000 lists, and each wrong one would be a fault with a path of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from enum import Enum
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from openbell.market.errors import InvalidParameter, InvalidSymbol
from openbell.market.instruments import LONGEST_SYMBOL, TOO_LONG

BATCH_REVISION = "2025-03-26"
"""The only revision of the protocol that has batches."""
MOST_MESSAGES = 50
"""The most messages of a batch."""
MOST_VALUES = 100_000
"""Values of a message, estimated by `values_in`. Reading so many takes at most 40 ms of a thread."""
QUICK_VALUES = 5_000
"""A message with at most so many values is read in the event loop, one with more in a thread."""
QUICK_BYTES = 262_144
"""The same for its bytes."""
MOST_ARGUMENT_VALUES = 5_000
"""Values of all arguments that the protocol checks. The longest list that a tool accepts has 500 entries."""
MOST_UNKNOWN = 64
"""Unknown arguments that are looked at; an error names the first 8."""
MOST_NAMES = MOST_UNKNOWN
"""Names of an object inside an argument: all of them may be unknown."""
LONGEST_TEXT = 1_000
"""Most characters of a string in an argument. The longest that a tool accepts, an order's id, has 200."""
LONGEST_NAME = 100
SYMBOLS = frozenset({"symbol", "ticker"})
CHECKED_BY_THE_TOOL = frozenset(
    "timeframe interval side action reasoning tool_calls metric source status period name start_date end_date".split()
)
"""Arguments that the tool itself checks first, against a list of names or a length, and refuses with the contract's own
code."""
LONGEST_VALUE = 262_144
"""Most bytes of a value as JSON."""
_ZERO = re.compile(r"(?<!\\)(\\\\)*\\u0000")
"""The character 0, escaped in JSON; an even number of backslashes before `u0000` is not such an escape."""
_FLAT: list[Any] = [
    *({"type": each} for each in ("string", "number", "boolean", "null")),
    {"type": "object", "properties": {}},
]
_NESTED = {"type": "array", "items": {"anyOf": _FLAT}}
Anything = Annotated[Any, Field(json_schema_extra={"anyOf": [*_FLAT, _NESTED]})]
"""Any JSON value, without what some clients refuse: a list of types, an array without items, a recursive schema."""


def values_in(text: bytes) -> int:
    """Returns at least the number of values and keys in JSON. Commas, colons and brackets in strings are counted too.

    Takes 2 ms for a megabyte, a tenth of the time in which a parser would find out.
    """
    return 1 + sum(map(text.count, (b",", b":", b"[", b"{")))


class Size(Enum):
    """What it costs to read JSON."""

    QUICK = "quick"
    """The event loop may read it."""
    LARGE = "large"
    """A thread must read it."""
    TOO_LARGE = "too large"
    """Nothing reads it: it has more than 100,000 values."""


def size_of(text: bytes) -> Size:
    """Returns what it costs to read JSON, without reading it."""
    values = values_in(text)
    if values > MOST_VALUES:
        return Size.TOO_LARGE
    return Size.QUICK if values <= QUICK_VALUES and len(text) <= QUICK_BYTES else Size.LARGE


def bounded(arguments: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Returns the arguments with at most 64 whose names are not known.

    Raises `InvalidSymbol` if a symbol is too long, `InvalidParameter` if any other string is, or if there are too many
    values.
    """
    unknown = islice((name for name in arguments if name not in known), MOST_UNKNOWN)
    kept = {name: arguments[name] for name in (*(name for name in known if name in arguments), *unknown)}
    left = MOST_ARGUMENT_VALUES
    for name, value in kept.items():
        if len(name) > LONGEST_NAME:
            raise InvalidParameter(f"{name[:40]}... is not an argument of this tool")
        if name in SYMBOLS and isinstance(value, str):
            if len(value) > LONGEST_SYMBOL:
                raise InvalidSymbol(value.strip(), TOO_LONG)
        elif name not in CHECKED_BY_THE_TOOL or name not in known:
            left = _walk(name, value, left)
    return kept


def _walk(name: str, value: Any, left: int) -> int:
    """Check the values of one argument; returns how many more there may be."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if len(each) > LONGEST_TEXT:
                raise InvalidParameter(f"{name}: {len(each)} characters are too many; the most is {LONGEST_TEXT}")
            continue
        if not isinstance(each, Mapping | list):
            continue
        left -= len(each)
        if left < 0:
            raise InvalidParameter(f"{name}: the arguments have more than {MOST_ARGUMENT_VALUES} values: send fewer")
        if isinstance(each, list):
            waiting += each
        elif len(each) > MOST_NAMES:
            raise InvalidParameter(f"{name}: an object has {len(each)} fields; the most is {MOST_NAMES}")
        else:
            waiting += each.keys()
            waiting += each.values()
    return left


def require_storable(text: str, name: str, value: Any) -> None:
    """Raises `InvalidParameter` for a text, or a value of an argument, that cannot be stored or is too long."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        size = len(written.encode())
        text.encode()
    except UnicodeEncodeError:
        raise InvalidParameter("the text contains half a surrogate pair") from None
    except ValueError:
        raise InvalidParameter(f"{name} contains NaN or an infinity, which JSON does not have") from None
    except RecursionError:
        raise InvalidParameter(f"{name} is nested too deeply") from None
    if size > LONGEST_VALUE:
        raise InvalidParameter(f"{name} may take at most {LONGEST_VALUE} bytes as JSON")
    if "\x00" in text or ("u0000" in written and _ZERO.search(written)):
        raise InvalidParameter("the text contains the character 0")


def wrong_batch(messages: list[Any], revision: str) -> str | None:
    """Returns why a batch of a client that has negotiated `revision` is refused; None if it is served."""
    if revision != BATCH_REVISION:
        return "Invalid Request: batches are not supported, send one message"
    if not messages:
        return "Invalid Request: an empty batch"
    if len(messages) > MOST_MESSAGES:
        return f"Invalid Request: a batch of {len(messages)} messages; the most is {MOST_MESSAGES}"
    requests = [each for each in messages if isinstance(each, dict) and "method" in each]
    if any(each["method"] == "initialize" for each in requests):
        return "Invalid Request: initialize cannot be part of a batch"
    ids = [(type(each["id"]), str(each["id"])) for each in requests if "id" in each]
    if len(set(ids)) != len(ids):
        return "Invalid Request: two requests of the batch have the same id"
    return None
