"""Finds out that a vendor has adjusted its history again, as after a split: stored bars then have other prices.

A split changes all earlier prices of a source that adjusts for splits, a dividend those of one that adjusts for dividends.
So when days are fetched, the last ones that are stored are fetched again and compared.
"""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Bars, empty_of
from openbell.market.instruments import AssetClass
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore, Span

_COMPARED = 3
"""Days that are fetched again. A vendor corrects one day now and then, but not three by the same factor."""
_NEAR = 14 * 86400
"""Seconds before a gap in which they are looked for."""
_CHANGED, _SAME = 5e-4, 1e-4
"""The least change of a price by an adjustment, and how much the changes of several days may differ."""


def to_compare(store: BarStore, series: Series, source: Source, start: int) -> Bars:
    """Returns stored bars before `start` that tell whether the source has adjusted its prices again; maybe empty."""
    if not is_adjusted(series, source):
        return empty_of(series)
    found = store.tail(series, _COMPARED, start)
    if len(found) < _COMPARED or found.time[0] < start - _NEAR:
        return empty_of(series)
    return found if store.sources(series, Span(int(found.time[0]), start)) == {source} else empty_of(series)


def is_adjusted(series: Series, source: Source) -> bool:
    """Returns True if the bars of a series of a source can be compared: days of a stock that are not raw."""
    stock = series.instrument.asset_class is AssetClass.STOCK
    return stock and series.timeframe is Timeframe.D1 and source.adjustment != "raw"


def factor(stored: Bars, fetched: Bars) -> float | None:
    """Returns by what the prices of stored bars have been multiplied; None if they have not."""
    if not len(stored) or not np.isin(stored.time, fetched.time).all():
        return None
    changes = fetched.take(np.isin(fetched.time, stored.time)).close / stored.close
    middle = float(np.median(changes))
    return middle if abs(middle - 1) > _CHANGED and (np.abs(changes / middle - 1) < _SAME).all() else None
