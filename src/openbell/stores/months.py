"""Calendar months in UTC. All bars of an instrument and month have one source and are in one Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

import numpy as np

from openbell.market.bars import Bars


def month_of(epoch: int) -> str:
    """The UTC month of a time, such as `2025-09`."""
    return _month_of_day(epoch // 86400)


@lru_cache(maxsize=64)
def _month_of_day(day: int) -> str:
    return datetime.fromtimestamp(day * 86400, UTC).strftime("%Y-%m")


@lru_cache(maxsize=512)
def month_span(month: str) -> tuple[int, int]:
    """The first second of a month and of the next month."""
    start = np.datetime64(month, "s")
    end = (np.datetime64(month, "M") + 1).astype("datetime64[s]")
    return int(start.astype(np.int64)), int(end.astype(np.int64))


def months_of(bars: Bars) -> list[str]:
    """The UTC months of sorted bars."""
    first, last = month_of(int(bars.time[0])), month_of(int(bars.time[-1]))
    return [first] if first == last else [month for month, _ in by_month(bars)]


def by_month(bars: Bars) -> Iterator[tuple[str, Bars]]:
    """Splits sorted bars by UTC month."""
    months = bars.time.astype("datetime64[s]").astype("datetime64[M]")
    cuts = np.flatnonzero(months[1:] != months[:-1]) + 1
    bounds = [0, *cuts.tolist(), len(bars)]
    for low, high in pairwise(bounds):
        if high > low:
            yield str(months[low]), bars.take(slice(low, high))
