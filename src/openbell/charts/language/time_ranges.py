"""Recognises the range of a chart: "last 7 days", "since Monday", "between 3 and 17 March", "year to date"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from openbell.charts.language.dates import MONTHS, WEEKDAYS, DateSpan, days_at, year_at
from openbell.charts.language.instruments.named import words as listed
from openbell.charts.language.spans import Detection, Phrases
from openbell.charts.language.words import HOUR, MINUTE, MONTH, UNITS, YEAR, Word, counted_at, length_text


@dataclass(frozen=True, slots=True)
class RangeFound:
    """A range in its written form."""

    range: str


@dataclass(frozen=True, slots=True)
class UnclearRange:
    """Words about a range that give none."""

    reason: str


TimeMeaning = RangeFound | UnclearRange
_LAST = frozenset({"last", "past", "previous", "prior", "recent", "latest", "trailing", "preceding"})
_PHRASES = {
    "1D": "today, the day",
    "WTD": "this week, week to date, wtd, week so far, current week, since the start of the week",
    "MTD": "this month, month to date, mtd, month so far, current month, since the start of the month",
    "YTD": (
        "this year, year to date, ytd, year so far, current year, since the start of the year, "
        "since the beginning of the year, since new year"
    ),
    "DTD": "since midnight, day to date, dtd, today so far, day so far",
    "ALL": (
        "all time, all data, all history, entire history, full history, whole history, max range, maximum range, "
        "max history, all available data, all available history, since inception, since the beginning, complete history, "
        "full range, entire range, since ipo, from the beginning, all the data, all of its history, "
        "as far back as possible, max, maximum, whole range, all of the data"
    ),
    "14D": "fortnight, a fortnight",
    "6M": "half year, half a year",
    "3M": "quarter, a quarter",
    "10Y": "decade, a decade",
}
_TABLE = Phrases((text.split(), RangeFound(name)) for name, texts in _PHRASES.items() for text in listed(texts))
_FIRST_BARE = 1990
"""Earlier numbers of four digits are no years unless a word says so."""
_SOME = {"couple": 2, "few": 3, "several": 3}
_TO = frozenset({"and", "to", "until", "till", "through", "thru", "-"})
_IN = frozenset({"in", "during", "for", "on", "throughout", "of", "over", "from"})


def ranges_in(words: Sequence[Word], today: date) -> Iterator[Detection[TimeMeaning]]:
    """Yields ranges, and what looks like one."""
    for at, word in enumerate(words):
        yield from _until(words, at, today)
        yield from _this_quarter(words, at, today)
        yield from _and_a_half(words, at)
        yield from _no_date(words, at, today)
        if [each.text for each in words[at : at + 1]] == ["tomorrow"] or _is_next(words, at):
            yield Detection(at, at + 1 + _is_next(words, at), UnclearRange("is in the future"), bonus=0.5)
        yield from _bare_year(words, at, today)
        if (found := _TABLE.at(words, at)) is not None:
            yield Detection(at, *found)
        yield from _since(words, at, today)
        yield from _between(words, at, today)
        yield from _in_days(words, at, today)
        yield from _lasting(words, at)
        yield from _one(words, at)
        if word.is_number:
            yield from _counted(words, at)


def _counted(words: Sequence[Word], at: int) -> Iterator[Detection[TimeMeaning]]:
    """Yields `90 days`, `5 year`, `6M`, `24h`; after the word range any code."""
    if (found := counted_at(words, at)) is None:
        return
    after, count, unit, is_code = found
    told = at > 0 and words[at - 1].text == "range"
    is_day = (count, unit) == (24, HOUR)
    if told or is_day or unit not in {MINUTE, HOUR}:
        if not told and is_code and words[at].text == "m" and not words[at].caps:
            return
        end = after + 1 if after < len(words) and words[after].text in {"chart", "charts", "graph", "range"} else after
        yield Detection(at - told, end, RangeFound(length_text(count, unit)), rank=0 if told else 2, bonus=0.6 * told)


def _one(words: Sequence[Word], at: int) -> Iterator[Detection[TimeMeaning]]:
    """Yields `a week of`, `one month`."""
    if words[at].text not in {"a", "an"} or at + 1 >= len(words) or words[at + 1].is_number:
        return
    unit = UNITS.get(words[at + 1].text)
    if unit is not None and len(words[at + 1].text) > 2 and not words[at + 1].text.endswith("s"):
        after = words[at + 2].text if at + 2 < len(words) else ""
        if unit not in {MINUTE, HOUR} and after not in {"candle", "candles", "chart", "bars"}:
            yield Detection(at, at + 2, RangeFound(length_text(1, unit)))


def _lasting(words: Sequence[Word], at: int) -> Iterator[Detection[TimeMeaning]]:
    """Yields `last 7 days`, `past week`, `last couple of months`."""
    if words[at].text not in _LAST or words[at].is_number:
        return
    place = at + 1
    if place < len(words) and words[place].text in {"full", "whole", "entire", "complete"}:
        place += 1
    count = 1
    if place < len(words) and words[place].text in _SOME and not words[place].is_number:
        count = _SOME[words[place].text]
        place += 2 if place + 1 < len(words) and words[place + 1].text == "of" else 1
    if place >= len(words):
        return
    if words[place].is_number:
        if (found := counted_at(words, place)) is not None:
            after, count, unit, _ = found
            yield Detection(at, after, RangeFound(length_text(count, unit)), bonus=0.7)
        elif (unit_after := _trading_unit(words, place)) is not None:
            days = length_text(int(words[place].value or 1), unit_after)
            yield Detection(at, place + 3, RangeFound(days), bonus=0.7)
        return
    if (unit_word := words[place].text) in UNITS and len(unit_word) > 1:
        yield Detection(at, place + 1, RangeFound(length_text(count, UNITS[unit_word])), bonus=0.7)
    elif (named := _TABLE.at(words, place)) is not None:
        yield Detection(at, *named, bonus=0.7)


def _trading_unit(words: Sequence[Word], at: int) -> str | None:
    """Returns the unit of `5 trading days`."""
    if not words[at].is_plain or at + 2 >= len(words) or words[at + 1].text != "trading":
        return None
    return UNITS.get(words[at + 2].text)


def _since(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[TimeMeaning]]:
    """Yields `since Monday`, `since 2024`: from its first day to today."""
    if words[at].text not in {"since", "after", "starting"} or words[at].is_number:
        return
    place = at + 1
    while place < len(words) and words[place].text in {"the", "from", "early", "start", "beginning", "of", "on"}:
        place += 1
    if place < len(words) and (found := days_at(words, place, today)) is not None:
        after, days = found
        if days.first <= today:
            yield Detection(at, after, RangeFound(f"{days.first}/{today}"), bonus=0.5)


def _until(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[TimeMeaning]]:
    """Yields `until June 2025`, `before 2020`, which have no start."""
    if words[at].text not in {"until", "till", "before"} or words[at].is_number or at + 1 >= len(words):
        return
    if (found := days_at(words, _skip_the(words, at + 1), today)) is not None:
        yield Detection(at, found[0], UnclearRange("has no start"), bonus=0.5)


def _is_next(words: Sequence[Word], at: int) -> bool:
    return words[at].text == "next" and at + 1 < len(words) and words[at + 1].text in UNITS


def _and_a_half(words: Sequence[Word], at: int) -> Iterator[Detection[TimeMeaning]]:
    """Yields `one and a half years` and `1.5 years`; of other units a warning."""
    word = words[at]
    if word.value is None or word.money or word.value > 100:
        return
    place, half = at + 1, word.value != int(word.value)
    if [each.text for each in words[place : place + 3]] == ["and", "a", "half"]:
        place, half = place + 3, True
    unit = UNITS.get(words[place].text) if half and place < len(words) and not words[place].is_number else None
    if unit is None or len(words[place].text) < 2:
        return
    months = (int(word.value) + 0.5) * 12 if word.value == int(word.value) else word.value * 12
    start = at - 1 if at and words[at - 1].text in _LAST else at
    if unit == YEAR and months == int(months):
        yield Detection(start, place + 1, RangeFound(length_text(int(months), MONTH)), bonus=1.0)
    else:
        yield Detection(start, place + 1, UnclearRange("is no whole number of units"), bonus=1.0)


def _no_date(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[TimeMeaning]]:
    """Yields `31 April`, which is no date."""
    word = words[at]
    if word.value is None or not 29 <= word.value <= 31 or at + 1 >= len(words) or words[at + 1].text not in MONTHS:
        return
    if days_at(words, at, today) is None:
        after, _ = year_at(words, at + 2)
        start = at - 1 if at and words[at - 1].text in _IN else at
        yield Detection(start, after, UnclearRange("is no date"), bonus=1.0)


def _this_quarter(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[TimeMeaning]]:
    if [word.text for word in words[at : at + 2]] in (["this", "quarter"], ["current", "quarter"]):
        start = today.replace(month=(today.month - 1) // 3 * 3 + 1, day=1)
        yield Detection(at, at + 2, RangeFound(f"{start}/{today}"), bonus=0.5)


def _bare_year(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[TimeMeaning]]:
    """Yields `AAPL 2024`. Any other meaning of the number wins."""
    word = words[at]
    if (
        word.is_plain
        and not word.money
        and word.end - word.start == 4
        and _FIRST_BARE <= (word.value or 0) <= today.year
    ):
        year = int(word.value or 0)
        if at == 0 or words[at - 1].text not in {"at", "@", "to", "from", "and", "$", ",", "/"}:
            last = min(date(year, 12, 31), today)
            yield Detection(at, at + 1, RangeFound(f"{year}-01-01/{last}"), rank=9, bonus=-0.5)


def _between(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[TimeMeaning]]:
    """Yields `between 3 and 17 March`, `from 1 May to 5 June 2024`, `March 3 to March 17`."""
    opener = words[at].text in {"between", "from", "in", "during"} and not words[at].is_number
    place = at + 1 if opener else at
    if place >= len(words):
        return
    for first_end, first in _firsts(words, place, today):
        if first_end + 1 >= len(words) or words[first_end].text not in _TO:
            continue
        of_years = opener and isinstance(first, DateSpan) and (first.last - first.first).days > 360
        if words[first_end].text == "and" and words[at].text != "between" and not of_years:
            continue
        second = _second(words, _skip_the(words, first_end + 1), first, today)
        if second is None:
            continue
        after, last = second
        start = _start(first, last, words, place, first_end)
        if start is None:
            continue
        if start <= min(last.last, today):
            yield Detection(at, after, RangeFound(f"{start}/{min(last.last, today)}"), bonus=1.0)
        else:
            yield Detection(at, after, UnclearRange("does not end after its start, or is in the future"), bonus=1.0)


def _second(words: Sequence[Word], at: int, first: DateSpan | int, today: date) -> tuple[int, DateSpan] | None:
    """Returns the index after the second date, and its days; a day alone has the month of the first date."""
    if at >= len(words):
        return None
    if (found := days_at(words, at, today)) is not None:
        return found
    word = words[at]
    if isinstance(first, int) or first.first != first.last or not word.is_plain or not 1 <= (word.value or 0) <= 31:
        return None
    try:
        day = first.last.replace(day=int(word.value or 0))
    except ValueError:
        return None
    return at + 1, DateSpan(day, day)


def _skip_the(words: Sequence[Word], at: int) -> int:
    return at + 1 if at + 1 < len(words) and words[at].text == "the" else at


def _firsts(words: Sequence[Word], at: int, today: date) -> Iterator[tuple[int, DateSpan | int]]:
    """Yields the first date of two, or its day alone if the second date has the month."""
    at = _skip_the(words, at)
    if (found := days_at(words, at, today)) is not None:
        yield found
    word = words[at]
    if (
        word.value is not None
        and not word.money
        and 1 <= word.value <= 31
        and word.text in {"", "st", "nd", "rd", "th"}
    ):
        yield at + 1, int(word.value)


def _start(first: DateSpan | int, last: DateSpan, words: Sequence[Word], place: int, end: int) -> date | None:
    """Returns the start of two dates. A first date without a year is the latest one before the second."""
    if isinstance(first, int):
        try:
            return last.last.replace(day=first)
        except ValueError:
            return None
    start = first.first
    if any(word.is_plain and word.end - word.start == 4 for word in words[place:end]):
        return start
    if any(word.text in WEEKDAYS for word in words[place:end]):
        return start if start <= last.last else start - timedelta(days=7)
    try:
        start = start.replace(year=last.last.year)
        return start if start <= last.last else start.replace(year=last.last.year - 1)
    except ValueError:  # 29 February
        return None


def _in_days(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[TimeMeaning]]:
    """Yields `in 2024`, `during March`, `for Q1 2024`, `on Friday`, `yesterday`."""
    opener = words[at].text in _IN and not words[at].is_number
    place = _skip_the(words, at + 1) if opener else at
    if place < len(words) and words[place].text in {"all", "whole"}:
        place += 1
    if place >= len(words) or words[place].text in {"today", "now"}:
        return
    if (found := days_at(words, place, today)) is None:
        return
    after, days = found
    if not opener and words[place].is_plain and after == place + 1:
        return  # a number that could be a year
    if days.first <= today:
        yield Detection(at, after, RangeFound(f"{days.first}/{min(days.last, today)}"), rank=2)
