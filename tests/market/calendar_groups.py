"""Bars of days, weeks and calendar periods, grouped day by day in plain Python: the expected buckets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from itertools import groupby
from zoneinfo import ZoneInfo

from openbell.market.bars import Bars
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.timeframes import Timeframe
from tests.market.new_york import oracle
from tests.market.walks import DAY

FIRST, LAST = date(2003, 1, 1), date(2027, 12, 31)
EPOCH, FIRST_MONDAY = date(1970, 1, 1), date(1971, 1, 4)
NEW_YORK = ZoneInfo("America/New_York")
Row = tuple[int, float, float, float, float, float]


@dataclass(frozen=True)
class Group:
    """One expected bucket."""

    start: int
    end: int
    days: tuple[tuple[int, int], ...]
    """The start and end of each trading day in it."""

    def holds(self, time: int) -> bool:
        """Returns True if a bar at this time is in the bucket."""
        at = bisect_right(self.days, (time, 2**62)) - 1
        return at >= 0 and time < self.days[at][1]


@cache
def trading_days(asset_class: AssetClass) -> list[tuple[date, int, int, int]]:
    """Returns date, number, start and end of each trading day. Numbers count from the first session of 1971 on."""
    if asset_class is AssetClass.STOCK:
        hours = oracle("1971-01-01", LAST.isoformat())
        rows = zip(map(date.fromisoformat, hours.dates), hours.open.tolist(), hours.close.tolist(), strict=True)
        return [(day, n, opened, closed) for n, (day, opened, closed) in enumerate(rows) if day >= FIRST]
    days = [FIRST + timedelta(n) for n in range((LAST - FIRST).days + 1)]
    if asset_class is AssetClass.FOREX:
        weekdays = (day for day in days if day.weekday() < 5)
        return [(day, _weekdays_before(day), _at_five(day - timedelta(1)), _at_five(day)) for day in weekdays]
    return [(day, n, n * DAY, (n + 1) * DAY) for day in days for n in [(day - EPOCH).days]]


def _at_five(day: date) -> int:
    """Returns 17:00 in New York."""
    return int(datetime(day.year, day.month, day.day, 17, tzinfo=NEW_YORK).timestamp())


def _weekdays_before(day: date) -> int:
    weeks, more = divmod((day - FIRST_MONDAY).days, 7)
    return weeks * 5 + more


def key_of(timeframe: Timeframe, day: date, number: int) -> Hashable:
    """Returns what all days of a bucket have in common."""
    match timeframe:
        case Timeframe.D1:
            return day
        case Timeframe.W1:
            return day.isocalendar()[:2]
        case Timeframe.D2:
            return number // 2
        case Timeframe.D3:
            return number // 3
        case Timeframe.MONTH:
            return day.year, day.month
        case Timeframe.QUARTER:
            return day.year, (day.month - 1) // 3
        case Timeframe.HALF:
            return day.year, day.month > 6
        case _:
            return day.year


@cache
def groups(asset_class: AssetClass, timeframe: Timeframe) -> list[Group]:
    """Returns the buckets of 2004 to 2026, and some before and after; the first and the last may be cut."""
    found = []
    for _, some in groupby(trading_days(asset_class), lambda row: key_of(timeframe, row[0], row[1])):
        spans = tuple((start, end) for _, _, start, end in some)
        found.append(Group(spans[0][0], spans[-1][1], spans))
    return found[1:-1]


def group_at(found: list[Group], time: int) -> Group | None:
    """Returns the bucket from whose start to whose end a time is."""
    at = bisect_right(found, time, key=lambda each: each.start) - 1
    return found[at] if at >= 0 and time < found[at].end else None


def grouped(bars: Bars, timeframe: Timeframe, closed_until: float) -> list[Row]:
    """Returns the closed bars of a timeframe, made row by row."""
    expected: dict[int, Row] = {}
    known = groups(bars.instrument.asset_class, timeframe)
    for time, o, h, low, c, v in zip(*(column.tolist() for column in bars.columns()), strict=True):
        group = group_at(known, time)
        if group is None or not group.holds(time) or group.end > closed_until:
            continue
        if (before := expected.get(group.start)) is None:
            expected[group.start] = (group.start, o, h, low, c, v)
        else:
            expected[group.start] = (*before[:2], max(before[2], h), min(before[3], low), c, before[5] + v)
    return list(expected.values())


def instrument_days(instrument: Instrument) -> list[int]:
    """Returns the starts of the trading days of an instrument."""
    return [start for _, _, start, _ in trading_days(instrument.asset_class)]
