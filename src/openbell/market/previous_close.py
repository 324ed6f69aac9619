"""The previous close of an instrument, and the moment that the change of a day is measured from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import Session, eastern, session_on
from openbell.market.trading_days import trading_days_between

_DAY = 86400
_LONGEST_BREAK = 10
"""Days; the longest that stocks have not traded since 1933 was a week."""


@dataclass(frozen=True, slots=True)
class TradingDay:
    """The hours that a daily bar is made of, in epoch seconds: regular hours, a UTC day, or a currency's day."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class PreviousClose:
    """The last price of a trading day."""

    price: float
    at: int
    """When the bar of that price ended."""


def days_at(instrument: Instrument, moment: int) -> tuple[TradingDay, TradingDay] | None:
    """Returns the trading day before that of a minute, and that of the minute; None if the calendar lacks one of them.

    A minute of extended hours belongs to the day of the session that they surround.
    """
    if instrument.asset_class is AssetClass.CRYPTO:
        begin = moment // _DAY * _DAY
        return TradingDay(begin - _DAY, begin), TradingDay(begin, begin + _DAY)
    days = trading_days_between(instrument, moment - 2 * _LONGEST_BREAK * _DAY, moment)
    row = int(np.searchsorted(days.premarket, moment, side="right")) - 1
    if row < 1:
        return None
    before, now = (TradingDay(int(days.open[each]), int(days.close[each])) for each in (row - 1, row))
    return before, now


def previous_close(minutes: Bars) -> PreviousClose | None:
    """Returns the close of the trading day before that of the newest minute; None if these minutes do not have it."""
    found = days_at(minutes.instrument, int(minutes.time[-1])) if len(minutes) else None
    if found is None:
        return None
    day, _ = found
    last = int(np.searchsorted(minutes.time, day.end)) - 1
    # An earlier minute would be the close of an earlier day.
    if last < 0 or minutes.time[last] < day.begin:
        return None
    return PreviousClose(float(minutes.close[last]), int(minutes.time[last]) + MINUTE)


def compared_from(instrument: Instrument, end: float, now: float) -> float:
    """Returns the moment whose price the newest one, of a bar that ended at `end`, is compared with: 24 hours before `now`.

    The newest price of a stock is compared with the close of the session before its own on a New York date without a
    session (a weekend, a holiday), and whenever the 24 hours hold no trade: the price of 24 hours ago would be the same one.
    """
    if instrument.asset_class is not AssetClass.STOCK:
        return now - _DAY
    if session_on(eastern(now).date()) and end > now - _DAY:
        return now - _DAY
    before = _session_before(end)
    return before.close if before else now - _DAY


def _session_before(end: float) -> Session | None:
    """Returns the session before the one of a bar that ended at `end`; None if that was in no session."""
    day = eastern(end - 1).date()
    if session_on(day) is None:
        return None
    earlier = (session_on(day - timedelta(days)) for days in range(1, _LONGEST_BREAK))
    return next(filter(None, earlier), None)
