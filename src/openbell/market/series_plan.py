"""The rule that decides what a question is answered from.

Bars of a timeframe T are made of whole bars of one base: T itself where it is native, else the largest native timeframe that
divides it (`series.bases`). A vendor's bar is used from the time at which the vendor has published it. Bars of T that have
closed but are not published yet are made of minutes; months and longer wait for their days. `to_fetch` returns what a feed
must be asked for, `parts_of` which stored series each bar of T is made of. Both depend on the clock, on what the feed
declares and on what is covered, never on which questions were asked before: more minutes do not change an answer that native
bars give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Bars, closed_at
from openbell.market.calendar_months import bucket_opens, number_of, numbers_within, opens_at
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.lookback import bucket_start
from openbell.market.series import Series, bases
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day, trading_days_between

_MONDAY = 345600
_WEEK = 604800


@dataclass(frozen=True, slots=True)
class Native:
    """What a feed has of one timeframe."""

    since: int = 0
    """Epoch seconds before which the feed has no bars."""
    reach: float = np.inf
    """Seconds before the clock's time up to which the feed has bars."""
    delay: float = 0.0
    """Seconds after the end of a bar until the feed has published it."""

    def earliest(self, now: float) -> int:
        """Returns the first time for which the feed has bars."""
        return self.since if self.reach == np.inf else max(self.since, int(now - self.reach))


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Bars of the timeframe in question that open in [start, end), and what they are made of."""

    base: Timeframe
    start: int
    end: int


def base_of(instrument: Instrument, timeframe: Timeframe, natives: Mapping[Timeframe, Native]) -> Timeframe | None:
    """Returns what published bars of a timeframe are made of; None if the feed has nothing for it."""
    return next((base for base in bases(instrument, timeframe) if base in natives), None)


def published(instrument: Instrument, base: Timeframe, native: Native, now: float) -> int:
    """Returns the time before which every bar of a native timeframe that has opened is closed and published."""
    return bucket_start(instrument, base, now - native.delay)


def to_fetch(series: Series, start: int, end: int, natives: Mapping[Timeframe, Native], now: float) -> list[PlanPart]:
    """Returns what the feed has to deliver for the bars of a series that open in [start, end), oldest first."""
    instrument, timeframe = series.instrument, series.timeframe
    base = base_of(instrument, timeframe, natives)
    if base is None:
        return []
    if base is Timeframe.M1:
        return [PlanPart(base, start, end)]
    # The bar of the timeframe that contains the first unpublished bar of the base is made of minutes as a whole.
    final = bucket_start(instrument, timeframe, published(instrument, base, natives[base], now))
    cut = max(start, min(end, final))
    found = [PlanPart(base, start, cut)] if cut > start else []
    # A year of minutes is too much to ask for, for a bar whose last day is published within hours.
    if not timeframe.months and Timeframe.M1 in natives and len(buckets(instrument, timeframe, cut, end)[0]):
        found.append(PlanPart(Timeframe.M1, cut, end))
    return found


def parts_of(
    series: Series,
    start: int,
    end: int,
    covered: Mapping[Timeframe, Sequence[tuple[int, int]]],
    whole_from: int | None = None,
) -> list[PlanPart]:
    """Returns what each bar of a series in [start, end) is made of, oldest first.

    A bar is made of the first base in the order of `bases` that covers all of it, else of minutes. `covered` has the covered
    spans by base. Minutes before `whole_from` may lack bars, and so may minutes where a part of the bar is covered by
    another base: a bar of a larger timeframe is made of them only if they are covered.
    """
    starts, ends = buckets(series.instrument, series.timeframe, start, end)
    if not len(starts):
        return []
    order = bases(series.instrument, series.timeframe)
    chosen = np.full(len(starts), len(order) - 1)
    if series.timeframe is not Timeframe.M1:
        if whole_from is not None:
            doubtful = starts < whole_from
        else:
            others = [covered.get(base, ()) for base in order if base is not Timeframe.M1]
            doubtful = np.logical_or.reduce([_touched(starts, ends, spans) for spans in others])
        chosen[doubtful & ~inside(starts, ends, covered.get(Timeframe.M1, ()))] = -1
    for rank in reversed(range(len(order) - 1)):
        if spans := covered.get(order[rank]):
            chosen[inside(starts, ends, spans)] = rank
    return [
        PlanPart(order[rank], int(starts[low]), int(ends[high - 1])) for rank, low, high in _runs(chosen) if rank >= 0
    ]


def buckets(instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> tuple[Times, Times]:
    """Returns the starts and ends of all buckets of a timeframe that lie in [start, end)."""
    if by_trading_day(instrument, timeframe):
        # A week may begin in one year and end in the next.
        table = trading_days_between(instrument, start - _WEEK, end + _WEEK)
        starts, ends = table.open, table.close
        if timeframe is not Timeframe.D1 and len(starts):
            bucket = table.bucket(timeframe)
            first = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
            starts, ends = starts[first], ends[np.append(first[1:], len(ends)) - 1]
        within = (starts >= start) & (ends <= end)
        return starts[within], ends[within]
    if timeframe.months:
        numbers = numbers_within(timeframe, start, end)
        opens = bucket_opens(timeframe, np.arange(numbers.start, numbers.stop + 1))
        return opens[:-1], opens[1:]
    anchor, step = _anchor(timeframe), timeframe.seconds
    starts = np.arange(start + (anchor - start) % step, end - step + 1, step, dtype=np.int64)
    return starts, starts + step


def missing(bars: Bars) -> int | None:
    """Returns how many bars are missing between the first and the last; None if that cannot be known.

    It is known of crypto, and of stocks from one day on: a stock's minute without a trade has no bar, and forex pauses.
    """
    kind = bars.instrument.asset_class
    if kind is not AssetClass.CRYPTO and (kind is not AssetClass.STOCK or bars.timeframe.intraday):
        return None
    if not len(bars):
        return 0
    return len(buckets(bars.instrument, bars.timeframe, int(bars.time[0]), closed_at(bars))[0]) - len(bars)


def _anchor(timeframe: Timeframe) -> int:
    """Returns the start of one bucket, from which all others are whole steps away."""
    return _MONDAY if timeframe is Timeframe.W1 else 0


def next_close(instrument: Instrument, timeframe: Timeframe, after: float) -> int:
    """Returns the first time later than `after` at which a bar of a timeframe closes."""
    if by_trading_day(instrument, timeframe):
        reach = max(_WEEK, timeframe.seconds)
        ends = buckets(instrument, timeframe, int(after) - 2 * reach, int(after) + 3 * reach)[1]
        later = ends[ends > after]
        return int(later[0]) if len(later) else int(after) + reach
    if timeframe.months:
        return opens_at(timeframe, number_of(timeframe, after) + 1)
    anchor, step = _anchor(timeframe), timeframe.seconds
    return int((after - anchor) // step + 1) * step + anchor


def _touched(starts: Times, ends: Times, spans: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Returns which buckets overlap one of the spans, which are sorted and do not overlap."""
    if not spans:
        return np.zeros(len(starts), dtype=bool)
    begins, stops = np.array(spans, dtype=np.int64).T
    row = np.searchsorted(stops, starts, side="right")
    touched: npt.NDArray[np.bool_] = (row < len(begins)) & (begins[np.minimum(row, len(begins) - 1)] < ends)
    return touched


def inside(starts: Times, ends: Times, spans: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Returns which buckets lie in one of the spans, which are sorted and do not overlap."""
    if not spans:
        return np.zeros(len(starts), dtype=bool)
    begins, stops = np.array(spans, dtype=np.int64).T
    row = np.searchsorted(begins, starts, side="right") - 1
    found: npt.NDArray[np.bool_] = (row >= 0) & (ends <= stops[np.maximum(row, 0)])
    return found


def _runs(values: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yields each run of equal values with its first index and the index after its last."""
    cuts = np.flatnonzero(values[1:] != values[:-1]) + 1
    for low, high in pairwise([0, *cuts.tolist(), len(values)]):
        yield int(values[low]), low, high
