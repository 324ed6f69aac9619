"""Gives each row the time by which its bar is stored: the start of the bucket of `market.bars.bucket_bounds`.

Local times of a time zone are converted into UTC, many at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from openbell.market.bars import bucket_bounds
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.nearest import did_you_mean
from openbell.market.session_table import Times, table_of_years
from openbell.market.sessions import EASTERN, FIRST_YEAR
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.market.trading_days import currency_days_at, currency_opens_on

Mask = npt.NDArray[np.bool_]
_WEEK = 7 * 86400
_YEAR = 366 * 86400
_EARLIEST, _LATEST = -(2**31), 2**33
"""The times for which offsets are looked up; 1901 to 2242."""
_MOST_HOURS = 14


_AHEAD = re.compile(r"(?P<zone>.+?)(?P<ahead>[+-]\d{1,2})(?::(?P<minutes>[0-5]\d))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Zone:
    """The zone of a file's times: one of the tz database, or the clock that is some hours ahead of one.

    Servers of MetaTrader are 7 hours ahead of New York, so that a trading day of currencies begins at midnight. They change
    to summer time with New York, as no zone of the database does that is so far east.
    """

    key: str
    rules: ZoneInfo
    ahead: int = 0
    """Seconds."""


def zone_of(name: str) -> Zone:
    """Returns a time zone by its IANA name, also with an offset: America/New_York+7, UTC+2. Raises `InvalidParameter`."""
    if (rules := _rules(name)) is not None:
        return Zone(name, rules)
    match = _AHEAD.fullmatch(name)
    base = match["zone"] if match else name
    if match and (rules := _rules(base)) is not None and abs(hours := int(match["ahead"])) <= _MOST_HOURS:
        minutes = int(match["minutes"] or 0)
        return Zone(name, rules, hours * 3600 + (-minutes if match["ahead"][0] == "-" else minutes) * 60)
    from zoneinfo import available_timezones

    names = available_timezones()
    hint = "" if base in names else did_you_mean(base, names)
    raise InvalidParameter(
        f"{name[:40]!r} is not a time zone: use a name such as America/New_York or UTC, or one with the hours that the "
        f"clock is ahead of it, such as America/New_York+7 or UTC+2{hint}"
    )


def _rules(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder of the database
        return None


def to_utc(local: Times, zone: Zone) -> tuple[Times, Mask, Mask]:
    """Returns UTC times, a mask of local times that do not exist, and a mask of those that exist twice.

    Both occur once a year where summer time begins and ends. A time that exists twice is converted as the first one.
    """
    if zone.ahead:
        local = local - zone.ahead
    none = np.zeros(len(local), dtype=bool)
    if not len(local) or zone.rules.key in {"UTC", "Etc/UTC", "GMT"}:
        return local, none, none
    first = max(int(local.min()) - 2 * 86400, _EARLIEST) // _YEAR * _YEAR
    last = -(-min(int(local.max()) + 2 * 86400, _LATEST) // _YEAR) * _YEAR
    changes, offsets = _changes(zone.rules, first, max(last, first + _YEAR))
    # The clock shows `change + before` when the offset changes to `after`.
    before, after = offsets[:-1], offsets[1:]
    row = np.searchsorted(changes + np.maximum(before, after), local, side="right")
    utc = local - offsets[row]
    if not len(changes):
        return utc, none, none
    nearest = np.minimum(row, len(changes) - 1)
    near = (row < len(changes)) & (local >= changes[nearest] + np.minimum(before, after)[nearest])
    skipped = near & (after > before)[nearest]
    return utc, skipped, near & ~skipped


@lru_cache(maxsize=64)
def _changes(zone: ZoneInfo, first: int, last: int) -> tuple[Times, Times]:
    """Returns the UTC times at which the offset changes, and the offsets before, between and after them."""
    changes, offsets = [], [_offset(zone, first)]
    for end in range(first + _WEEK, last + _WEEK, _WEEK):
        if (found := _offset(zone, end)) != offsets[-1]:
            low, high = end - _WEEK, end
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(found)
    return np.array(changes, dtype=np.int64), np.array(offsets, dtype=np.int64)


def _offset(zone: ZoneInfo, epoch: int) -> int:
    offset = datetime.fromtimestamp(epoch, UTC).astimezone(zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


_DAY = 86400
_LONGEST = 4 * _DAY
"""Seconds. A day of forex begins within this time after any other time."""
_BELL = 9 * 3600 + 30 * 60
"""The open of a session in New York, in seconds after midnight."""
_NEW_YORK = Zone(EASTERN.key, EASTERN)
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


@dataclass(frozen=True, slots=True)
class Keys:
    """The key of each row."""

    times: Times
    bad: Mask
    """Rows that belong to no bucket."""
    too_early: Mask
    """Rows before the first year of the calendar of sessions."""


def keys_of(instrument: Instrument, timeframe: Timeframe, times: Times, days: Times, dates: bool) -> Keys:
    """Returns the keys of rows with these UTC times and local dates (days since 1970).

    Raises `InvalidParameter` if the bars of the whole file are cut at other times than ours.
    """
    none = np.zeros(len(times), dtype=bool)
    if timeframe.intraday:
        if dates:
            name = name_of(timeframe, SHORT)
            raise InvalidParameter(f"has dates without a time of day, so it does not hold {name} bars")
        off = times % timeframe.seconds != 0
        _refuse_other_grid(timeframe, times, off)
        return Keys(times, off, none)
    if not dates:
        _refuse_more_than_one_a_day(timeframe, times)
    if instrument.asset_class is AssetClass.STOCK:
        return _session_keys(timeframe, times, days, dates)
    if instrument.asset_class is AssetClass.FOREX:
        return _currency_keys(instrument, timeframe, times, days, dates)
    starts = bucket_bounds(instrument, timeframe, days * _DAY if dates else times)[0]
    off = starts != (days * _DAY if dates and timeframe is Timeframe.W1 else starts if dates else times)
    if off.any():
        first = int(np.flatnonzero(off)[0])
        began = int(days[first]) * _DAY if dates else int(times[first])
        weekly = timeframe is Timeframe.W1
        raise InvalidParameter(
            f"holds {name_of(timeframe, SHORT)} bars that begin at {_moment(began, weekly)}, but those of {instrument} "
            f"begin at {_moment(int(starts[first]), weekly)} here: import bars of 1h or less, which larger ones are made of"
        )
    return Keys(starts, none, none)


def _currency_keys(instrument: Instrument, timeframe: Timeframe, times: Times, days: Times, dates: bool) -> Keys:
    """Returns the keys of days and weeks of forex. A date means the trading day of that date, or the week of that Monday.

    A file that has dates of weekends is cut at other times: the few hours of a Sunday belong to Monday's day here.
    """
    none = np.zeros(len(times), dtype=bool)
    name, weekly = name_of(timeframe, SHORT), timeframe is Timeframe.W1
    smaller = "import bars of 1h or less, which larger ones are made of"
    if dates:
        if (off := (days + 3) % 7 > (0 if weekly else 4)).any():
            dated = date_text(int(days[off][0]))
            wanted = (
                "of a week the date of its Monday" if weekly else "of a day the date of its end, from Monday to Friday,"
            )
            raise InvalidParameter(
                f"holds {name} bars dated {dated}, but days of {instrument} run from 17:00 to 17:00 in New York here, and "
                f"{wanted} is expected: {smaller}"
            )
        opens = currency_opens_on(days)
        return Keys(opens, none, opens < 0)
    starts = bucket_bounds(instrument, timeframe, times)[0]
    if (off := starts != times).any():
        first = times[off][:1]
        ours = (
            int(starts[off][0]) if starts[off][0] >= 0 else int(currency_opens_on(currency_days_at(first, _LONGEST))[0])
        )
        raise InvalidParameter(
            f"holds {name} bars that begin at {_moment(int(first[0]), weekly)}, but those of {instrument} begin at "
            f"{_moment(ours, weekly)} here, 17:00 in New York: {smaller}"
        )
    return Keys(starts, none, none)


def _moment(epoch: int, weekly: bool = False) -> str:
    clock = f"{epoch % _DAY // 3600:02}:{epoch % 3600 // 60:02} UTC"
    return f"{_WEEKDAYS[(epoch // _DAY + 3) % 7]} {clock}" if weekly else clock


def _refuse_other_grid(timeframe: Timeframe, times: Times, off: Mask) -> None:
    """Raise `InvalidParameter` if many rows are off the grid: then the file is cut otherwise, and no row is wrong.

    A file that is cut at local hours may be off for a part of the year only.
    """
    if timeframe is Timeframe.M1 or off.sum() < max(2, 0.1 * len(off)):
        return
    first = int(times[off][0])
    name = name_of(timeframe, SHORT)
    smaller = "minutes (1m)" if first % 1800 else "minutes (1m) or 30m bars"
    raise InvalidParameter(
        f"holds {name} bars that begin at {_moment(first)}, but {name} bars begin at multiples of {name} from midnight UTC "
        f"here: import {smaller}, from which larger bars are built"
    )


def _refuse_more_than_one_a_day(timeframe: Timeframe, times: Times) -> None:
    gaps = np.diff(np.sort(times))
    gaps = gaps[gaps > 0]
    if len(gaps) and int(gaps.min()) < 20 * 3600:
        raise InvalidParameter(
            f"holds bars that are {int(gaps.min()) // 60:,} minutes apart, so they are no {name_of(timeframe, SHORT)} bars"
        )


def _session_keys(timeframe: Timeframe, times: Times, days: Times, dates: bool) -> Keys:
    none = np.zeros(len(times), dtype=bool)
    if not len(times):
        return Keys(times, none, none)
    if not dates:
        days = _dates_of_sessions(times, days)
    sessions = session_days(int(days.min()), int(days.max()))
    first_day = _day_number(date(FIRST_YEAR, 1, 1))
    too_early = days < first_day
    if timeframe is Timeframe.W1:
        days = _week_starts(days, sessions, too_early)
    at = np.minimum(np.searchsorted(sessions, days), max(len(sessions) - 1, 0))
    known = sessions[at] == days if len(sessions) else none
    return Keys(open_of(days), ~known & ~too_early, too_early)


def _dates_of_sessions(times: Times, days: Times) -> Times:
    """Returns the dates of bars that are stamped with a time: that of the session whose open it is, else the local date."""
    utc_days = times // _DAY
    return utc_days if np.array_equal(open_of(utc_days), times) else days


def _week_starts(days: Times, sessions: Times, too_early: Mask) -> Times:
    """Returns the first session day of each week."""
    weekdays = (days + 3) % 7
    if ((weekdays == 6) & ~too_early).any():
        sunday = date_text(int(days[(weekdays == 6) & ~too_early][0]))
        raise InvalidParameter(
            f"holds 1w bars dated on Sundays, such as {sunday}, which can be the first or the last day of a week: "
            "date them on Mondays or on trading days"
        )
    mondays = days - weekdays
    if not len(sessions):
        return days
    first = np.minimum(np.searchsorted(sessions, mondays), len(sessions) - 1)
    return np.where(sessions[first] - mondays < 5, sessions[first], days)


def open_of(days: Times) -> Times:
    """Returns the UTC times at which a session opens on these dates."""
    return to_utc(days * _DAY + _BELL, _NEW_YORK)[0]


def session_days(first: int, last: int) -> Times:
    """Returns the dates of all sessions of the years of these dates and a week around them, as days since 1970."""
    return table_of_years(_date(first - 7).year, _date(last + 7).year).day


_EPOCH = date(1970, 1, 1).toordinal()


def _day_number(day: date) -> int:
    return day.toordinal() - _EPOCH


def _date(day: int) -> date:
    """Returns the date of a number of days since 1970, the nearest one that exists."""
    return date.fromordinal(min(max(day + _EPOCH, 1), date.max.toordinal()))


def date_text(day: int) -> str:
    """Returns a date and its weekday: `2024-05-05, a Sunday`."""
    found = _date(day)
    return f"{found.isoformat()}, a {_WEEKDAYS[found.weekday()]}"
