"""Periods: the parts into which a series is divided in long-term storage. All bars of one period have one source.

Minutes are divided by calendar month (UTC): `2025-09`. Bars of other timeframes are divided by source as well, so that an
import and a feed can each hold a part of one series: by month up to 30 minutes (`2025-09.alpaca-iex-raw`), by year from one
hour on (`2025.alpaca-iex-raw`), and not by time from one day on (`all.import-raw`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

import numpy as np

from openbell.market.bars import Bars
from openbell.market.provenance import Source
from openbell.market.timeframes import Timeframe

FIRST, LAST = -(2**62), 2**62
"""Before and after every bar."""
ALL = "all"


def month_of(epoch: int) -> str:
    """The UTC month of a time, such as `2025-09`."""
    return _month_of_day(epoch // 86400)


@lru_cache(maxsize=64)
def _month_of_day(day: int) -> str:
    return datetime.fromtimestamp(day * 86400, UTC).strftime("%Y-%m")


@lru_cache(maxsize=4096)
def period_span(period: str) -> tuple[int, int]:
    """The first second of a period, and the first second after it."""
    calendar = period.partition(".")[0]
    if calendar == ALL:
        return FIRST, LAST
    start = np.datetime64(calendar, "M") if "-" in calendar else np.datetime64(calendar, "Y")
    first, last = (int(each.astype("datetime64[s]").astype(np.int64)) for each in (start, start + 1))
    return first, last


def periods_of(bars: Bars, source: Source) -> list[str]:
    """The periods of sorted bars of a source."""
    if bars.timeframe is Timeframe.M1 and (month := month_of(int(bars.time[0]))) == month_of(int(bars.time[-1])):
        return [month]
    return [period for period, _ in by_period(bars, source)]


def by_period(bars: Bars, source: Source) -> Iterator[tuple[str, Bars]]:
    """Splits sorted bars of a source by period."""
    if not len(bars):
        return
    suffix = "" if bars.timeframe is Timeframe.M1 else f".{slug(source)}"
    if not bars.timeframe.intraday:
        yield f"{ALL}{suffix}", bars
        return
    unit = "M" if bars.timeframe.seconds < Timeframe.H1.seconds else "Y"
    calendar = bars.time.astype("datetime64[s]").astype(f"datetime64[{unit}]")
    cuts = np.flatnonzero(calendar[1:] != calendar[:-1]) + 1
    for low, high in pairwise([0, *cuts.tolist(), len(bars)]):
        yield f"{calendar[low]}{suffix}", bars.take(slice(low, high))


def overlap(period: str, other: str) -> bool:
    """Returns True if two periods of one series have times in common."""
    (start, end), (first, last) = period_span(period), period_span(other)
    return start < last and first < end


@lru_cache(maxsize=64)
def slug(source: Source) -> str:
    """A source in the name of a period: `alpaca-iex-raw`."""
    return re.sub(r"[^a-z0-9]+", "-", f"{source.feed}-{source.adjustment}".lower()).strip("-")
