"""The holidays of US stocks from 1971 on, and their half days from 2000 on: older history has daily bars only.

Written out here because a calendar package costs every server 160 ms and 12 MB for ten dates a year; the tests compare every
day with two such packages (docs/decisions/0003-calendar.md).
"""

from __future__ import annotations

from datetime import date, timedelta

FIRST_YEAR, LAST_YEAR = 1971, 2100
"""The first and last year of the calendar; other years have no sessions."""
FIRST_HALF_DAYS = 2000
"""The first year whose half days are known; every session of an earlier year lasts until 16:00."""

_MON, _THU, _FRI, _SAT, _SUN = 0, 3, 4, 5, 6

_SPECIAL_CLOSINGS = frozenset(
    date.fromisoformat(day)
    for day in (
        "1972-11-07",  # presidential election
        "1972-12-28",  # mourning for Harry Truman
        "1973-01-25",  # mourning for Lyndon Johnson
        "1976-11-02",  # presidential election
        "1977-07-14",  # blackout in New York
        "1980-11-04",  # presidential election
        "1985-09-27",  # Hurricane Gloria
        "1994-04-27",  # mourning for Richard Nixon
        "2001-09-11",  # attacks of 11 September
        "2001-09-12",
        "2001-09-13",
        "2001-09-14",
        "2004-06-11",  # mourning for Ronald Reagan
        "2007-01-02",  # mourning for Gerald Ford
        "2012-10-29",  # Hurricane Sandy
        "2012-10-30",
        "2018-12-05",  # mourning for George H. W. Bush
        "2025-01-09",  # mourning for Jimmy Carter
    )
)
_SPECIAL_HALF_DAYS = frozenset(date.fromisoformat(day) for day in ("2002-07-05", "2003-12-26"))


def closed_days(year: int) -> frozenset[date]:
    """Returns the weekdays of a year on which stocks do not trade."""
    fixed = [(7, 4), (12, 25)]
    if year >= 2022:
        fixed.append((6, 19))
    days = {_observed(date(year, month, day)) for month, day in fixed}
    # New Year's Day on a Saturday has no substitute: the Friday before is a trading day of the old year.
    new_year = date(year, 1, 1)
    if new_year.weekday() != _SAT:
        days.add(_observed(new_year))
    if year >= 1998:
        days.add(_nth(year, 1, _MON, 3))  # Martin Luther King
    days |= {
        _nth(year, 2, _MON, 3),  # Washington's birthday
        _easter(year) - timedelta(2),  # Good Friday
        _last(year, 5, _MON),  # Memorial Day
        _nth(year, 9, _MON, 1),  # Labor Day
        _nth(year, 11, _THU, 4),  # Thanksgiving
    }
    return frozenset(days | {day for day in _SPECIAL_CLOSINGS if day.year == year})


def half_days(year: int) -> frozenset[date]:
    """Returns the days of a year on which stocks close at 13:00."""
    if year < FIRST_HALF_DAYS:
        return frozenset()
    days = {_nth(year, 11, _THU, 4) + timedelta(1), date(year, 12, 24), date(year, 7, 3)}
    if year < 2013 and date(year, 7, 4).weekday() == _THU:
        days.discard(date(year, 7, 3))  # in 2002 the half day was Friday, 5 July
    if date(year, 7, 4).weekday() in {_MON, _SAT, _SUN}:
        days.discard(date(year, 7, 3))
    days |= {day for day in _SPECIAL_HALF_DAYS if day.year == year}
    return frozenset(day for day in days - closed_days(year) if day.weekday() <= _FRI)


def _observed(day: date) -> date:
    """Returns the Friday before a Saturday, the Monday after a Sunday, any other day unchanged."""
    return day + timedelta({_SAT: -1, _SUN: 1}.get(day.weekday(), 0))


def _nth(year: int, month: int, weekday: int, n: int) -> date:
    first = date(year, month, 1)
    return first + timedelta((weekday - first.weekday()) % 7 + 7 * (n - 1))


def _last(year: int, month: int, weekday: int) -> date:
    last = _nth(year, month, weekday, 4)
    return last + timedelta(7) if (last + timedelta(7)).month == month else last


def _easter(year: int) -> date:
    """Returns Easter Sunday by the anonymous Gregorian computus."""
    a, b, c = year % 19, year // 100, year % 100
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (32 + 2 * e + 2 * i - h - k) % 7
    n = (a + 11 * h + 22 * m) // 451
    month, day = divmod(h + m - 7 * n + 114, 31)
    return date(year, month, day + 1)
