"""The numbers around the name of a study: before it ("9, 21 and 50 day EMA") or after it ("MACD 8/17/9", "RSI (21)")."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.charts.language.study_words import LENGTHS, input_named, is_average
from openbell.charts.language.words import Word
from openbell.charts.studies.study import LONGEST, SOURCES, Study

_LISTS = frozenset({",", "and", "&", "/", "+", "-"})
_RANGE_WORDS = frozenset({"last", "past", "previous", "for", "over", "recent", "trailing", "since"})
_FILLERS = frozenset(
    {"(", "[", ",", "/", "-", "and", "&", "of", "with", "a", "an", "set", "to", "=", ":", "the", "using", "at"}
)
_BARS = frozenset("candle candles candlestick candlesticks chart charts minute minutes min mins hour hours hr".split())
_MOST = 12


def before(words: Sequence[Word], start: int, taken: frozenset[int], *, several: bool) -> tuple[int, list[float]]:
    """Returns the index of the first number before a name, and the numbers.

    With `several`, numbers need no comma between them: `20 50 200 SMA`.
    """
    at, values = start, list[float]()
    while at > 0 and len(values) < _MOST:
        place = at - 1
        if words[place].text in LENGTHS and not words[place].is_number:
            place -= 1
        if place < 0 or place in taken or not is_length(words[place]):
            break
        values.insert(0, words[place].value or 0.0)
        at = place
        joined = place - 1
        while joined >= 0 and words[joined].text in _LISTS and not words[joined].is_number:
            joined -= 1
        if joined < 0 or joined in taken or not _ends_length(words, joined):
            break
        if joined == place - 1 and not (several and words[joined].is_plain and words[place].is_plain):
            break
        at = joined + 1
    opener = at - 1
    while opener >= 0 and words[opener].text in {"the", "a", "its"}:
        opener -= 1
    has_unit = any(word.text in LENGTHS for word in words[at:start] if not word.is_number)
    if (
        values
        and has_unit
        and opener >= 0
        and words[opener].text in _RANGE_WORDS
        and words[start - 1].text.endswith("s")
    ):
        return start, []  # `last 30 days RSI` has a range and a study
    return (at, values) if values else (start, [])


def is_length(word: Word) -> bool:
    """Returns True for 14, and for 14d and 14p; 1D, 2D, 3D and 4h are intervals."""
    if word.value is None or word.money:
        return False
    if word.text in {"d", "day"}:
        return word.value > 3
    return word.text in {"", "p", "period"}


def _ends_length(words: Sequence[Word], at: int) -> bool:
    """Returns True if a number ends here, with its unit or without."""
    return is_length(words[at]) or (
        words[at].text in LENGTHS and not words[at].is_number and at > 0 and is_length(words[at - 1])
    )


def after(
    words: Sequence[Word], end: int, study: Study, starts: set[int], taken: frozenset[int], *, has_before: bool
) -> tuple[int, dict[str, float | str], list[float]]:
    """Returns the index after the parameters that follow a name, those with a word of their own, and the others."""
    named: dict[str, float | str] = {}
    numbers: list[float] = []
    at = last = end
    bracket = at < len(words) and words[at].text in {"(", "["}
    while at < len(words) and len(named) + len(numbers) < _MOST and at not in taken:
        word = words[at]
        if bracket and word.text in {")", "]"} and not word.is_number:
            return at + 1, named, numbers
        if (step := _named_input(words, at, study)) is not None:
            at, name, value = step
            named[name] = value
            last = at
        elif word.value is not None:
            skipped = has_before and not bracket
            if (
                skipped
                or not study.inputs
                or not _belongs(words, at, last, study, starts, len(numbers), bracket=bracket)
            ):
                break
            numbers += word.parts if word.value > LONGEST and word.parts else [word.value]
            at += 1
            if at < len(words) and words[at].text in {"period", "periods", "day", "days", "bars", "bar"}:
                at += 1
            last = at
        elif word.text in _FILLERS:
            at += 1
        else:
            break
    return last, named, numbers


def _named_input(words: Sequence[Word], at: int, study: Study) -> tuple[int, str, float | str] | None:
    """Returns the index after an input with its own word, its name and value: `length 21`, `2.5 std dev`, `source hl2`."""
    word = words[at]
    if word.text in {"source", "on"} and at + 1 < len(words) and words[at + 1].text in SOURCES:
        has_source = any(each.name == "source" for each in study.inputs)
        return (at + 2, "source", words[at + 1].text) if has_source else None
    if word.value is not None:
        return None if word.money else _value_first(words, at, study)
    known = input_named(study, word.text)
    if known is None:
        return None
    place = at + 1
    while place < len(words) and words[place].text in {
        "of",
        "=",
        ":",
        "to",
        "is",
        "dev",
        "length",
        "line",
        "period",
        "factor",
    }:
        place += 1
    if place < len(words) and words[place].is_plain and not words[place].money:
        return place + 1, known.name, words[place].value or 0.0
    return None


def _value_first(words: Sequence[Word], at: int, study: Study) -> tuple[int, str, float] | None:
    """Returns an input whose word follows its number: `2.5 standard deviations`, `20 period`."""
    place = at + 1
    if place < len(words) and words[place].text == "standard":
        place += 1
    if place >= len(words) or words[place].is_number or words[place].text in {"d", "k"}:
        return None
    known = input_named(study, words[place].text)
    if known is None or known.name == "length":
        return None
    end = place + 1
    if words[place].text in {"std", "sd", "stdev"} and end < len(words) and words[end].text in {"dev", "devs"}:
        end += 1
    if end < len(words) and words[end].is_plain and words[place].text not in {"deviation", "deviations"}:
        return None  # `fast 8 slow 17`: the word belongs to the next number
    return end, known.name, words[at].value or 0.0


def _belongs(
    words: Sequence[Word], at: int, last: int, study: Study, starts: set[int], count: int, *, bracket: bool
) -> bool:
    """Returns True if a number after a name is one of the study's, and not the next study's, an interval or a price."""
    word = words[at]
    if (
        word.money
        or word.text not in {"", "d", "p", "%"}
        or (word.text == "d" and word.value is not None and word.value <= 3)
    ):
        return False
    if bracket:
        return True
    following = at + 1
    if following < len(words) and words[following].text in _BARS | {"x", "×", "by"}:
        return False
    if _names_levels(words, at):
        return False  # `RSI with 80/20 levels`
    if following < len(words) and words[following].text in LENGTHS:
        following += 1
        if following < len(words) and words[following].text in _BARS:
            return False
    joined = at > last
    if joined and _leads_to_study(words, following, starts):
        return False  # `RSI 14 and 50 EMA`
    if count == 0 and joined:
        between = {each.text for each in words[last:at]}
        return not between & {",", "and", "&", "at", "to"}
    inputs = [each for each in study.inputs if not each.extra]
    return count == 0 or len(inputs) > count or is_average(study) or len(inputs) == 1


def _leads_to_study(words: Sequence[Word], at: int, starts: set[int]) -> bool:
    """Returns True if numbers from here on lead to the name of a study: `, 50 and 200 EMA`, but not `, 50 and MACD`."""
    joined = False
    while at < len(words):
        is_join = words[at].text in _LISTS and not words[at].is_number
        if not is_join and not is_length(words[at]) and (words[at].text not in LENGTHS or words[at].is_number):
            break
        joined = is_join
        at += 1
    return at in starts and not joined


def _names_levels(words: Sequence[Word], at: int) -> bool:
    """Returns True if a list of numbers is followed by `levels` or `lines`."""
    while at < len(words) and (words[at].is_plain or (words[at].text in _LISTS and not words[at].is_number)):
        at += 1
    return at < len(words) and words[at].text in {"level", "levels", "lines", "overbought", "oversold", "bands"}
