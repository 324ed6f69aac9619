"""Names as people write them: `Keltner Channels`, `keltner_channels` and `KeltnerChannels` are one name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping

from openbell.market.nearest import did_you_mean

_ALMOST_EQUAL = 0.8
_COMMON = 3
"""A word in the names of more indicators than this, such as `average` or `channel`, distinguishes none."""


def plain(name: str) -> str:
    """The letters and digits of a name in lower case, by which names are compared."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def words(name: str) -> frozenset[str]:
    """The words of a name in lower case and in the singular."""
    return frozenset(word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", name.lower()))


def suggestion(name: str, known: Mapping[str, Collection[str]]) -> str:
    """Returns "; did you mean 'rsi'?", or "" if no name is near. `known` has the other names of each name.

    A misspelt name comes first, then a name that shares a rare word. Similar letters count only for names of one word:
    the words of a longer one would match any name that ends alike.
    """
    every = [each for key, others in known.items() for each in (key, *others)]
    asked = name[:80].strip().lower()
    found = did_you_mean(asked.replace(" ", "_"), every, _ALMOST_EQUAL)
    return found or _by_words(asked, known) or (did_you_mean(asked, every) if len(words(asked)) == 1 else "")


def _by_words(name: str, known: Mapping[str, Collection[str]]) -> str:
    of_each = {key: frozenset[str]().union(*map(words, (key, *others))) for key, others in known.items()}
    count = Counter(word for each in of_each.values() for word in each)
    asked = {word for word in words(name) if len(word) > 1 and count[word] <= _COMMON}
    near = max(of_each, key=lambda key: len(asked & of_each[key]))
    return f"; did you mean {near!r}?" if asked & of_each[near] else ""
