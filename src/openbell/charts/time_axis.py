"""Time labels: days, months and years where they begin, hours between them, in the market's own time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

import numpy as np

from openbell.market.bars import Bars
from openbell.market.instruments import AssetClass
from openbell.market.sessions import EASTERN


@dataclass(frozen=True, slots=True)
class TimeTick:
    """A label under one bar; `major` where a day or more begins."""

    index: int
    text: str
    major: bool


_STEPS = (60, 300, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200)


def zone_of(bars: Bars) -> tzinfo:
    """New York for stocks, UTC for what trades around the clock."""
    return EASTERN if bars.instrument.asset_class is AssetClass.STOCK else UTC


def time_ticks(bars: Bars, slot: float, spacing: float = 88.0) -> list[TimeTick]:
    """Labels at least `spacing` pixels apart, the weightiest first."""
    zone = zone_of(bars)
    moments = [datetime.fromtimestamp(time, zone) for time in bars.time.tolist()]
    ranked: list[tuple[int, int, str]] = []
    step = _step(bars, slot, spacing)
    for index, moment in enumerate(moments):
        before = moments[index - 1] if index else None
        rank, text = _rank(moment, before, step)
        if rank:
            ranked.append((rank, index, text))
    chosen: list[tuple[int, int, str]] = []
    taken: list[int] = []
    gap = max(1, int(np.ceil(spacing / slot)))
    for rank, index, text in sorted(ranked, key=lambda entry: (-entry[0], entry[1])):
        if all(abs(index - other) >= gap for other in taken):
            chosen.append((rank, index, text))
            taken.append(index)
    return [TimeTick(index, text, rank > 1) for rank, index, text in sorted(chosen, key=lambda entry: entry[1])]


def _step(bars: Bars, slot: float, spacing: float) -> int:
    """The time between labels within a day."""
    wanted = spacing / slot * bars.timeframe.seconds
    return next((step for step in _STEPS if step >= wanted), 86400)


def _rank(moment: datetime, before: datetime | None, step: int) -> tuple[int, str]:
    """How weighty the beginning at this bar is (0: none), and what it is called."""
    if before is None:
        return 0, ""
    if moment.year != before.year:
        return 4, str(moment.year)
    if moment.month != before.month:
        return 3, f"{moment:%b}"
    if moment.date() != before.date():
        return 2, str(moment.day)
    seconds = moment.hour * 3600 + moment.minute * 60
    earlier = before.hour * 3600 + before.minute * 60
    return (1, f"{moment:%H:%M}") if seconds // step != earlier // step else (0, "")
