"""Recognises studies with their parameters: "50 and 200 day moving averages", "MACD 8/17/9", "Bollinger 20, 2.5".

Numbers are before the name of a study ("9, 21 and 50 day EMA") or after it ("MACD 8/17/9", "RSI (21)").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from openbell.charts.language.spans import Detection
from openbell.charts.language.study_words import GENERIC, LENGTHS, input_named, is_average, study_phrases
from openbell.charts.language.words import Word
from openbell.charts.studies.catalogue import find
from openbell.charts.studies.study import LONGEST, SOURCES, Study
from openbell.indicators.spec import Setting
from openbell.market.errors import InvalidParameter

_LISTS = frozenset({",", "and", "&", "/", "+", "-"})
_RANGE_WORDS = frozenset({"last", "past", "previous", "for", "over", "recent", "trailing", "since"})
_FILLERS = frozenset(
    {"(", "[", ",", "/", "-", "and", "&", "of", "with", "a", "an", "set", "to", "=", ":", "the", "using", "at"}
)
_BARS = frozenset("candle candles candlestick candlesticks chart charts minute minutes min mins hour hours hr".split())
_MOST = 12


@dataclass(frozen=True, slots=True)
class StudyFound:
    """One study, or several of a kind: each with the inputs that the sentence sets."""

    study: Study
    inputs: tuple[dict[str, Setting], ...]
    refused: tuple[str, ...] = field(default=(), compare=False)
    """Why numbers could not be used."""
    weekly: bool = False
    """True if its length is in weeks."""

    def with_input(self, word: str, value: float) -> StudyFound | None:
        """Returns the study with an input that a later word names; None if it has no such input."""
        if (known := input_named(self.study, word)) is None:
            return None
        try:
            checked = known.check(value)
        except InvalidParameter:
            return None
        return StudyFound(
            self.study, tuple({**each, known.name: checked} for each in self.inputs), self.refused, self.weekly
        )


@dataclass(frozen=True, slots=True)
class LooseInput:
    """An input that is named apart from its study: `Supertrend on BTC with multiplier 4`."""

    word: str
    value: float


@dataclass(frozen=True, slots=True)
class EveryStudy:
    """`indicators`, `studies`: what `no indicators` removes."""


@dataclass(frozen=True, slots=True)
class ComparisonClause:
    """`relative strength of A against B`, which is not the RSI."""


StudyMeaning = StudyFound | LooseInput | EveryStudy | ComparisonClause


def studies_in(words: Sequence[Word], taken: frozenset[int]) -> Iterator[Detection[StudyMeaning]]:
    """Yields studies. `taken` are the words of instruments: their numbers are no parameters."""
    names = [entry for entry in _names(words) if not taken & set(range(entry[0], entry[1]))]
    starts = {start for start, _, _ in names}
    for start, end, study in names:
        begin, before = numbers_before(words, start, taken, several=len(study.inputs) > 0)
        if _is_count(words, begin, start, end):
            begin, before = start, []
        finish, named, after = numbers_after(words, end, study, starts, taken, has_before=bool(before))
        weekly = any(word.text in {"week", "weeks"} for word in words[begin:start])
        found = _found(study, before or after, named, weekly=weekly and is_average(study))
        taken |= set(range(end, finish))
        yield Detection(begin, finish, found)
    yield from _loose(words)
    for at, word in enumerate(words):
        if word.text in {"indicator", "indicators", "studies", "overlays"} and not word.is_number:
            yield Detection(at, at + 1, EveryStudy())
        if _is_comparison(words, at):
            yield Detection(at, at + 3, ComparisonClause())


def _names(words: Sequence[Word]) -> list[tuple[int, int, Study]]:
    """Returns the names of studies without overlaps, the longest first."""
    table = study_phrases()
    found = []
    for at in range(len(words)):
        if (match := table.at(words, at)) is not None and not (match[0] == at + 1 and words[at].text in GENERIC):
            found.append((at, *match))
        elif _is_plain_average(words, at):
            found.append((at, at + 1, find("MA")))
    kept: list[tuple[int, int, Study]] = []
    for entry in sorted(found, key=lambda each: (each[0] - each[1], each[0])):
        if all(entry[1] <= other[0] or other[1] <= entry[0] for other in kept):
            kept.append(entry)
    return sorted(kept, key=lambda each: each[0])


def _is_count(words: Sequence[Word], begin: int, start: int, end: int) -> bool:
    """Returns True for `two moving averages`: a small number in words before a plural counts studies."""
    number = words[begin]
    in_words = number.is_plain and number.end - number.start > 2 and (number.value or 0) < 10
    return begin == start - 1 and in_words and words[end - 1].text.endswith("s")


def _is_plain_average(words: Sequence[Word], at: int) -> bool:
    """Returns True for `average` after a length: `50 day average`."""
    if words[at].text not in {"average", "averages"} or at < 2:
        return False
    return words[at - 1].text in {"day", "days", "week", "period", "bar"} and words[at - 2].is_plain


def _is_comparison(words: Sequence[Word], at: int) -> bool:
    if [word.text for word in words[at : at + 3]] != ["relative", "strength", "of"]:
        return False
    return any(word.text in {"against", "vs", "versus", "compared", "relative"} for word in words[at + 3 :])


def _loose(words: Sequence[Word]) -> Iterator[Detection[StudyMeaning]]:
    """Yields `multiplier 4`, `2.5 standard deviations`."""
    for at, word in enumerate(words):
        if word.text in {"multiplier", "length", "period"} and not word.is_number:
            place = at + 1
            while place < len(words) and words[place].text in {"of", "=", ":"} and not words[place].is_number:
                place += 1
            if place < len(words) and words[place].is_plain:
                yield Detection(at, place + 1, LooseInput(word.text, words[place].value or 0.0))
        elif word.is_plain and [each.text.removesuffix("s") for each in words[at + 1 : at + 3]] == [
            "standard",
            "deviation",
        ]:
            yield Detection(at, at + 3, LooseInput("deviations", word.value or 0.0))


def _found(study: Study, numbers: Sequence[float], named: dict[str, float | str], *, weekly: bool) -> StudyFound:
    refused: list[str] = []
    main = [each for each in study.inputs if not each.extra]
    lengths = [each.name for each in main if each.name == "length"] or [each.name for each in main[:1]]
    if len(main) == 1 and numbers:
        sets: list[dict[str, float]] = [{main[0].name: value} for value in numbers]
    elif len(numbers) == 1 and lengths:
        sets = [{lengths[0]: numbers[0]}]
    else:
        sets = [dict(zip((each.name for each in main), numbers, strict=False))]
    if len(numbers) > len(main) and len(main) != 1:
        shown = ", ".join(f"{value:g}" for value in numbers[len(main) :])
        refused.append(f"{study.title} has no input for {shown}")
    checked = tuple([_checked(study, {**given, **named}, refused) for given in sets])
    return StudyFound(study, checked, tuple(refused), weekly)


def _checked(study: Study, given: dict[str, float | str], refused: list[str]) -> dict[str, Setting]:
    known = {each.name: each for each in study.inputs}
    found: dict[str, Setting] = {}
    for name, value in given.items():
        try:
            found[name] = known[name].check(value)
        except InvalidParameter:
            shown = f"{value:g}" if isinstance(value, float) else value
            low, high = known[name].low, known[name].high
            whole = "a whole number from " if isinstance(known[name].default, int) else ""
            refused.append(
                f"{study.title}: {name} {shown} is not used, it must be {whole}{low:g} to {high:g}; "
                f"it is {known[name].default}"
            )
    return found


def numbers_before(
    words: Sequence[Word], start: int, taken: frozenset[int], *, several: bool
) -> tuple[int, list[float]]:
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


def numbers_after(
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
