"""Time labels: the starts of years, months and days, and times of day between them, in the market's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

import numpy as np

from openbell.market.bars import Bars
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times
from openbell.market.sessions import EASTERN


@dataclass(frozen=True, slots=True)
class TimeTick:
    """A label below one bar; `major` if it is the first bar of a day, month or year."""

    index: int
    text: str
    major: bool


EDGE = 24.0
"""Half the width of the widest label, in pixels. No label is drawn closer to the edge of the plot."""
_STEPS = (60, 300, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200)
_DAY = 86400
_ONE_OFFSET = 60 * _DAY
"""Seconds. If a span is shorter and both ends have the same UTC offset, the offset does not change in between."""


def zone_of(bars: Bars) -> tzinfo:
    """Returns New York for stocks, UTC for other instruments."""
    return EASTERN if bars.instrument.asset_class is AssetClass.STOCK else UTC


def time_ticks(
    bars: Bars, slot: float, left: float = 0.0, spacing: float = 88.0, zone: tzinfo | None = None
) -> list[TimeTick]:
    """Returns labels that are at least `spacing` pixels apart. Starts of longer periods take precedence.

    The first bar's date is included if there is room. `left` is the x of the first bar's slot. Without a
    `zone`, it is that of the market.
    """
    if not len(bars):
        return []
    zone = zone or zone_of(bars)
    step = _step(bars, slot, spacing)
    clock = _clock(bars.time, zone)
    begins = np.flatnonzero(clock[1:] // step != clock[:-1] // step) + 1
    ranked: list[tuple[int, int, str]] = []
    for index, time, before in zip(
        begins.tolist(), bars.time[begins].tolist(), bars.time[begins - 1].tolist(), strict=True
    ):
        rank, text = _rank(datetime.fromtimestamp(time, zone), datetime.fromtimestamp(before, zone))
        ranked.append((rank, index, text))
    if left + slot / 2 > EDGE:
        first = datetime.fromtimestamp(int(bars.time[0]), zone)
        ranked.append((0, 0, f"{first:%b} {first.day}"))
    chosen: list[tuple[int, int, str]] = []
    taken: list[int] = []
    gap = max(1, int(np.ceil(spacing / slot)))
    for rank, index, text in sorted(ranked, key=lambda entry: (-entry[0], entry[1])):
        if all(abs(index - other) >= gap for other in taken):
            chosen.append((rank, index, text))
            taken.append(index)
    return [TimeTick(index, text, rank > 1) for rank, index, text in sorted(chosen, key=lambda entry: entry[1])]


def _clock(time: Times, zone: tzinfo) -> Times:
    """Returns the local times in seconds. The UTC offset is looked up per bar only if it may change in between."""

    def offset(moment: int) -> int:
        shift = datetime.fromtimestamp(moment, zone).utcoffset()
        return int(shift.total_seconds()) if shift else 0

    if zone is UTC:
        return time
    first, last = int(time[0]), int(time[-1])
    if last - first < _ONE_OFFSET and offset(first) == offset(last):
        return time + offset(first)
    return time + np.array([offset(moment) for moment in time.tolist()], dtype=np.int64)


def _step(bars: Bars, slot: float, spacing: float) -> int:
    """Returns the seconds between labels within a day."""
    wanted = spacing / slot * bars.timeframe.seconds
    return next((step for step in _STEPS if step >= wanted), _DAY)


def _rank(moment: datetime, before: datetime) -> tuple[int, str]:
    """Returns the rank (year 4, month 3, day 2, time of day 1) and the text of the period that starts at this bar."""
    if moment.year != before.year:
        return 4, str(moment.year)
    if moment.month != before.month:
        return 3, f"{moment:%b}"
    if moment.date() != before.date():
        return 2, str(moment.day)
    return 1, f"{moment:%H:%M}"
