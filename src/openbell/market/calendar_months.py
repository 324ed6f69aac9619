"""Buckets of calendar months of crypto, in UTC: months, quarters, halves and years, each of which begins on the 1st."""

from __future__ import annotations

import numpy as np

from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe


def bucket_number(timeframe: Timeframe, times: Times) -> Times:
    """Returns the number of the bucket that contains each time; the one that begins with 1970 has the number 0."""
    months = times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    return np.asarray(months // timeframe.months)


def number_of(timeframe: Timeframe, epoch: float) -> int:
    """Returns the number of the bucket that contains a time."""
    return int(bucket_number(timeframe, np.array([epoch // 1], dtype=np.int64))[0])


def bucket_opens(timeframe: Timeframe, numbers: Times) -> Times:
    """Returns the times at which buckets begin, by their numbers."""
    months = (numbers * timeframe.months).astype("datetime64[M]")
    return np.asarray(months.astype("datetime64[s]").astype(np.int64))


def opens_at(timeframe: Timeframe, number: int) -> int:
    """Returns the time at which a bucket begins, by its number."""
    return int(bucket_opens(timeframe, np.array([number], dtype=np.int64))[0])


def numbers_within(timeframe: Timeframe, start: int, end: int) -> range:
    """Returns the numbers of the buckets that lie in [start, end)."""
    first = number_of(timeframe, start - 1) + 1
    return range(first, max(first, number_of(timeframe, end)))
