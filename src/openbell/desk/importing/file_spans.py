"""From when to when a file of minutes covers a symbol.

A minute without a trade has no bar, so the first and the last bar of a symbol with few trades are not where its file begins
and ends. Other symbols of the file show it. What the pauses of the symbol itself show is found when its bars are read
(`desk.quiet_edges`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openbell.desk.importing.series import FileSeries
from openbell.market.bars import MINUTE, Bars, closed_at
from openbell.market.instruments import AssetClass
from openbell.market.session_table import table_for
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

    At least from its first to its last bar. On the days of these bars it begins and ends with all symbols.
    """
    first, last = whole.start, whole.end
    start, end = int(bars.time[0]), closed_at(bars)
    if bars.instrument.asset_class is not AssetClass.STOCK:
        midnight = (end - MINUTE) // _DAY * _DAY + _DAY
        return Span(min(start, max(first, start // _DAY * _DAY)), max(end, min(last, midnight)))
    table = table_for(start, end)
    days = table.extended(np.array([start, end - MINUTE])).tolist()
    if days[0] >= 0:
        start = min(start, max(first, int(table.premarket[days[0]])))
    if days[1] >= 0:
        end = max(end, min(last, int(table.end[days[1]])))
    return Span(start, end)
