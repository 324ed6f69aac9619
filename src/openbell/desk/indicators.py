"""Indicators of any symbol: closed bars, what else the indicators need, and their numbers.

Charts and alerts ask here; each gets the same numbers for the same bars.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from openbell.desk.bar_facts import stored_instead
from openbell.desk.bars import RING, BarService
from openbell.feeds.port import Feeds
from openbell.indicators.day_sums import day_starts
from openbell.indicators.evaluation import Computed, IndicatorRequest, evaluate
from openbell.indicators.regular_hours import partly_regular, regular_part_from_minutes, session_days
from openbell.market.bars import Bars, bucket_bounds, empty, merge
from openbell.market.errors import InsufficientData
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore, Span

_DAY = 86400
_BEFORE = 3 * _DAY
_PIECE = 30 * _DAY
_WARM_UP = 800
"""The fewest bars before the first one shown."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The newest closed bars of a series with indicators on them."""

    bars: Bars
    indicators: list[Computed]
    whole: Bars
    """The bars before them too: what some chart styles begin with."""


@dataclass(frozen=True, slots=True)
class _RegularPart:
    """What was traded of bars in regular hours, and which of the bars have minutes, from which that is computed."""

    bars: Bars
    has_minutes: npt.NDArray[np.bool_]

    def note(self, count: int) -> str | None:
        """Returns a note if some of the latest `count` bars overlap regular hours and have no minutes."""
        overlapping = session_days(self.bars.tail(count)) >= 0
        missing = int((overlapping & ~self.has_minutes[-count:]).sum())
        if not missing:
            return None
        return f"computed from minutes of regular hours; {missing} of {int(overlapping.sum())} bars have no minutes"


class IndicatorService:
    """What charts and alerts ask."""

    def __init__(self, bars: BarService, feed: Feeds, worker: Executor) -> None:
        """`worker` computes, so that the event loop goes on."""
        self._bars = bars
        self._feed = feed
        self._worker = worker

    async def evaluate(
        self, instrument: Instrument, timeframe: Timeframe, count: int, wanted: list[IndicatorRequest]
    ) -> Evaluation:
        """The newest `count` closed bars; indicators are computed on bars before them too, so that they are warm."""
        warm_up = max((_warm_up(each, timeframe) for each in wanted), default=_WARM_UP)
        bars = await self._bars.newest(instrument, timeframe, count + warm_up)
        if not len(bars):
            raise InsufficientData(instrument.symbol, 0, 1, await stored_instead(self._bars, instrument))
        extras = await self._extras(bars, wanted)
        regular = await self._regular(bars, count, wanted)
        loop = asyncio.get_running_loop()
        part = None if regular is None else regular.bars
        found = await loop.run_in_executor(self._worker, evaluate, bars, count, wanted, extras, part)
        if regular and (note := regular.note(count)):
            found = [replace(each, note=note) if each.request.indicator.regular else each for each in found]
        return Evaluation(bars.tail(count), found, bars)

    async def _extras(self, bars: Bars, wanted: list[IndicatorRequest]) -> dict[str, Extra]:
        kinds = {kind for each in wanted for kind in each.indicator.needs}
        # A value holds until the next one: the first bars need the last one before them.
        start, end = int(bars.time[0]) - _BEFORE, int(bars.time[-1]) + bars.timeframe.seconds
        return {kind: await self._feed.extra(kind, bars.instrument, start, end) for kind in sorted(kinds)}

    async def _regular(self, bars: Bars, count: int, wanted: list[IndicatorRequest]) -> _RegularPart | None:
        """What was traded of the bars in regular hours, if somebody needs that and the bars themselves do not tell."""
        if not any(each.indicator.regular for each in wanted) or not partly_regular(bars).any():
            return None
        span = _regular_span(bars, len(bars) - count)
        # Longer bars need not be made of minutes. A failure is logged; without minutes there are no values.
        await self._bars.fill(bars.instrument, span)
        return await self._bars.threads.run(_read_regular, self._bars.store, bars, span)


def _warm_up(request: IndicatorRequest, timeframe: Timeframe) -> int:
    """Bars before the first one shown after which the start of the series changes no value by more than 1e-10."""
    indicator = request.indicator
    if indicator.cumulative:
        return RING
    # The session of the first bar, and the one before it.
    days = 2 * _DAY // timeframe.seconds if indicator.regular or indicator.by_day else 0
    return max(_WARM_UP, 24 * indicator.warmup(**request.settings), days)


def _regular_span(bars: Bars, first: int) -> Span:
    """From one session before the first shown bar's on: nothing that needs regular hours looks further back."""
    day = session_days(bars)
    sessions = [at for at in day_starts(day).tolist() if day[at] >= 0 and at <= first]
    return Span(int(bars.time[sessions[-2] if len(sessions) > 1 else 0]), int(bars.time[-1]) + bars.timeframe.seconds)


def _read_regular(store: BarStore, bars: Bars, span: Span) -> _RegularPart:
    """What was traded of the bars in regular hours, from the minutes of a span."""
    start, end = span.start, span.end
    # In pieces, so that a year of minutes is never in memory at once; bars within a day do not cross midnight.
    edges = [start, *range(start - start % _DAY + _PIECE, end, _PIECE), end]
    pieces, with_minutes = [], [bars.time[:0]]
    for a, b in pairwise(edges):
        minutes = store.read(Series(bars.instrument), a, b)
        pieces.append(regular_part_from_minutes(bars.between(a, b), minutes))
        with_minutes.append(np.unique(bucket_bounds(bars.instrument, bars.timeframe, minutes.time)[0]))
    part = merge(regular_part_from_minutes(bars.between(0, start), empty(bars.instrument)), *pieces)
    return _RegularPart(part, np.isin(bars.time, np.concatenate(with_minutes)))
