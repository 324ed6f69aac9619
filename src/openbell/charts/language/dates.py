"""Dates in sentences: "3 March", "March 3rd, 2024", "2024-03-03", "Monday", "March", "2024", "yesterday"."""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from openbell.charts.language.words import Word

_MONTHS = "january february march april may june july august september october november december".split()
MONTHS = {name: at for at, full in enumerate(_MONTHS, 1) for name in {full, full[:3]}} | {"sept": 9}
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
WEEKDAYS = {name: at for at, full in enumerate(_DAYS) for name in {full, full[:3]}} | {"tues": 1, "thurs": 3, "thur": 3}
_BEFORE_MONTHS = frozenset({"from", "in", "since", "between", "during", "until", "till", "to", "of", "through"})
"""Words after which a month need not begin with a capital."""
_ORDERS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
FIRST_YEAR, LAST_YEAR = 1900, 2199


@dataclass(frozen=True, slots=True)
class DateSpan:
    """Consecutive days, both ends included."""

    first: date
    last: date


def days_at(words: Sequence[Word], at: int, today: date) -> tuple[int, DateSpan] | None:
    """Returns the index after a date, and its days; None if no date begins here. A date without a year is the latest one
    that has begun.
    """
    for read in (
        _iso,
        _iso_month,
        _day_month,
        _month_day,
        _month,
        _quarter,
        _half,
        _worded_part,
        _year,
        _weekday,
        _named,
    ):
        if (found := read(words, at, today)) is not None:
            return found
    return None


def _iso(words: Sequence[Word], at: int, _today: date) -> tuple[int, DateSpan] | None:
    """2024-03-03: three numbers with signs between them; 03/17/2024 is not accepted because its order is not certain."""
    parts = words[at : at + 5]
    if len(parts) == 5 and all(parts[n].is_plain for n in (0, 2, 4)) and parts[1].text == parts[3].text in {"-", "/"}:
        year, month, day = (int(parts[n].value or 0) for n in (0, 2, 4))
        if (found := _date(year, month, day)) is not None:
            return at + 5, DateSpan(found, found)
    return None


def _iso_month(words: Sequence[Word], at: int, _today: date) -> tuple[int, DateSpan] | None:
    """2020-03."""
    parts = words[at : at + 3]
    if len(parts) < 3 or parts[1].text != "-" or (year := _year_number(parts[0])) is None or not parts[2].is_plain:
        return None
    month = int(parts[2].value or 0)
    is_month = 1 <= month <= 12 and parts[2].end - parts[2].start == 2
    return (at + 3, month_days(year, month)) if is_month else None


def _day_number(word: Word) -> int | None:
    if word.value is None or word.money or word.value != int(word.value) or not 1 <= word.value <= 31:
        return None
    return int(word.value) if not word.text or word.text in _ORDINALS else None


def _day_month(words: Sequence[Word], at: int, today: date) -> tuple[int, DateSpan] | None:
    """3 March, 3rd of March 2024."""
    if (day := _day_number(words[at])) is None:
        return None
    after = at + 1
    if after < len(words) and words[after].text == "of":
        after += 1
    if after >= len(words) or words[after].text not in MONTHS or words[after].is_number:
        return None
    return _dated(words, after + 1, MONTHS[words[after].text], day, today)


def _month_day(words: Sequence[Word], at: int, today: date) -> tuple[int, DateSpan] | None:
    """March 3, March 3rd, 2024."""
    if words[at].is_number or words[at].text not in MONTHS or at + 1 >= len(words):
        return None
    after = at + 1
    if words[after].text == "the" and after + 1 < len(words):
        after += 1
    if (day := _day_number(words[after])) is None:
        return None
    return _dated(words, after + 1, MONTHS[words[at].text], day, today)


def _dated(words: Sequence[Word], after: int, month: int, day: int, today: date) -> tuple[int, DateSpan] | None:
    after, year = year_at(words, after)
    if year is None:
        year = today.year if (month, day) <= (today.month, today.day) else today.year - 1
        if (month, day) == (2, 29):
            year = next(each for each in range(year, year - 9, -1) if isleap(each))
    found = _date(year, month, day)
    return None if found is None else (after, DateSpan(found, found))


def year_at(words: Sequence[Word], at: int) -> tuple[int, int | None]:
    """Returns the index after a year that may begin here, with or without a comma, and the year or None."""
    place = at + 1 if at + 1 < len(words) and words[at].text == "," else at
    if place < len(words) and (year := _year_number(words[place])) is not None:
        return place + 1, year
    return at, None


def _year_number(word: Word) -> int | None:
    if not word.is_plain or word.money or word.value != int(word.value or 0):
        return None
    year = int(word.value or 0)
    return year if FIRST_YEAR <= year <= LAST_YEAR and word.end - word.start == 4 else None


def _month(words: Sequence[Word], at: int, today: date) -> tuple[int, DateSpan] | None:
    """March, March 2024. A lone `may` or `mar` is no month."""
    word = words[at]
    if word.is_number or word.text not in MONTHS:
        return None
    after, year = year_at(words, at + 1)
    before = words[at - 1].text if at else ""
    told = word.text in _MONTHS and (
        before in _BEFORE_MONTHS or (before == "and" and word.text not in {"may", "march"})
    )
    if year is None and not told and (not word.titled or word.text not in _MONTHS):
        return None
    month = MONTHS[word.text]
    if year is None:
        year = today.year if month <= today.month else today.year - 1
    return after, month_days(year, month)


def month_days(year: int, month: int) -> DateSpan:
    """Returns all days of a month."""
    return DateSpan(date(year, month, 1), date(year, month, monthrange(year, month)[1]))


def _quarter(words: Sequence[Word], at: int, today: date) -> tuple[int, DateSpan] | None:
    """Q1, Q1 2024."""
    text = words[at].text
    if words[at].is_number or len(text) != 2 or text[0] != "q" or text[1] not in "1234":
        return None
    month = 3 * int(text[1]) - 2
    after, year = year_at(words, at + 1)
    if year is None:
        year = today.year if month <= today.month else today.year - 1
    return after, DateSpan(date(year, month, 1), month_days(year, month + 2).last)


def _half(words: Sequence[Word], at: int, _today: date) -> tuple[int, DateSpan] | None:
    """H1 2025. Without a year it is an interval of another program."""
    text = words[at].text
    if words[at].is_number or text not in {"h1", "h2"}:
        return None
    after, year = year_at(words, at + 1)
    return None if year is None else (after, _months(year, 6 * int(text[1]) - 5, 6))


def _worded_part(words: Sequence[Word], at: int, today: date) -> tuple[int, DateSpan] | None:
    """Second quarter of 2024, first half of 2023."""
    word = words[at]
    number = int(word.value or 0) if word.is_number and word.text in _ORDINALS else _ORDERS.get(word.text, 0)
    if not number or at + 1 >= len(words) or words[at + 1].text not in {"quarter", "half"}:
        return None
    months = 3 if words[at + 1].text == "quarter" else 6
    if number > 12 // months:
        return None
    place = at + 2
    if place < len(words) and words[place].text == "of":
        place += 1
    after, year = year_at(words, place)
    first = (number - 1) * months + 1
    if year is None:
        year, after = today.year if first <= today.month else today.year - 1, at + 2
    return after, _months(year, first, months)


def _months(year: int, first: int, count: int) -> DateSpan:
    return DateSpan(date(year, first, 1), month_days(year, first + count - 1).last)


def _year(words: Sequence[Word], at: int, _today: date) -> tuple[int, DateSpan] | None:
    if (year := _year_number(words[at])) is None:
        return None
    return at + 1, DateSpan(date(year, 1, 1), date(year, 12, 31))


def _weekday(words: Sequence[Word], at: int, today: date) -> tuple[int, DateSpan] | None:
    """Monday, last Monday: the latest one that is not today."""
    place = at + 1 if words[at].text == "last" and at + 1 < len(words) else at
    text = words[place].text
    if words[place].is_number or text not in WEEKDAYS or (len(text) == 3 and not words[place].titled):
        return None
    this = place > 0 and words[place - 1].text == "this"
    back = (today.weekday() - WEEKDAYS[text]) % 7 or (0 if this else 7)
    found = today - timedelta(days=back)
    return place + 1, DateSpan(found, found)


def _named(words: Sequence[Word], at: int, today: date) -> tuple[int, DateSpan] | None:
    if words[at].text == "yesterday" and not words[at].is_number:
        day = today - timedelta(days=1)
        return at + 1, DateSpan(day, day)
    if words[at].text in {"today", "now"} and not words[at].is_number:
        return at + 1, DateSpan(today, today)
    return None


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if FIRST_YEAR <= year <= LAST_YEAR else None
    except ValueError:
        return None
