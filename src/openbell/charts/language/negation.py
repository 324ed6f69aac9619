"""Finds what a sentence does not want: "without volume", "no RSI or MACD", "not Ethereum"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openbell.charts.language.spans import Detection
from openbell.charts.language.words import Word

NEGATIONS = frozenset(
    "without no not hide remove exclude excluding except skip omit dont don neither never nor doesnt sans drop minus".split()
)
_PHRASES = [text.split() for text in ("instead of", "rather than", "leave out", "w / o", "get rid of", "turn off")]
_LONGEST_PHRASE = max(map(len, _PHRASES))
_BETWEEN = frozenset(
    "the a any show include add use want need display of t me those all off draw plot please have its default usual to see "
    "with".split()
)
_JOINS = frozenset({",", "or", "nor", "and", "&"})
Found = Detection[Any]


def negated(words: Sequence[Word], found: Sequence[Found]) -> list[Found]:
    """Returns the detections that the sentence does not want: what follows a negation, or the whole list that does."""
    starts = {each.start: each for each in found}
    unwanted: list[Found] = []
    for after in _negations(words):
        at = after
        while at < len(words) and at not in starts and not words[at].is_number and words[at].text in _BETWEEN:
            at += 1
        if at in starts:
            unwanted += [each for each in _listed(words, starts, starts[at]) if each not in unwanted]
    return unwanted


def _negations(words: Sequence[Word]) -> list[int]:
    """Returns the index after each negation."""
    found = []
    for at, word in enumerate(words):
        if not word.is_number and word.text in NEGATIONS:
            found.append(at + 1)
        texts = [each.text for each in words[at : at + _LONGEST_PHRASE]]
        found += [at + len(phrase) for phrase in _PHRASES if texts[: len(phrase)] == phrase]
    return found


def _listed(words: Sequence[Word], starts: dict[int, Found], first: Found) -> list[Found]:
    """Returns the list that begins with a detection. A comma without a later `or`, `nor` or `and` ends it."""
    chain, joins = [first], list[str]()
    while True:
        at, between = chain[-1].end, list[str]()
        while at < len(words) and at not in starts and not words[at].is_number:
            if words[at].text not in _JOINS and words[at].text not in {"the", "a", "any"}:
                break
            between.append(words[at].text)
            at += 1
        following = starts.get(at)
        if following is None or not set(between) & _JOINS or type(following.meaning) is not type(first.meaning):
            break
        chain.append(following)
        joins.append("and" if set(between) & {"or", "nor", "and", "&"} else ",")
    while joins and joins[-1] == ",":
        joins.pop()
        chain.pop()
    return chain
