"""Splits a sentence into words: lower case, without possessives and hyphens, numbers with their values, mistakes corrected.

"fifteen-minute" becomes `15` and `minute`, "65k" a number with the suffix `k`, "$65,000" the number 65000. Positions refer
to the sentence, so that a detection can quote it. In names, one letter may be wrong, missing or too many, or two exchanged.

The words for units of time are here too: ranges, intervals and lengths of studies share them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL = {word: value for value, word in enumerate(_UNITS.split())} | {
    word: 20 + 10 * at for at, word in enumerate(_TENS.split())
}
HUNDREDS = frozenset({"hundred"})
THOUSANDS = {"thousand": 1000, "million": 1_000_000}

_TOKEN = re.compile(
    r"""
    (?P<number>(?:(?<![\w.)])-)?[$€£]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|[$€£]?\.\d+)(?P<suffix>[^\W\d_]+|%)?
    | (?P<word>[^\W\d_]+[^\W_]*(?:['’][^\W\d_]+)?)
    | (?P<sign>[^\s\w]|_)
    """,
    re.VERBOSE,
)
_POSSESSIVE = re.compile(r"['’]s$|['’]")
_JOINED = re.compile(r"([a-z]{2,})(\d{1,4})")
_LARGEST = 1e15
_SHORTEST = 5
"""Letters. Shorter words have too many neighbours to be certain."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word, number or sign of a sentence."""

    text: str
    """In lower case; of a number, its suffix (`15m`: `m`)."""
    start: int
    end: int
    value: float | None = None
    """Of a number."""
    caps: bool = False
    """True if the word is written in capitals."""
    titled: bool = False
    """True if the word begins with a capital."""
    money: bool = False
    """True if the number has a currency sign."""
    parts: tuple[float, ...] = ()
    """The numbers between the commas of `50,200`, which is a list after the name of a study."""

    @property
    def is_number(self) -> bool:
        """True for numbers, with and without a suffix."""
        return self.value is not None

    @property
    def is_plain(self) -> bool:
        """True for numbers without a suffix."""
        return self.value is not None and not self.text


def words_of(sentence: str) -> list[Word]:
    """Returns the words of a sentence."""
    found: list[Word] = []
    for match in _TOKEN.finditer(sentence):
        if (number := match["number"]) is not None:
            digits = number.replace("$", "").replace("€", "").replace("£", "")
            if not digits.isascii():
                continue
            value = float(digits.replace(",", ""))
            if value > _LARGEST:
                continue
            parts = tuple(float(each) for each in digits.split(",")) if "," in digits and "." not in digits else ()
            suffix = match["suffix"] or ""
            money = number.lstrip("-")[0] in "$€£"
            caps = suffix.isupper()
            found.append(Word(suffix.lower(), match.start(), match.end(), value, caps=caps, money=money, parts=parts))
        elif (word := match["word"]) is not None:
            plain = _POSSESSIVE.sub("", word)
            found.append(Word(plain.lower(), match.start(), match.end(), None, plain.isupper(), plain[:1].isupper()))
        elif match["sign"] not in "-–—_'\"“”‘’`*#":
            found.append(Word(match["sign"], match.start(), match.end()))
        elif match["sign"] in "–—" or (
            found and found[-1].is_number and sentence[match.end() :].lstrip()[:1].isdigit()
        ):
            found.append(Word("-", match.start(), match.end()))
    return _with_number_words(found)


def split_lengths(words: list[Word], names: frozenset[str]) -> list[Word]:
    """Returns the words with rsi14 and sma50 as a name and a number."""
    found: list[Word] = []
    for word in words:
        joined = _JOINED.fullmatch(word.text) if not word.is_number else None
        if joined is not None and joined[1] in names:
            middle = word.start + len(joined[1])
            found.append(replace(word, text=joined[1], end=middle))
            found.append(Word("", middle, word.end, float(joined[2])))
        elif word.is_number and word.text in names and len(word.text) > 1:
            middle = word.end - len(word.text)
            found.append(Word("", word.start, middle, word.value))
            found.append(Word(word.text, middle, word.end, None, word.caps))
        else:
            found.append(word)
    return found


def _with_number_words(words: list[Word]) -> list[Word]:
    """Returns the words with "two hundred and fifty" as one number."""
    found: list[Word] = []
    at = 0
    while at < len(words):
        value, after = _number_at(words, at)
        if after > at:
            found.append(Word("", words[at].start, words[after - 1].end, float(value)))
            at = after
        else:
            found.append(words[at])
            at += 1
    return found


def _number_at(words: list[Word], at: int) -> tuple[int, int]:
    """Returns the value of the number words from `at` on, and the index after them; `at` itself if there are none."""
    total = group = 0
    after, last = at, 0
    while after < len(words) and after - at < 8:
        text = words[after].text if not words[after].is_number else ""
        if text in SMALL:
            value = SMALL[text]
            # "twenty five" is one number, "five twenty" is two.
            if after > at and not (last >= 20 and value < 10) and last not in {0, 100, 1000}:
                break
            group, last = group + value, value
        elif text in HUNDREDS and group:
            group, last = group * 100, 100
        elif text in THOUSANDS and group:
            total, group, last = total + group * THOUSANDS[text], 0, 1000
        elif text == "and" and last >= 100 and after + 1 < len(words) and words[after + 1].text in SMALL:
            pass
        else:
            break
        after += 1
    return total + group, after


@cache
def common_words() -> frozenset[str]:
    """The words, in lower case."""
    return frozenset(files("openbell.charts.language").joinpath("common_words.txt").read_text("ascii").split())


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


MINUTE, HOUR, DAY, WEEK, MONTH, YEAR = "MIN", "H", "D", "W", "M", "Y"
UNITS = {
    **dict.fromkeys(("minute", "minutes", "min", "mins"), MINUTE),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), HOUR),
    **dict.fromkeys(("day", "days", "d"), DAY),
    **dict.fromkeys(("week", "weeks", "wk", "wks", "w"), WEEK),
    **dict.fromkeys(("month", "months", "mo", "mos", "mth"), MONTH),
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), YEAR),
}
"""Units by their words. A single `m` is a minute in lower case and a month in capitals: see `unit_of_suffix`."""


def unit_of_suffix(suffix: str, *, caps: bool) -> str | None:
    """Returns the unit of a number's suffix, such as `m` in 15m and `M` in 6M."""
    if suffix == "m":
        return MONTH if caps else MINUTE
    return UNITS.get(suffix)


def length_text(count: int, unit: str) -> str:
    """Returns a length of time as configs write it: 7D, 1M for 30 days, 1D for 24 hours, 1Y for 12 months."""
    if unit == WEEK:
        count, unit = count * 7, DAY
    if unit == MINUTE and count % 60 == 0:
        count, unit = count // 60, HOUR
    if unit == HOUR and count % 24 == 0:
        count, unit = count // 24, DAY
    if unit == DAY and count == 30:
        count, unit = 1, MONTH
    if unit == MONTH and count % 12 == 0:
        count, unit = count // 12, YEAR
    return f"{count}{unit}"


def counted_at(words: Sequence[Word], at: int) -> tuple[int, int, str, bool] | None:
    """Returns the index after a number with a unit (`7 days`, `15m`), the number, the unit, and whether it is a code."""
    word = words[at]
    if word.value is None or word.money or word.value != int(word.value) or not 1 <= word.value <= 99_999:
        return None
    if word.text:
        unit = unit_of_suffix(word.text, caps=word.caps)
        return None if unit is None else (at + 1, int(word.value), unit, True)
    if at + 1 >= len(words) or words[at + 1].is_number:
        return None
    unit = unit_of_suffix(words[at + 1].text, caps=words[at + 1].caps)
    return None if unit is None else (at + 2, int(word.value), unit, False)
