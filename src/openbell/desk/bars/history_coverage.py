"""What a vendor's answer or a file covers: the times about which it is believed, whether it has bars there or not.

A span that is covered is not asked for again. An answer that is empty or ends too early may be a fault of the vendor, so its
silent end is not covered; neither are bars that were refused as impossible, nor long silent parts of imported bars.
"""

from __future__ import annotations

import numpy as np

from openbell.market.bars import MINUTE, Bars, bucket_bounds, closed_at
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_time import most_bars, trading_bars
from openbell.stores.port import Span

_DAY = 86400
_SILENT_DAYS, _SILENT_HOURS, _SILENT_MINUTES = 3, 40, 1500
"""Bars that may be missing at the end of an answer: holidays that we do not know, halts, extended hours without trades."""


def covered_by(bars: Bars, refused: Times, span: Span, newest: bool) -> list[Span]:
    """Returns the parts of a span that an answer covers.

    `bars` are the valid bars of the answer and `refused` the times of the others. `newest` is True if the span ends at the
    present: only an empty answer about an earlier time means that the history begins later.
    """
    series = bars.series
    spoken = closed_at(bars) if len(bars) else span.start
    silent = most_bars(series.instrument, series.timeframe, spoken, span.end)
    # At the present, a vendor that is late sends no error: only bars show how far it has come.
    believed = 0 if newest else _most_silent(series.timeframe)
    end = span.end
    if silent > believed and (newest or (len(bars) and series.timeframe.seconds >= 3600)):
        end = spoken
    bounds = bucket_bounds(series.instrument, series.timeframe, np.sort(refused))
    found, at = [], span.start
    for start, stop in zip(*(each.tolist() for each in bounds), strict=True):
        if at < min(start, end):
            found.append(Span(at, min(start, end)))
        at = max(at, stop)
    if at < end:
        found.append(Span(at, end))
    return found


def covered_by_imports(bars: Bars, now: float) -> list[Span]:
    """Returns the spans that imported bars cover. A span ends where too many bars in a row are missing.

    Only trading hours count: one missing bar before a weekend is one missing bar, not two days. Adding bars never makes the
    coverage smaller, so the order of imports does not matter.
    """
    series = bars.series
    most = _most_silent(series.timeframe)
    ends = bucket_bounds(series.instrument, series.timeframe, bars.time)[1]
    starts, stops = [int(bars.time[0])], []
    for at in np.flatnonzero(bars.time[1:] - ends[:-1] > most * series.timeframe.seconds).tolist():
        if trading_bars(series.instrument, series.timeframe, int(ends[at]), int(bars.time[at + 1])) > most:
            stops.append(int(ends[at]))
            starts.append(int(bars.time[at + 1]))
    stops.append(int(ends[-1]))
    return [Span(start, _until_next(series, stop, now)) for start, stop in zip(starts, stops, strict=True)]


def silence(timeframe: Timeframe) -> int:
    """Returns the seconds after which two imported bars are too far apart for their silence to be covered."""
    return 14 * _DAY + (_most_silent(timeframe) + 1) * timeframe.seconds


def _until_next(series: Series, end: int, now: float) -> int:
    """Returns the time at which the next bar can open: a night belongs to the session before it."""
    if series.timeframe.intraday:
        return end
    opens, _ = buckets(series.instrument, series.timeframe, end, end + 30 * _DAY)
    return max(end, min(int(opens[0]), int(now // MINUTE * MINUTE))) if len(opens) else end


def _most_silent(timeframe: Timeframe) -> int:
    if not timeframe.intraday:
        return _SILENT_DAYS
    return _SILENT_HOURS if timeframe.seconds >= 3600 else _SILENT_MINUTES
