"""Trading hours of US stocks and forex: holidays, half days, extended hours, daylight saving. Crypto never closes.

Premarket is 04:00–09:30, regular 09:30–16:00, afterhours to 20:00 Eastern; on half days regular ends at 13:00 and
afterhours at 17:00. `open` means regular. This module does not import numpy, to keep the market status fast.

Holidays are from 1971 on, and half days from 2000 on: older history has daily bars only. They are written out because a
calendar package costs every server 160 ms and 12 MB for ten dates a year; the tests compare every day with two such packages
(docs/decisions/0003-calendar.md).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from openbell.market.instruments import AssetClass, Instrument

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


EASTERN = ZoneInfo("America/New_York")

PREMARKET, OPEN, CLOSE, END = 4 * 3600, 9 * 3600 + 1800, 16 * 3600, 20 * 3600
"""Seconds after midnight in New York."""
HALF_CLOSE, HALF_END = 13 * 3600, 17 * 3600
EXTENDED, REGULAR = "extended", "regular"
SESSIONS = (EXTENDED, REGULAR)
"""The hours that bars can be asked for: all of them, or a stock's regular hours only."""
_EPOCH = date(1970, 1, 1).toordinal()


class Phase(StrEnum):
    """The phase of a market's day."""

    PREMARKET = "premarket"
    REGULAR = "regular"
    AFTERHOURS = "afterhours"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class StockSession:
    """One trading day of US stocks; times in epoch seconds. `premarket` and `open` are starts, `close` and `end` ends."""

    day: date
    premarket: int
    open: int
    close: int
    end: int

    def phase(self, epoch: float) -> Phase:
        """Returns the phase at `epoch`; `CLOSED` outside this session's hours."""
        if not self.premarket <= epoch < self.end:
            return Phase.CLOSED
        if epoch < self.open:
            return Phase.PREMARKET
        return Phase.REGULAR if epoch < self.close else Phase.AFTERHOURS


def trading_days(year: int) -> list[date]:
    """Returns the days of a year on which stocks trade."""
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return []
    closed = closed_days(year)
    first = date(year, 1, 1)
    days = (first + timedelta(n) for n in range((date(year + 1, 1, 1) - first).days))
    return [day for day in days if day.weekday() < 5 and day not in closed]


def midnight(day: date) -> int:
    """Returns the start of a trading day in New York, in epoch seconds: clocks never change on a weekday."""
    offset = datetime(day.year, day.month, day.day, 12, tzinfo=EASTERN).utcoffset() or timedelta()
    return (day.toordinal() - _EPOCH) * 86400 - 86400 * offset.days - offset.seconds


@lru_cache(maxsize=64)
def sessions_of(year: int) -> tuple[StockSession, ...]:
    """Returns all sessions of a year, oldest first."""
    half = half_days(year)
    return tuple(_session(day, day in half) for day in trading_days(year))


def _session(day: date, half: bool) -> StockSession:
    start = midnight(day)
    close, end = (HALF_CLOSE, HALF_END) if half else (CLOSE, END)
    return StockSession(day, start + PREMARKET, start + OPEN, start + close, start + end)


@lru_cache(maxsize=64)
def _opens(year: int) -> tuple[int, ...]:
    return tuple(session.open for session in sessions_of(year))


@lru_cache(maxsize=64)
def _by_day(year: int) -> dict[date, StockSession]:
    return {session.day: session for session in sessions_of(year)}


def eastern(epoch: float) -> datetime:
    """Returns the time in New York."""
    return datetime.fromtimestamp(epoch, UTC).astimezone(EASTERN)


def session_on(day: date) -> StockSession | None:
    """Returns the session of that Eastern date; None if stocks do not trade."""
    return _by_day(day.year).get(day)


def stock_phase(epoch: float) -> Phase:
    """Returns the phase of the US stock market."""
    session = session_on(eastern(epoch).date())
    return session.phase(epoch) if session else Phase.CLOSED


def next_open(epoch: float) -> StockSession | None:
    """Returns the first session whose regular hours begin after `epoch`."""
    year = eastern(epoch).year
    for candidate in (year, year + 1):
        opens = _opens(candidate)
        at = bisect_right(opens, epoch)
        if at < len(opens):
            return sessions_of(candidate)[at]
    return None


def forex_open(epoch: float) -> bool:
    """Returns True from Sunday 17:00 to Friday 17:00 Eastern."""
    moment = eastern(epoch)
    day, hour = moment.weekday(), moment.hour
    return day < 4 or (day == 4 and hour < 17) or (day == 6 and hour >= 17)


def phase(instrument: Instrument, epoch: float) -> Phase:
    """Returns the phase of the market that trades this instrument."""
    if instrument.asset_class is AssetClass.STOCK:
        return stock_phase(epoch)
    if instrument.asset_class is AssetClass.FOREX:
        return Phase.REGULAR if forex_open(epoch) else Phase.CLOSED
    return Phase.REGULAR
