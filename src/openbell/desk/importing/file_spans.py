"""From when to when a file of minutes covers a symbol.

A minute without a trade has no bar, so the first and the last bar of a symbol with few trades are not where its file begins
and ends. Other symbols of the file show it, and so do the pauses of the symbol itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openbell.desk.importing.series import FileSeries
from openbell.market.bars import MINUTE, Bars, closed_at
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times, table_for
from openbell.stores.port import Span

_DAY = 86400


def minute_spans(found: Sequence[FileSeries]) -> list[Span]:
    """Returns for each series of minutes the span that its file covers: see `minutes_span`."""
    keys = [(series.file, series.bars.instrument.asset_class) for series in found]
    whole: dict[tuple[str, AssetClass], Span] = {}
    for key, series in zip(keys, found, strict=True):
        start, end = int(series.bars.time[0]), closed_at(series.bars)
        known = whole.get(key, Span(start, end))
        whole[key] = Span(min(start, known.start), max(end, known.end))
    return [minutes_span(series.bars, whole[key]) for key, series in zip(keys, found, strict=True)]


def minutes_span(bars: Bars, whole: Span) -> Span:
    """Returns the span that a file covers for one symbol; `whole` is that of all its symbols of the same market.

    At least from its first to its last bar. On the days of these bars it begins and ends with all symbols, and a stock's at
    the open and the close if they are no farther away than its longest pause within a session.
    """
    first, last = whole.start, whole.end
    start, end = int(bars.time[0]), closed_at(bars)
    if bars.instrument.asset_class is not AssetClass.STOCK:
        midnight = (end - MINUTE) // _DAY * _DAY + _DAY
        return Span(min(start, max(first, start // _DAY * _DAY)), max(end, min(last, midnight)))
    table = table_for(start, end)
    edges = np.array([start, end - MINUTE])
    days, sessions = table.extended(edges).tolist(), table.regular(edges).tolist()
    pause = _longest_pause(bars, table.regular(bars.time))
    if days[0] >= 0:
        start = min(start, max(first, int(table.premarket[days[0]])))
    if sessions[0] >= 0 and start - table.open[sessions[0]] <= pause:
        start = min(start, int(table.open[sessions[0]]))
    if days[1] >= 0:
        end = max(end, min(last, int(table.end[days[1]])))
    if sessions[1] >= 0 and table.close[sessions[1]] - end <= pause:
        end = max(end, int(table.close[sessions[1]]))
    return Span(start, end)


def _longest_pause(bars: Bars, sessions: Times) -> int:
    """Returns the longest time without a bar within one session, in seconds."""
    same = (sessions[1:] == sessions[:-1]) & (sessions[1:] >= 0)
    return int((np.diff(bars.time)[same] - MINUTE).max(initial=0))
