"""Bars as numpy columns: the form in which all rooms pass prices on.

`Bars` is immutable, sorted by open time and has no duplicates. `resample` builds closed bars of a larger timeframe, `merge`
joins runs of bars so that corrections replace earlier bars, and `faults` finds impossible values in the bars of a feed or
file.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.market.calendar_months import bucket_number, bucket_opens
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day, trading_days_between

Values = npt.NDArray[np.float64]
COLUMNS = ("time", "open", "high", "low", "close", "volume")
MINUTE = 60

PRICES = (1e-15, 1e15)
"""The lowest and the highest price that is accepted."""
MOST_VOLUME = 1e18
"""The highest volume that is accepted in one bar; the cheapest coins have had minutes of more than 1e15."""

_LARGEST = np.finfo(np.float64).max
_MONDAY = 345600  # 1970-01-05, the first Monday


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bars:
    """Open, high, low, close and volume of one instrument at one timeframe, keyed by open time (epoch seconds UTC)."""

    instrument: Instrument
    timeframe: Timeframe
    time: Times
    open: Values
    high: Values
    low: Values
    close: Values
    volume: Values

    @property
    def series(self) -> Series:
        """The series that these bars belong to."""
        return Series(self.instrument, self.timeframe)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        # Without the arrays: at its end asyncio.run formats the result of its task twice.
        return f"<{len(self)} bars of {self.instrument} {self.timeframe.name}>"

    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """Returns the six arrays in the order of `COLUMNS`."""
        return (self.time, self.open, self.high, self.low, self.close, self.volume)

    def take(self, index: slice | npt.NDArray[Any]) -> Bars:
        """Returns the bars at a slice, a mask or an array of indices."""
        return Bars(self.instrument, self.timeframe, *(column[index] for column in self.columns()))

    def tail(self, count: int) -> Bars:
        """Returns the latest `count` bars."""
        return self if len(self) <= count else self.take(slice(len(self) - count, None))

    def between(self, start: float, end: float) -> Bars:
        """Returns the bars that open in [start, end)."""
        low, high = np.searchsorted(self.time, (start, end))
        return self if low == 0 and high == len(self) else self.take(slice(int(low), int(high)))

    def copy(self) -> Bars:
        """Returns the same bars in new arrays, so that a small slice does not keep a large array in memory."""
        return Bars(self.instrument, self.timeframe, *(column.copy() for column in self.columns()))

    def same_as(self, other: Bars) -> bool:
        """Returns True if instrument, timeframe and all values are equal."""
        return (
            self.instrument == other.instrument
            and self.timeframe is other.timeframe
            and all(np.array_equal(a, b) for a, b in zip(self.columns(), other.columns(), strict=True))
        )


def make(instrument: Instrument, timeframe: Timeframe, *columns: npt.ArrayLike) -> Bars:
    """Returns bars from six array-likes in the order of `COLUMNS`."""
    time, *values = columns
    return Bars(
        instrument,
        timeframe,
        np.ascontiguousarray(time, dtype=np.int64),
        *(np.ascontiguousarray(value, dtype=np.float64) for value in values),
    )


def empty(instrument: Instrument, timeframe: Timeframe = Timeframe.M1) -> Bars:
    """Returns `Bars` of length 0."""
    return make(instrument, timeframe, *([] for _ in COLUMNS))


def empty_of(series: Series) -> Bars:
    """Returns `Bars` of length 0 of a series."""
    return empty(series.instrument, series.timeframe)


def merge(*parts: Bars) -> Bars:
    """Returns the bars of all parts, sorted; of bars with the same open time, the one in the last part."""
    filled = [part for part in parts if len(part)]
    if len(filled) <= 1:
        return filled[0] if filled else parts[0]
    ordered = all(a.time[-1] < b.time[0] for a, b in pairwise(filled))
    columns = [np.concatenate(group) for group in zip(*(part.columns() for part in filled), strict=True)]
    joined = Bars(parts[0].instrument, parts[0].timeframe, *columns)
    return joined if ordered else sort(joined)


def sort(bars: Bars) -> Bars:
    """Returns the bars sorted by open time; of bars with the same open time, the last one."""
    order = np.argsort(bars.time, kind="stable")
    times = bars.time[order]
    last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, dtype=bool)
    return bars.take(order[last])


def bucket_bounds(instrument: Instrument, timeframe: Timeframe, times: Times) -> tuple[Times, Times]:
    """Returns for each time the start and end of the bucket that contains it; −1 if no bucket does.

    Buckets up to 12 h are aligned to UTC midnight for every instrument. A daily bucket is the UTC day of crypto, the regular
    session of stocks and the day from 17:00 New York of forex: times in extended hours and at weekends are in no daily
    bucket. Weeks begin with Monday's day, months with that of the 1st or the first after it. Buckets of 2 and 3 days of
    crypto are counted from 1970 on; those of others are 2 and 3 trading days (`SessionTable.number`).
    """
    if by_trading_day(instrument, timeframe):
        return _bounds_of_days(instrument, timeframe, times)
    if timeframe.months:
        number = bucket_number(timeframe, times)
        return bucket_opens(timeframe, number), bucket_opens(timeframe, number + 1)
    anchor = _MONDAY if timeframe is Timeframe.W1 else 0
    start = times - (times - anchor) % timeframe.seconds
    return start, start + timeframe.seconds


def _bounds_of_days(instrument: Instrument, timeframe: Timeframe, times: Times) -> tuple[Times, Times]:
    if not len(times):
        return times.copy(), times.copy()
    table = trading_days_between(instrument, int(times[0]) - 7 * 86400, int(times[-1]) + 7 * 86400)
    row = table.regular(times)
    if not len(table.open):  # outside the calendar's years: the table has no row to index below
        return row, row.copy()
    if timeframe is Timeframe.D1:
        first = last = row
    else:
        bucket = table.bucket(timeframe)
        first = np.searchsorted(bucket, bucket[row], side="left")
        last = np.searchsorted(bucket, bucket[row], side="right") - 1
    inside = row >= 0
    return np.where(inside, table.open[first], -1), np.where(inside, table.close[last], -1)


def resample(minutes: Bars, timeframe: Timeframe, closed_until: float) -> Bars:
    """Returns the bars of a larger timeframe that end by `closed_until`: first open, max high, min low, last close, sum.

    `minutes` must contain all bars of the first bucket; this is not checked. The volume of bars that are made of days is the
    sum of the days' volumes, so that it is the same number whether days or minutes are stored.
    """
    if timeframe.of_days and minutes.timeframe.intraday:
        minutes = resample(minutes, Timeframe.D1, closed_until)
    start, end = bucket_bounds(minutes.instrument, timeframe, minutes.time)
    usable = (start >= 0) & (end <= closed_until)
    if not usable.all():
        minutes, start = minutes.take(usable), start[usable]
    if timeframe is minutes.timeframe:
        return minutes
    if not len(minutes):
        return empty(minutes.instrument, timeframe)
    first = np.flatnonzero(np.append(True, start[1:] != start[:-1]))
    last = np.append(first[1:], len(start)) - 1
    with np.errstate(over="ignore"):
        volume = np.minimum(np.add.reduceat(minutes.volume, first), _LARGEST)
    return Bars(
        minutes.instrument,
        timeframe,
        start[first],
        minutes.open[first],
        np.maximum.reduceat(minutes.high, first),
        np.minimum.reduceat(minutes.low, first),
        minutes.close[last],
        volume,
    )


def total(volume: Values) -> float:
    """Returns the sum, limited to the largest float as in `resample`."""
    with np.errstate(over="ignore"):
        return float(min(volume.sum(), _LARGEST))


def closed_at(bars: Bars) -> int:
    """Returns the end of the latest bar."""
    _, end = bucket_bounds(bars.instrument, bars.timeframe, bars.time[-1:])
    return int(end[0])


def ends_of(bars: Bars) -> Times:
    """Returns the end of each bar: of bars of days, the end of their last trading day."""
    if bars.timeframe.intraday:
        return bars.time + bars.timeframe.seconds
    return bucket_bounds(bars.instrument, bars.timeframe, bars.time)[1]


def count(instrument: Instrument, timeframe: Timeframe, times: Times, closed_until: float) -> int:
    """Returns the number of bars that `resample` builds from minutes with these open times."""
    start, end = bucket_bounds(instrument, timeframe, times)
    start = start[(start >= 0) & (end <= closed_until)]
    return int(np.count_nonzero(start[1:] != start[:-1])) + bool(len(start))


Faults = list[tuple[str, npt.NDArray[np.bool_]]]
"""Reasons, each with a mask of the bars that it applies to."""


def faults(bars: Bars, now: float, leeway: float = 0.0) -> Faults:
    """Returns why new bars cannot be accepted; each bar counts for its first reason only."""
    return _first_reasons(bars, [*_impossible(bars, now, leeway), *_out_of_range(bars)])


def damage(bars: Bars, now: float) -> Faults:
    """Returns why stored bars are damaged. The accepted range is for new bars only."""
    return _first_reasons(bars, _impossible(bars, now, 0.0))


def _impossible(bars: Bars, now: float, leeway: float) -> Faults:
    o, h, low, c, v = (np.asarray(column) for column in bars.columns()[1:])
    step = bars.timeframe.seconds if bars.timeframe.intraday else MINUTE
    with np.errstate(invalid="ignore"):
        return [
            ("not finite", ~(np.isfinite(o) & np.isfinite(h) & np.isfinite(low) & np.isfinite(c) & np.isfinite(v))),
            ("price not positive", (o <= 0) | (h <= 0) | (low <= 0) | (c <= 0)),
            ("volume negative", v < 0),
            ("high below low", h < low),
            ("open outside high and low", (o > h) | (o < low)),
            ("close outside high and low", (c > h) | (c < low)),
            ("time not on the minute", bars.time % step != 0),
            ("time before 1971", bars.time < 31536000),
            ("from the future", bars.time > now + leeway - step),
        ]


def _out_of_range(bars: Bars) -> Faults:
    """Finds bars with which a sum, product or ratio could overflow. Open and close are between low and high."""
    return [
        ("price below 1e-15", bars.low < PRICES[0]),
        ("price above 1e15", bars.high > PRICES[1]),
        ("volume above 1e18", bars.volume > MOST_VOLUME),
    ]


def _first_reasons(bars: Bars, checks: Faults) -> Faults:
    found: Faults = []
    seen = np.zeros(len(bars), dtype=bool)
    for reason, mask in checks:
        fresh = mask & ~seen
        if fresh.any():
            found.append((reason, fresh))
            seen |= fresh
    return found
