"""Finds bars that would be made of a part of their minutes: where the coverage of minutes begins or ends inside a bar.

Time in which a market is closed needs no coverage. A stock's extended hours may be missing as a whole, because many files
have regular hours only: then the coverage ends exactly with one session and begins with the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openbell.market.bars import MINUTE, bucket_bounds
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.series_plan import inside
from openbell.market.session_table import Times, table_for
from openbell.market.sessions import forex_open
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day, trading_days_between

_HOUR, _WEEK = 3600, 604800
_Span = tuple[int, int]


def cut_bars(instrument: Instrument, timeframe: Timeframe, spans: Sequence[_Span]) -> list[_Span]:
    """Returns the start and end of each bar of a timeframe that the spans cover in part, oldest first.

    `spans` are those in which all minutes are stored; they are sorted and do not overlap.
    """
    if not spans:
        return []
    edges = np.unique([edge for start, end in spans for edge in (start, end - MINUTE)])
    starts, ends = _bars_at(instrument, timeframe, edges)
    cut = ~inside(starts, ends, over_closed_hours(instrument, spans))
    return sorted(set(zip(starts[cut].tolist(), ends[cut].tolist(), strict=True)))


def over_closed_hours(instrument: Instrument, spans: Sequence[_Span]) -> list[_Span]:
    """Returns spans lengthened over the hours before and after them that need no coverage; those that then touch are one."""
    found: list[_Span] = []
    for start, end in _lengthened(instrument, spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _bars_at(instrument: Instrument, timeframe: Timeframe, minutes: Times) -> tuple[Times, Times]:
    """Returns the bounds of the bars that contain minutes, without minutes that are between trading days or weeks."""
    times = minutes
    if by_trading_day(instrument, timeframe):
        opens = trading_days_between(instrument, int(minutes[0]) - 2 * _WEEK, int(minutes[-1])).open
        row = np.searchsorted(opens, minutes, side="right") - 1
        times = opens[row[row >= 0]]  # a night within a week, or a weekend in a month, belongs to the day before it
        minutes = minutes[row >= 0]
    starts, ends = bucket_bounds(instrument, timeframe, times)
    within = (starts <= minutes) & (minutes < ends)
    return starts[within], ends[within]


def _lengthened(instrument: Instrument, spans: Sequence[_Span]) -> Sequence[_Span]:
    if instrument.asset_class is AssetClass.STOCK and spans:
        starts, ends = np.array(spans, dtype=np.int64).T
        return list(zip(*(each.tolist() for each in _over_nights(starts, ends)), strict=True))
    if instrument.asset_class is AssetClass.FOREX:
        return [_over_weekends(start, end) for start, end in spans]
    return spans


def _over_nights(starts: Times, ends: Times) -> tuple[Times, Times]:
    table = table_for(int(starts[0]) - 2 * _WEEK, int(ends[-1]) + 2 * _WEEK)
    if len(table.open) < 3:
        return starts, ends
    last = len(table.open) - 1
    # The first session that opens at or after a start, and the first that closes at or after an end.
    after = np.clip(np.searchsorted(table.open, starts), 1, last)
    at_open = table.open[after] == starts
    at_night = (table.end[after - 1] <= starts) & (starts <= table.premarket[after])
    first = np.where(at_open, table.close[after - 1], np.where(at_night, table.end[after - 1], starts))
    after = np.clip(np.searchsorted(table.close, ends), 1, last)
    at_close = table.close[after] == ends
    at_night = (table.end[after - 1] <= ends) & (ends <= table.premarket[after])
    following = table.open[np.minimum(after + 1, last)]
    return first, np.where(at_close, following, np.where(at_night, table.premarket[after], ends)).clip(ends)


def _over_weekends(start: int, end: int) -> _Span:
    while not forex_open(start - MINUTE):
        start -= start % _HOUR or _HOUR
    while not forex_open(end):
        end += _HOUR - end % _HOUR
    return start, end
