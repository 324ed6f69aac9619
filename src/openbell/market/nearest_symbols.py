"""Finds the symbols that a mistaken one may mean: BTC may mean BTC/USD, and APPL may mean AAPL. It never chooses one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from openbell.market.instruments import QUOTES, AssetClass, Instrument

_MOST = 3
_FAR = 99
_OTHER_QUOTE = 2
"""The rank of the same base currency with another quote; spellings that differ come after it."""


def nearest_symbols(text: str, known: Iterable[Instrument], most: int = _MOST) -> list[Instrument]:
    """Returns the known instruments that are nearest to a text, all equally near, in the order of `known`."""
    asked = re.sub(r"[^A-Z0-9]", "", text[:80].upper().rpartition(":")[2])
    ranks = {each: _rank(asked, each) for each in dict.fromkeys(known)} if asked else {}
    best = min(ranks.values(), default=_FAR)
    return [each for each, rank in ranks.items() if rank == best][:most] if best < _FAR else []


def _rank(asked: str, known: Instrument) -> int:
    """Returns how far a symbol is from what was asked: 0 for the same letters, then a pair with this base."""
    base, _, quote = known.symbol.partition("/")
    letters = re.sub(r"[^A-Z0-9]", "", known.symbol)
    if letters == asked:
        return 0
    if quote and base == asked:
        return 1
    if quote and asked.startswith(base) and asked.removeprefix(base) in QUOTES:
        return _OTHER_QUOTE
    if quote == asked and known.asset_class is AssetClass.FOREX:  # JPY may mean USD/JPY
        return _OTHER_QUOTE
    allowed = 0 if len(asked) < 3 else 1 if len(asked) < 5 else 2
    far = edits(asked, letters, allowed)
    return _OTHER_QUOTE + far if far <= allowed else _FAR


def edits(one: str, two: str, most: int) -> int:
    """Returns how many letters must be added, removed, replaced or swapped with the next; more than `most` if it is more."""
    if abs(len(one) - len(two)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(two) + 1))
    for at, letter in enumerate(one, 1):
        earlier, before, row = before, row, [at]
        for place, other in enumerate(two, 1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != other))
            if at > 1 and place > 1 and (letter, one[at - 2]) == (two[place - 2], other):
                cost = min(cost, earlier[place - 2] + 1)
            row.append(cost)
    return row[-1]
