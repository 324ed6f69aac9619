"""Prices in sentences: 65k, $65,000, 1.2 million, 0.00012."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.charts.language.words import Word

_MULTIPLES = {"k": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9}
_WORDS = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9, "grand": 1e3}
_UNITS = frozenset(
    "minute minutes min mins hour hours hr day days week weeks month months year years x × pixels px percent %".split()
)


def price_at(words: Sequence[Word], at: int) -> tuple[int, float] | None:
    """Returns the index after a price, and the price. Numbers with a unit of time or size are no prices."""
    if at < len(words) and words[at].text in {"$", "€", "£"} and not words[at].is_number:
        at += 1
    if at >= len(words) or words[at].value is None or not words[at].value:
        return None
    word, value = words[at], words[at].value or 0.0
    if word.text:
        return (at + 1, _exact(value, _MULTIPLES[word.text])) if word.text in _MULTIPLES else None
    following = words[at + 1].text if at + 1 < len(words) and not words[at + 1].is_number else ""
    if following in _WORDS:
        return at + 2, _exact(value, _WORDS[following])
    return None if following in _UNITS and not word.money else (at + 1, value)


def _exact(value: float, multiple: float) -> float:
    """Returns the product without the dust of binary fractions: 1.1k is 1100."""
    return float(f"{value * multiple:.12g}")


def plain(value: float) -> float:
    """Returns a whole number as an int, so that configs have 65000 instead of 65000.0."""
    return int(value) if value == int(value) else value
