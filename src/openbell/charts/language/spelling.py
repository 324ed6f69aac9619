"""Corrects typing mistakes in names: one letter wrong, missing, too many, or two exchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from openbell.charts.language.common_words import common_words
from openbell.charts.language.words import Word

_SHORTEST = 5
"""Letters. Shorter words have too many neighbours to be certain."""


class Speller:
    """Finds the one known word that differs from another by one mistake."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._known = frozenset(vocabulary)
        self._near: dict[str, set[str]] = {}
        for word in self._known:
            if len(word) >= _SHORTEST - 1 and word.isalpha():
                for form in _shortened(word):
                    self._near.setdefault(form, set()).add(word)

    def correct(self, words: Sequence[Word]) -> tuple[list[Word], list[tuple[str, str]]]:
        """Returns the words with mistakes corrected, and each correction."""
        found, changes = [], []
        for word in words:
            better = self._better(word)
            if better:
                changes.append((word.text, better))
            found.append(replace(word, text=better) if better else word)
        return found, changes

    def _better(self, word: Word) -> str:
        text = word.text
        if word.is_number or not text.isalpha() or not _SHORTEST <= len(text) <= 24 or self._is_known(text):
            return ""
        candidates = {
            known for form in _shortened(text) for known in self._near.get(form, ()) if _one_mistake(text, known)
        }
        return candidates.pop() if len(candidates) == 1 else ""

    def _is_known(self, text: str) -> bool:
        forms = (text, text.removesuffix("s"), text + "s")
        return any(each in self._known or each in common_words() for each in forms)


def _shortened(word: str) -> frozenset[str]:
    """Returns a word, and the word without each of its letters."""
    return frozenset({word, *(word[:at] + word[at + 1 :] for at in range(len(word)))})


def _one_mistake(one: str, other: str) -> bool:
    """Returns True if a letter is wrong, missing or too many, or if two neighbours are exchanged."""
    if abs(len(one) - len(other)) > 1:
        return False
    first = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[first:], other[first:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
