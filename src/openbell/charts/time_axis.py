"""Time labels: days, months and years where they begin, hours between them, in the market's own time zone."""

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
    """A label under one bar; `major` where a day or more begins."""

    index: int
    text: str
    major: bool


EDGE = 24.0
"""Half of the widest label: nearer to the plot's edge none is drawn."""
_STEPS = (60, 300, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200)
_DAY = 86400
_ONE_OFFSET = 60 * _DAY
"""Within so much time, a clock that shows the same offset at both ends has not been changed in between."""


def zone_of(bars: Bars) -> tzinfo:
    """New York for stocks, UTC for what trades around the clock."""
    return EASTERN if bars.instrument.asset_class is AssetClass.STOCK else UTC


def time_ticks(bars: Bars, slot: float, left: float = 0.0, spacing: float = 88.0) -> list[TimeTick]:
    """Labels at least `spacing` pixels apart, the weightiest first; the first bar's own date if there is room.

    The bars begin at `left`.
    """
    if not len(bars):
        return []
    zone = zone_of(bars)
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
    """What a clock of this zone shows, in seconds: asked for at each bar only where it may have been changed."""

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
    """The time between labels within a day."""
    wanted = spacing / slot * bars.timeframe.seconds
    return next((step for step in _STEPS if step >= wanted), _DAY)


def _rank(moment: datetime, before: datetime) -> tuple[int, str]:
    """How weighty the beginning at this bar is, and what it is called."""
    if moment.year != before.year:
        return 4, str(moment.year)
    if moment.month != before.month:
        return 3, f"{moment:%b}"
    if moment.date() != before.date():
        return 2, str(moment.day)
    return 1, f"{moment:%H:%M}"
