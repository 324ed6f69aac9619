"""Detections: a recogniser proposes spans of words with a meaning, the longest spans win, and negated ones are left out.

Negations are "without volume", "no RSI or MACD" and "not Ethereum".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from openbell.charts.language.words import Word

M = TypeVar("M")
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


@dataclass(frozen=True, slots=True)
class Detection(Generic[M]):
    """Words of a sentence with their meaning."""

    start: int
    """The index of the first word."""
    end: int
    """The index after the last word."""
    meaning: M
    rank: int = 0
    """Of equally long detections the one with the lower rank wins."""
    bonus: float = 0.0
    """Added to the length, for forms that cannot mean anything else."""
    holes: frozenset[int] = frozenset()
    """Words between the first and the last that do not belong to it."""

    @property
    def length(self) -> float:
        """What decides between overlapping detections."""
        return self.end - self.start - len(self.holes) + self.bonus

    @property
    def places(self) -> frozenset[int]:
        """The indices of its words."""
        return frozenset(range(self.start, self.end)) - self.holes

    def overlaps(self, other: Detection[Any]) -> bool:
        """Returns True if both have a word in common."""
        if self.start >= other.end or other.start >= self.end:
            return False
        return not (self.holes or other.holes) or bool(self.places & other.places)


def longest(detections: Iterable[Detection[M]]) -> list[Detection[M]]:
    """Returns detections without overlaps, in the order of the sentence: the longest win, then the lower rank."""
    taken: list[Detection[M]] = []
    for each in sorted(detections, key=lambda found: (-found.length, found.rank, found.start)):
        if not any(each.overlaps(other) for other in taken):
            taken.append(each)
    return sorted(taken, key=lambda found: found.start)


class Phrases(Generic[M]):
    """A table of phrases, found at a word of a sentence. The plural of a word is the word itself."""

    def __init__(self, entries: Iterable[tuple[Sequence[str], M]]) -> None:
        """Each entry is a phrase as words, and its meaning."""
        self._first: dict[str, list[tuple[tuple[str, ...], M]]] = {}
        for phrase, meaning in entries:
            words = tuple(phrase)
            if words:
                self._first.setdefault(words[0], []).append((words, meaning))
        for found in self._first.values():
            found.sort(key=lambda entry: -len(entry[0]))

    def at(self, words: Sequence[Word], at: int) -> tuple[int, M] | None:
        """Returns the index after the longest phrase that begins at a word, and its meaning."""
        text = text_of(words[at])
        candidates = list(self._first.get(text, ()))
        if len(text) > 3 and text.endswith("s"):
            candidates += self._first.get(text[:-1], ())
        best: tuple[int, M] | None = None
        for phrase, meaning in candidates:
            end = at + len(phrase)
            is_longer = end <= len(words) and (best is None or end > best[0])
            if is_longer and all(_same(text_of(words[at + n]), each) for n, each in enumerate(phrase)):
                best = end, meaning
        return best

    @property
    def vocabulary(self) -> frozenset[str]:
        """Every word of every phrase."""
        return frozenset(word for found in self._first.values() for phrase, _ in found for word in phrase)


def text_of(word: Word) -> str:
    """Returns a word as phrases have it: a number with its suffix."""
    if word.value is None:
        return word.text
    number = f"{word.value:g}" if word.value != int(word.value) else str(int(word.value))
    return number + word.text


def _same(text: str, wanted: str) -> bool:
    return text == wanted or (len(text) > 3 and text.endswith("s") and text[:-1] == wanted)


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
