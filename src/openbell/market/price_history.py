"""How a price compares with the past: the previous close, the day so far, a year, and changes over a week to a year."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import isfinite

import numpy as np

from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import Phase, StockSession, eastern, phase, session_on
from openbell.market.trading_days import dates_of, trading_days_between

PERIODS = ("1w", "1m", "3m", "6m", "ytd", "1y")
_EVENING = 17
"""The hour in New York at which a currency's day begins."""
_LONGEST_BREAK = timedelta(10)
"""A close that is older than this before the date that was asked for is not the close of that date."""
_DAY = 86400
_DAYS_WITHOUT_SESSION = 10
"""Days; the longest that stocks have not traded since 1933 was a week."""


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The trading day so far; for stocks regular hours only. All are None before its first trade."""

    open: float | None
    high: float | None
    low: float | None


@dataclass(frozen=True, slots=True)
class YearRange:
    """The highest and lowest price of a year, and when; `since` is the first day that was looked at."""

    high: float
    high_date: date
    low: float
    low_date: date
    since: date


@dataclass(frozen=True, slots=True)
class PeriodChange:
    """A change in per cent since the close of a day."""

    pct: float
    close: float
    date: date


def day_figures(minutes: Bars, day: TradingDay) -> DayFigures:
    """Returns the figures of the minutes that lie in a trading day."""
    inside = minutes.between(day.begin, day.end)
    if not len(inside):
        return DayFigures(None, None, None)
    return DayFigures(float(inside.open[0]), float(inside.high.max()), float(inside.low.min()))


def year_range(days: Bars, today: date, newest: DayFigures, newest_date: date) -> YearRange | None:
    """Returns the range of the daily bars after the same date a year ago and of the day so far; None without such bars.

    Daily bars of stocks have regular hours only. A price of extended hours does not count: it may be outside of the range.
    """
    start = months_before(today, 12)
    dates = dates_of(days.instrument, days.timeframe, days.time)
    kept = [index for index, each in enumerate(dates) if each > start]
    if not kept:
        return None
    highs = [(float(days.high[index]), dates[index]) for index in kept]
    lows = [(float(days.low[index]), dates[index]) for index in kept]
    if newest.high is not None and newest.low is not None:
        highs.append((newest.high, newest_date))
        lows.append((newest.low, newest_date))
    # The newest of equal extremes.
    high, high_date = max(reversed(highs), key=lambda each: each[0])
    low, low_date = min(reversed(lows), key=lambda each: each[0])
    return YearRange(high, high_date, low, low_date, dates[kept[0]])


def period_changes(days: Bars, today: date, price: float) -> dict[str, PeriodChange | None]:
    """Returns the change of a price since the daily close of a week, a month … ago; None if there is none that old."""
    dates = dates_of(days.instrument, days.timeframe, days.time)
    return {name: _change(days, dates, start, price) for name, start in _starts(today).items()}


def _starts(today: date) -> dict[str, date]:
    """The dates whose closes are compared with, or the last close before them."""
    return {
        "1w": today - timedelta(7),
        "1m": months_before(today, 1),
        "3m": months_before(today, 3),
        "6m": months_before(today, 6),
        "ytd": date(today.year - 1, 12, 31),
        "1y": months_before(today, 12),
    }


def _change(days: Bars, dates: list[date], start: date, price: float) -> PeriodChange | None:
    index = next((at for at in reversed(range(len(dates))) if dates[at] <= start), None)
    if index is None or start - dates[index] > _LONGEST_BREAK:
        return None
    close = float(days.close[index])
    pct = percent_change(close, price)
    return None if pct is None else PeriodChange(pct, close, dates[index])


def market_date(instrument: Instrument, moment: float) -> date:
    """Returns the date at a moment: in New York, in UTC for crypto; a currency's day of a date begins at 17:00 before it."""
    if instrument.asset_class is AssetClass.CRYPTO:
        return datetime.fromtimestamp(moment, UTC).date()
    here = eastern(moment)
    evening = instrument.asset_class is AssetClass.FOREX and here.hour >= _EVENING
    return here.date() + timedelta(1) if evening else here.date()


def months_before(day: date, months: int) -> date:
    """Returns the same day of an earlier month, or that month's last day."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


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
    days = trading_days_between(instrument, moment - 2 * _DAYS_WITHOUT_SESSION * _DAY, moment)
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


def _last_session(moment: float, of: Callable[[StockSession], float]) -> StockSession | None:
    """Returns the last session whose time `of` is not after a moment; None if there is none for long before it."""
    day = eastern(moment).date()
    earlier = (session_on(day - timedelta(days)) for days in range(_DAYS_WITHOUT_SESSION))
    return next((each for each in earlier if each and of(each) <= moment), None)


def percent_change(before: float, now: float) -> float | None:
    """Returns the change in per cent; None if the earlier price is not positive, or the change too large for a number."""
    if not before > 0.0:
        return None
    change = (now - before) / before * 100
    return change if isfinite(change) else None
