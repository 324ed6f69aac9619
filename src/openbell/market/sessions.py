"""Trading hours of US stocks and forex: holidays, half days, extended hours, daylight saving. Crypto never closes.

Premarket is 04:00–09:30, regular 09:30–16:00, afterhours to 20:00 Eastern; on half days regular ends at 13:00 and
afterhours at 17:00. `open` means regular. This module does not import numpy, to keep the market status fast.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.us_holidays import FIRST_YEAR, LAST_YEAR, closed_days, half_days

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
