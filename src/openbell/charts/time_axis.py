"""Time labels: the starts of years, months, weeks and days, and times of day, in the market's or a named time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from openbell.charts import fonts
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import AssetClass
from openbell.market.nearest import did_you_mean
from openbell.market.session_table import Times
from openbell.market.sessions import EASTERN
from openbell.market.trading_days import by_currency_day, currency_days_at

_UTC = ("Etc/UTC", "UTC")
_SHOWN = 80


@cache
def zone_names() -> dict[str, str]:
    """Returns the name of every time zone by its name in lower case."""
    return {name.lower(): name for name in available_timezones()}


def zone_called(name: str) -> tzinfo:
    """Returns the time zone with this name, such as Asia/Tokyo, in any case.

    Raises `InvalidParameter` with the closest name if there is none.
    """
    if name in _UTC:
        return UTC
    found = zone_names().get(name.lower())
    if found is None:
        raise InvalidParameter(
            f"timezone must be a name such as America/New_York, not {name[:_SHOWN]!r}{zone_advice(name)}"
        )
    return UTC if found in _UTC else ZoneInfo(found)


def zone_advice(name: str) -> str:
    """Returns a hint with the time zone whose name, or whose city, is closest; empty if none is close."""
    wanted = name[:_SHOWN].strip().replace(" ", "_")
    cities = {each.rpartition("/")[2].lower(): each for each in sorted(zone_names().values())}
    if found := cities.get(wanted.lower()):
        return f"; did you mean {found!r}?"
    return did_you_mean(wanted, zone_names().values())


def zone_text(zone: tzinfo) -> str:
    """Returns a zone as it is written on a chart: UTC, or its city."""
    name = str(zone)
    return "UTC" if name in _UTC else name.rpartition("/")[2].replace("_", " ")


_DAY = 86400
_WIDEST = {"second": "00:00", "day": "30", "date": "30", "week": "30", "month": "May", "year": "2000"}
_SPACE = {"second": 44.0, "day": 30.0, "date": 30.0, "week": 30.0, "month": 9.0, "year": 9.0}
"""The least space between two labels of a step, in pixels. Months are closer, so that every month is shown if it fits."""
_LEAST_SHARE, _WIDE = 0.55, 1000.0
"""The share of that space on the narrowest charts, and the width in pixels from which on charts have all of it."""
_LEAST_SPACE = 8.0
"""Between a label of a longer period and one of the step."""
_RANK = {"second": 1, "day": 2, "date": 2, "week": 2, "month": 3, "year": 4}
_ONE_OFFSET = 60 * _DAY
"""Seconds. If a span is shorter and both ends have the same UTC offset, the offset does not change in between."""


@dataclass(frozen=True, slots=True)
class TimeTick:
    """A label below one bar; `major` if a longer period begins there than at the other labels."""

    index: int
    text: str
    major: bool


class _Step(NamedTuple):
    """A distance of labels: `length` units of time, which last about `seconds`."""

    unit: Literal["second", "day", "date", "week", "month", "year"]
    length: int
    seconds: int


_STEPS = (
    *(_Step("second", each, each) for each in (60, 120, 300, 600, 900, 1800)),
    *(_Step("second", each * 3600, each * 3600) for each in (1, 2, 3, 4, 6, 12)),
    _Step("day", 1, _DAY),
    _Step("date", 2, 2 * _DAY),
    _Step("week", 1, 7 * _DAY),
    _Step("date", 15, 15 * _DAY),
    *(_Step("month", months, days * _DAY) for months, days in ((1, 30), (2, 60), (3, 91), (6, 182))),
    *(_Step("year", years, years * 365 * _DAY) for years in (1, 2, 5, 10, 20, 50)),
)


def zone_of(bars: Bars, asked: tzinfo | None = None) -> tzinfo:
    """Returns the time zone of the axis: the asked one, or New York for stocks and UTC for other instruments.

    Bars of a day and more have the dates of the market's days in every zone. Those of currencies end in New York.
    """
    if bars.timeframe.intraday and asked is not None:
        return asked
    stock = bars.instrument.asset_class is AssetClass.STOCK
    return EASTERN if stock or by_currency_day(bars.instrument, bars.timeframe) else UTC


def unused_zone_note(bars: Bars, asked: tzinfo | None) -> str | None:
    """Returns a note if the axis does not have the asked zone, because its bars are those of whole days of the market."""
    used = zone_of(bars, asked)
    if asked is None or str(asked) == str(used):
        return None
    return f"timezone: bars of a day and longer have the dates of the market ({zone_text(used)}), not of {asked}"


def newest_time(bars: Bars, zone: tzinfo | None, size: float, room: float) -> str:
    """Returns the opening time of the newest bar with its year and time zone; empty if there are no bars.

    The time of day is left out if the text with this font size would be wider than `room` pixels. If another zone than the
    market's was asked for and bars are of a day and longer, the text says that days are those of the market.
    """
    if not len(bars):
        return ""
    moment, zone_name = _moment(_clock(bars.tail(1), zone)[0]), zone_text(zone_of(bars, zone))
    date = f"{moment.day} {moment:%b %Y}"
    if unused_zone_note(bars, zone):
        return f"{date} · {zone_name} days"
    text = f"{date} {moment:%H:%M} · {zone_name}"
    return text if bars.timeframe.intraday and fonts.width(text, size) <= room else f"{date} · {zone_name}"


def time_ticks(
    bars: Bars, slot: float, left: float = 0.0, zone: tzinfo | None = None, size: float = 11.0
) -> list[TimeTick]:
    """Returns labels that do not overlap, as close as they are easy to read. Starts of longer periods take precedence.

    The first bar's date is included if there is room. `left` is the x of the first bar's slot, `size` the font size.
    """
    if not len(bars):
        return []
    clock = _clock(bars, zone)
    step, begins = _chosen(bars, clock, slot, size)
    ranked: list[tuple[int, int, str]] = []
    for index in begins.tolist():
        rank, text = _rank(_moment(clock[index]), _moment(clock[index - 1]))
        ranked.append((rank, index, text))
    first = _moment(clock[0])
    text = f"{first.day} {first:%b}"
    if left + slot / 2 > fonts.width(text, size) / 2:
        ranked.append((0, 0, text))
    chosen: list[TimeTick] = []
    taken: list[tuple[float, float]] = []
    for rank, index, text in sorted(ranked, key=lambda entry: (-entry[0], entry[1])):
        major = rank > _RANK[step.unit]
        half = fonts.width(text, size, major) / 2 + _LEAST_SPACE / 2
        start, end = index * slot - half, index * slot + half
        if all(end <= other_start or start >= other_end for other_start, other_end in taken):
            chosen.append(TimeTick(index, text, major))
            taken.append((start, end))
    return sorted(chosen, key=lambda tick: tick.index)


def _chosen(bars: Bars, clock: Times, slot: float, size: float) -> tuple[_Step, Times]:
    """Returns the shortest step whose labels fit, and the positions of the bars at which its periods begin."""
    begins = np.empty(0, dtype=np.int64)
    step = _STEPS[-1]
    share = max(_LEAST_SHARE, min(1.0, slot * len(bars) / _WIDE))
    for step in _STEPS:
        # A year's label is among months: every month is shown if it fits nevertheless, some months only if all fit.
        widest = _WIDEST["year" if step.unit == "month" and step.length > 1 else step.unit]
        space = fonts.width(widest, size) + max(_LEAST_SPACE, _SPACE[step.unit] * share)
        # No period has more bars than this, because bars may be missing but do not overlap.
        most = step.seconds / bars.timeframe.seconds
        if most < 1 or most * slot < space * 0.95:
            continue
        keys = _periods(clock, step)
        begins = np.flatnonzero(keys[1:] != keys[:-1]) + 1
        if len(begins) < 2 or float(np.median(np.diff(begins))) * slot >= space:
            break
    return step, begins


def _periods(clock: Times, step: _Step) -> Times:
    """Returns a number for each bar that is equal for all bars of one period."""
    if step.unit == "second":
        return clock // step.length
    days = clock // _DAY
    if step.unit == "day":
        return days
    whole = days.astype("datetime64[D]").astype("datetime64[M]")
    months: Times = whole.astype(np.int64)
    if step.unit == "week":
        return months + (days + 3) // 7  # 5 January 1970 is a Monday; a month also begins within a week
    if step.unit == "date":
        date: Times = days - whole.astype("datetime64[D]").astype(np.int64) + 1
        # No period of a single day at the end of a month.
        periods: Times = months * 32 + np.minimum(date, 32 - step.length) // step.length
    else:
        periods = (months if step.unit == "month" else 1970 + months // 12) // step.length
    return periods


def _clock(bars: Bars, zone: tzinfo | None) -> Times:
    """Returns the times of bars on the wall clock of the axis, in seconds."""
    time = bars.time
    if by_currency_day(bars.instrument, bars.timeframe):
        return currency_days_at(time) * _DAY
    if not bars.timeframe.intraday:
        return time
    zone = zone_of(bars, zone)
    if zone is UTC:
        return time
    first, last = int(time[0]), int(time[-1])
    # The UTC offset is looked up for each bar only if it may change in between.
    if last - first < _ONE_OFFSET and _offset(first, zone) == _offset(last, zone):
        return time + _offset(first, zone)
    return time + np.array([_offset(moment, zone) for moment in time.tolist()], dtype=np.int64)


def _offset(moment: int, zone: tzinfo) -> int:
    shift = datetime.fromtimestamp(moment, zone).utcoffset()
    return int(shift.total_seconds()) if shift else 0


def _moment(clock: np.int64) -> datetime:
    return datetime.fromtimestamp(int(clock), UTC)


def _rank(moment: datetime, before: datetime) -> tuple[int, str]:
    """Returns the rank (year 4, month 3, day 2, time of day 1) and the text of the period that starts at this bar."""
    if moment.year != before.year:
        return 4, str(moment.year)
    if moment.month != before.month:
        return 3, f"{moment:%b}"
    if moment.date() != before.date():
        return 2, str(moment.day)
    return 1, f"{moment:%H:%M}"
