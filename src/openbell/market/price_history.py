"""How a price compares with the past: the day so far, the range of a year, and changes over a week to a year."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from openbell.market.bars import Bars
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.percent_change import percent_change
from openbell.market.previous_close import TradingDay
from openbell.market.sessions import eastern
from openbell.market.trading_days import dates_of

PERIODS = ("1w", "1m", "3m", "6m", "ytd", "1y")
_EVENING = 17
"""The hour in New York at which a currency's day begins."""
_LONGEST_BREAK = timedelta(10)
"""A close that is older than this before the date that was asked for is not the close of that date."""


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
