"""The previous close of an instrument, and the moment that the change of a day is measured from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import Phase, Session, eastern, phase, session_on
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


@dataclass(frozen=True, slots=True)
class RegularClose:
    """The last close of a stock's regular hours, and the close of the session before."""

    price: float
    at: int
    """When the bar of that price ended."""
    before: PreviousClose | None
    """None if the minutes do not have it."""


def regular_close(minutes: Bars, now: float) -> RegularClose | None:
    """Returns the last regular close of a stock outside of regular hours; None during them, and if there is none.

    `minutes` are the newest ones at `now`.
    """
    instrument = minutes.instrument
    if instrument.asset_class is not AssetClass.STOCK or phase(instrument, now) is Phase.REGULAR:
        return None
    for day in reversed(days_at(instrument, int(minutes.time[-1])) or ()):
        inside = minutes.between(day.begin, day.end)
        if len(inside) and day.end <= now:
            at = int(inside.time[-1]) + MINUTE
            return RegularClose(float(inside.close[-1]), at, previous_close(minutes.between(0, day.end)))
    return None


def compared_from(instrument: Instrument, end: float, now: float) -> float:
    """Returns the moment whose price the current one is compared with: 24 hours before `now`.

    The price of a stock whose market is closed, or has not traded in these hours, is compared with the close of the session
    before that of its newest bar, which ended at `end`. If the market was closed 24 hours ago, as on a weekend, the price is
    compared with the last regular close before.
    """
    then = now - _DAY
    if instrument.asset_class is not AssetClass.STOCK:
        return then
    if phase(instrument, now) is Phase.CLOSED or end <= then:
        newest = _last_session(end - 1, lambda each: each.premarket)
        before = newest and _last_session(newest.premarket - 1, lambda each: each.close)
    elif phase(instrument, then) is Phase.CLOSED:
        before = _last_session(then, lambda each: each.close)
    else:
        return then
    return before.close if before else then


def _last_session(moment: float, of: Callable[[Session], float]) -> Session | None:
    """Returns the last session whose time `of` is not after a moment; None if there is none for long before it."""
    day = eastern(moment).date()
    earlier = (session_on(day - timedelta(days)) for days in range(_LONGEST_BREAK))
    return next((each for each in earlier if each and of(each) <= moment), None)
