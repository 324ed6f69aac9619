"""Periods: the parts into which a series is divided in long-term storage. All bars of one period have one source.

Minutes are divided by calendar month (UTC): `2025-09`. If another source already has that period, its minutes have one
beside it: `2025-09.alpaca-iex-raw`. Bars of other timeframes always have periods by source: by month up to 45 minutes
(`2025-09.alpaca-iex-raw`), by year from one hour on (`2025.alpaca-iex-raw`), and not by time from one day on
(`all.import-raw`). So an import and a feed can each hold a part of one series.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

import numpy as np

from openbell.market.bars import Bars
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span

FIRST, LAST = -(2**62), 2**62
"""Before and after every bar."""
ALL = "all"
Piece = tuple[str, Bars]
"""Bars of one period; of minutes, those of one month."""


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


def calendar_of(timeframe: Timeframe, epoch: int) -> str:
    """The part of a period's name that names its time, for a bar that opened at `epoch`."""
    if not timeframe.intraday:
        return ALL
    return month_of(epoch) if timeframe.seconds < Timeframe.H1.seconds else month_of(epoch)[:4]


def by_period(bars: Bars, source: Source) -> Iterator[Piece]:
    """Splits sorted bars of a source by period; minutes by month, whatever other sources have."""
    if not len(bars):
        return
    if bars.timeframe is Timeframe.M1 and (month := month_of(int(bars.time[0]))) == month_of(int(bars.time[-1])):
        yield month, bars
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


def overlap(period: str, span: Span) -> bool:
    """Returns True if a period has times in a span."""
    start, end = period_span(period)
    return start < span.end and span.start < end


def beside(month: str, source: Source) -> str:
    """The period of a source's minutes in a month in which another source has the period with the month's name."""
    return f"{month}.{slug(source)}"


def slug_of(period: str) -> str:
    """The part of a period's name that names its source; empty if the name is a month."""
    return period.partition(".")[2]


@lru_cache(maxsize=64)
def slug(source: Source) -> str:
    """A source in the name of a period: `alpaca-iex-raw`."""
    return re.sub(r"[^a-z0-9]+", "-", f"{source.feed}-{source.adjustment}".lower()).strip("-")


def batches(pieces: Sequence[Piece], size: int) -> Iterator[Sequence[Piece]]:
    """Months of minutes one by one, because each takes long; periods of other series `size` at a time, each series whole."""
    yield from ([piece] for piece in pieces if piece[1].timeframe is Timeframe.M1)
    by_series: dict[Series, list[Piece]] = {}
    for piece in pieces:
        if piece[1].timeframe is not Timeframe.M1:
            by_series.setdefault(piece[1].series, []).append(piece)
    batch: list[Piece] = []
    for some in by_series.values():
        batch += some
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch
