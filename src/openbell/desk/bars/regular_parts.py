"""The regular-hours part of a stock's bars, computed from its minutes, which are fetched as needed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from openbell.desk.bars.service import BarService
from openbell.indicators.regular_hours import regular_part_from_minutes, session_days
from openbell.market.bars import Bars, bucket_bounds, empty, merge
from openbell.market.series import Series
from openbell.stores.port import BarStore, Span

_DAY = 86400
_PIECE = 30 * _DAY


@dataclass(frozen=True, slots=True)
class RegularPart:
    """The part of each bar that was traded in regular hours, and which of the bars have minutes to compute it from."""

    bars: Bars
    has_minutes: npt.NDArray[np.bool_]

    def missing(self, count: int) -> tuple[int, int]:
        """Of the latest `count` bars: how many overlap regular hours without minutes, and how many overlap them at all."""
        overlapping = session_days(self.bars.tail(count)) >= 0
        return int((overlapping & ~self.has_minutes[-count:]).sum()), int(overlapping.sum())

    def note(self, count: int) -> str | None:
        """Returns a note if some of the latest `count` bars overlap regular hours and have no minutes."""
        missing, overlapping = self.missing(count)
        if not missing:
            return None
        return f"computed from minutes of regular hours; {missing} of {overlapping} bars have no minutes"


async def regular_part_of(service: BarService, bars: Bars, span: Span) -> RegularPart:
    """Returns the regular-hours part of bars, from the minutes of a span.

    Minutes that the store lacks are fetched. A failure of the feed is logged, and the bars then have no minutes.
    """
    await service.fill(bars.instrument, span)
    return await service.threads.run(_read, service.store, bars, span)


def _read(store: BarStore, bars: Bars, span: Span) -> RegularPart:
    start, end = span.start, span.end
    # In pieces, so that a year of minutes is never in memory at once; bars within a day do not cross midnight.
    edges = [start, *range(start - start % _DAY + _PIECE, end, _PIECE), end]
    pieces, with_minutes = [], [bars.time[:0]]
    for a, b in pairwise(edges):
        minutes = store.read(Series(bars.instrument), a, b)
        pieces.append(regular_part_from_minutes(bars.between(a, b), minutes))
        with_minutes.append(np.unique(bucket_bounds(bars.instrument, bars.timeframe, minutes.time)[0]))
    part = merge(regular_part_from_minutes(bars.between(0, start), empty(bars.instrument)), *pieces)
    return RegularPart(part, np.isin(bars.time, np.concatenate(with_minutes)))
