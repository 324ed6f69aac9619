"""Recognises studies with their parameters: "50 and 200 day moving averages", "MACD 8/17/9", "Bollinger 20, 2.5"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from openbell.charts.language import study_numbers
from openbell.charts.language.spans import Detection
from openbell.charts.language.study_words import GENERIC, input_named, is_average, study_phrases
from openbell.charts.language.words import Word
from openbell.charts.studies.catalogue import find
from openbell.charts.studies.study import Study
from openbell.indicators.spec import Setting
from openbell.market.errors import InvalidParameter


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
class Comparison:
    """`relative strength of A against B`, which is not the RSI."""


StudyMeaning = StudyFound | LooseInput | EveryStudy | Comparison


def studies_in(words: Sequence[Word], taken: frozenset[int]) -> Iterator[Detection[StudyMeaning]]:
    """Yields studies. `taken` are the words of instruments: their numbers are no parameters."""
    names = [entry for entry in _names(words) if not taken & set(range(entry[0], entry[1]))]
    starts = {start for start, _, _ in names}
    for start, end, study in names:
        begin, before = study_numbers.before(words, start, taken, several=len(study.inputs) > 0)
        if _is_count(words, begin, start, end):
            begin, before = start, []
        finish, named, after = study_numbers.after(words, end, study, starts, taken, has_before=bool(before))
        weekly = any(word.text in {"week", "weeks"} for word in words[begin:start])
        found = _found(study, before or after, named, weekly=weekly and is_average(study))
        taken |= set(range(end, finish))
        yield Detection(begin, finish, found)
    yield from _loose(words)
    for at, word in enumerate(words):
        if word.text in {"indicator", "indicators", "studies", "overlays"} and not word.is_number:
            yield Detection(at, at + 1, EveryStudy())
        if _is_comparison(words, at):
            yield Detection(at, at + 3, Comparison())


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
