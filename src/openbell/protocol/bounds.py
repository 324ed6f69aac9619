"""Limits on the length of arguments, checked before any other code reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openbell.market.errors import InvalidParameter, InvalidSymbol
from openbell.market.instruments import LONGEST_SYMBOL, TOO_LONG

LONGEST_TEXT = 1_000
"""Most characters of a string in an argument. The longest that a tool accepts, an order's id, has 200."""
LONGEST_NAME = 100
SYMBOLS = frozenset({"symbol", "ticker"})
CHECKED_BY_THE_TOOL = frozenset(
    "timeframe interval side action reasoning tool_calls metric source status period name start_date end_date".split()
)
"""Arguments that the tool itself checks first, against a list of names or a length, and refuses with the contract's own
code."""


def refuse_long_texts(arguments: Mapping[str, Any]) -> None:
    """Raises `InvalidSymbol` if a symbol is too long, `InvalidParameter` if any other string is."""
    for name, value in arguments.items():
        if len(name) > LONGEST_NAME:
            raise InvalidParameter(f"{name[:40]}... is not an argument of this tool")
        if name in SYMBOLS and isinstance(value, str):
            if len(value) > LONGEST_SYMBOL:
                raise InvalidSymbol(value.strip(), TOO_LONG)
        elif name not in CHECKED_BY_THE_TOOL:
            _refuse_long(name, value)


def _refuse_long(name: str, value: Any) -> None:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if len(each) > LONGEST_TEXT:
                raise InvalidParameter(f"{name}: {len(each)} characters are too many; the most is {LONGEST_TEXT}")
        elif isinstance(each, Mapping):
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
