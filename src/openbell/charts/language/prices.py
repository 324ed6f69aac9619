"""Prices in sentences: 65k, $65,000, 1.2 million, 0.00012."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.charts.language.words import Word

_MULTIPLES = {"k": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9}
_WORDS = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9, "grand": 1e3}
_UNITS = frozenset(
    "minute minutes min mins hour hours hr day days week weeks month months year years x × pixels px percent % below above "
    "points point pips pip ticks tick".split()
)


def price_at(words: Sequence[Word], at: int) -> tuple[int, float] | None:
    """Returns the index after a price, and the price. Numbers with a unit of time or size are no prices."""
    if at < len(words) and words[at].text in {"$", "€", "£"} and not words[at].is_number:
        at += 1
    if at >= len(words) or (words[at].value or 0.0) <= 0:
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


def doubts(sentence: str, words: Sequence[Word], start: int, end: int) -> str:
    """Returns a warning if prices are written in a way that other countries read otherwise: 65.000, 250,50."""
    for at in range(start, end):
        word = words[at]
        text = sentence[word.start : word.end]
        if word.value is not None and text.endswith(".000") and word.value < 1000:
            return f"{text!r} was read as {word.value:g}: write {word.value * 1000:g} if you mean thousands"
        following = words[at + 1] if at + 1 < len(words) else None
        if word.is_number and following is not None and following.is_number and not following.money:
            return f"{text!r} and {sentence[following.start : following.end]!r} stand side by side: write one number"
        after = sentence[word.end : word.end + 2]
        if word.is_plain and len(after) == 2 and after[0] == "," and after[1].isdigit():
            return f"the comma after {text!r} was read as the end of a number: write decimals with a point"
    return ""
