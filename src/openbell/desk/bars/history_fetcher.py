"""Fetches history that the store lacks from the feed, and stores it.

Small parts that are ready at the same time are stored in one durable transaction.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from openbell.desk.bars.adjustments import ComparedBars, described, factor, is_adjusted, to_compare, widened
from openbell.desk.bars.bar_checks import screen
from openbell.desk.bars.history_coverage import covered_by
from openbell.desk.bars.single_flight import SingleFlight
from openbell.feeds.port import Feeds
from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock
from openbell.market.errors import FeedUnavailable, OpenbellError, SourceConflict, StoreError, UnknownSymbol
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.lookback import bucket_start
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.series_plan import Native, published
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day
from openbell.stores.port import BarStore, Span
from openbell.stores.threads import Threads, own_context

log = logging.getLogger(__name__)
T = TypeVar("T")

CHUNK = 43_200
"""Bars that are fetched and stored at once; of minutes, thirty days."""
_REMEMBERED = 5.0
"""Seconds for which a slow failure is returned without asking again: one call would ask several times."""
_SLOW = 2.0
"""Seconds after which a failure is slow: the feed has tried several times."""
_ASK_AGAIN = 60.0
"""Seconds after which a gap is asked for again that the vendor has left in an answer."""
_SOURCES = 2
"""Sources whose bars can be set aside while one span is filled: the feed and an import."""
_NONE: Mapping[Timeframe, Native] = MappingProxyType({})

Failure = FeedUnavailable | UnknownSymbol | StoreError
SMALL = 500
"""The most bars of a part that is grouped; a larger one is written alone."""


@dataclass(slots=True)
class _Refusal:
    """Spans that the store refused, because its bars of the series come from another source."""

    epoch: int
    """Of the series: it changes when stored bars are replaced."""
    error: SourceConflict
    spans: list[Span] = field(default_factory=list)


class _Readjusted(Exception):
    """Stored bars were set aside, because the vendor has adjusted its prices again."""


class HistoryFetcher:
    """The history of a feed, read through the store."""

    def __init__(self, store: BarStore, feed: Feeds, clock: Clock, threads: Threads) -> None:
        self._store = store
        self._feed = feed
        self._clock = clock
        self._threads = threads
        self._writes = GroupedWrites(store, threads)
        self._flights = SingleFlight()
        """Questions to the feed: all principals share them, so that they belong to none."""
        self._natives: dict[Instrument, Mapping[Timeframe, Native]] = {}
        self._failed: dict[str, tuple[float, FeedUnavailable | None]] = {}
        """By feed: its last failure, and the monotonic time until which it is not asked again."""
        self._looked_at: set[Series] = set()
        self._silent: dict[tuple[Series, int], float] = {}
        """By the start of a gap that an answer has left: the monotonic time from which it is asked for again."""
        self.on_stored: Callable[[], None] = lambda: None
        """Called after bars were stored."""
        self._refused: dict[Series, _Refusal] = {}
        self.fetches: Counter[Instrument] = Counter()
        """How often the feed has delivered history of an instrument: whether an answer needed it can be told from that."""
        self.unreachable: dict[str, FeedUnavailable] = {}
        """By feed: the failure of its last answer; a feed whose last answer was good is not here."""

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        """Returns what the feed has of an instrument, by timeframe; empty if it has nothing that would be stored.

        Raises `FeedUnavailable`.
        """
        if not self._delivers(instrument):
            return _NONE
        if instrument not in self._natives:
            await self._flights.run(instrument, lambda: self._ask_natives(instrument), own_context())
        return self._natives[instrument]

    async def _ask_natives(self, instrument: Instrument) -> None:
        self._natives[instrument] = await self._ask(instrument, self._feed.natives(instrument))

    def known_natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        """Returns what `natives` has returned; empty if it has not been called or the feed has nothing."""
        return self._natives.get(instrument, _NONE) if self._delivers(instrument) else _NONE

    def is_known(self, instrument: Instrument) -> bool:
        """Returns True if `known_natives` tells what the feed has of an instrument."""
        return instrument in self._natives or not self._delivers(instrument)

    def _delivers(self, instrument: Instrument) -> bool:
        """Returns True if the feed has bars of an instrument that are stored."""
        return self._feed.supports(instrument) and self._feed.route(instrument).source is not None

    def reach(self, series: Series) -> int | None:
        """Returns the start of the first whole bar that the feed has of a series; None if it has none."""
        native = self.known_natives(series.instrument).get(series.timeframe)
        if native is None:
            return None
        earliest = native.earliest(self._clock.epoch())
        start = bucket_start(series.instrument, series.timeframe, earliest)
        return start if start == earliest else start + series.timeframe.seconds

    def complete(self, series: Series, end: int) -> int:
        """Returns the time before which the feed's history of a series will not grow, at most `end`, never after now."""
        now = self._clock.epoch()
        native = self.known_natives(series.instrument).get(series.timeframe)
        if series.timeframe is Timeframe.M1 or native is None:
            supported = self._feed.supports(series.instrument)
            feed = self._feed.route(series.instrument) if supported else self._feed
            return min(end, int(min(now, feed.watermark(now)) // MINUTE * MINUTE))
        return min(end, published(series.instrument, series.timeframe, native, now))

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """Returns what the feed could still deliver of a span by now. It may block."""
        reach = self.reach(series)
        if reach is None:
            return []
        start, end = max(span.start, reach), min(span.end, int(self._clock.epoch() // MINUTE * MINUTE))
        if series.timeframe is not Timeframe.M1:  # a longer bar is not asked for before it is published
            end = self.complete(series, end)
        gaps = self._store.gaps(series, Span(start, end)) if start < end else []
        return _without(gaps, found.spans) if gaps and (found := self._refusal(series)) else gaps

    async def _gaps(self, series: Series, span: Span) -> list[Span]:
        """Returns what `gaps` does. Only the first look at a series takes long: it may read and mend all of its files.

        Later ones are not made in a thread, so that what is fetched of many series at once is stored in one write, unless
        each look at the store may take long.
        """
        if series in self._looked_at and self._store.versions.is_quick:
            return self.gaps(series, span)
        found = await self._threads.run(self.gaps, series, span)
        self._looked_at.add(series)
        return found

    def refused(self, series: Series) -> SourceConflict | None:
        """Returns why the store refuses bars of the feed beside those that it has of a series; None if it does not."""
        found = self._refusal(series)
        return found.error if found else None

    def _refusal(self, series: Series) -> _Refusal | None:
        found = self._refused.get(series)
        return found if found and found.epoch == self._store.versions.of(series).epoch else None

    def _refuse_span(self, series: Series, span: Span, error: SourceConflict) -> None:
        """Fetch a span no more until the stored bars are replaced. Logged once."""
        found = self._refusal(series)
        if not found:
            log.warning("%s; stored bars are used", error)
            found = self._refused[series] = _Refusal(self._store.versions.of(series).epoch, error)
        found.spans.append(span)

    async def fill(self, series: Series, span: Span) -> Failure | None:
        """Fetch what the store lacks of a span. A failure is returned, not raised: stored bars may be enough."""
        for _ in range(_SOURCES):
            with suppress(_Readjusted):
                return await self._fill(series, span, compare=True)
        return await self._fill(series, span, compare=False)

    async def _fill(self, series: Series, span: Span, *, compare: bool) -> Failure | None:
        """See `fill`. With `compare`, raises `_Readjusted` after stored bars were set aside."""
        if self._feed.source is None:
            return None
        try:
            await self.natives(series.instrument)
        except (FeedUnavailable, UnknownSymbol) as error:
            log.warning("%s: %s", series, error)
            return error
        source = self._feed.route(series.instrument).source if self._delivers(series.instrument) else None
        if source is None:
            return None
        newest = self.complete(series, int(self._clock.epoch()))
        for gap in _pieces(await self._gaps(series, span), CHUNK * series.timeframe.seconds):
            if time.monotonic() < self._silent.get((series, gap.start), 0.0):
                continue
            try:
                fetch = partial(self._fetch, series, gap, source, newest, compare=compare)
                if not await self._flights.run((series, gap, compare), fetch, own_context()):
                    return None
            except SourceConflict as error:
                self._refuse_span(series, gap, error)
            except (FeedUnavailable, UnknownSymbol, StoreError) as error:
                log.warning("%s: %s", series, error)
                return error
        return self.refused(series)

    async def _fetch(self, series: Series, gap: Span, source: Source, newest: int, *, compare: bool) -> bool:
        """Fetch and store one gap. Returns False if the timeframe is not used any longer."""
        stored: list[ComparedBars] = []
        if compare and is_adjusted(series, source):
            stored = await self._threads.run(to_compare, self._store, series, source, gap)
        asked = widened(gap, stored)
        # What a vendor may still add to is stored, but asked for again. Taken before the question: the answer cannot be
        # newer than that.
        complete = self.complete(series, gap.end)
        bars = await self._ask(series.instrument, self._feed.history(series, asked.start, asked.end))
        self.fetches[series.instrument] += 1
        if not _fits(bars):
            self._refuse(bars)
            return False
        for some in stored:
            if by := factor(some, bars):
                await self._set_aside(series, source, some.source, by)
        bars = bars.between(gap.start, gap.end)
        good, refused, _ = await self._screened(bars)
        for reason, count in refused.items():
            log.warning("%s: refused %d bars of the history: %s", series, count, reason)
        kept = barlib.merge(barlib.empty_of(series), *good).between(gap.start, gap.end)
        wrong = np.setdiff1d(bars.time, kept.time) if refused else bars.time[:0]
        spans = covered_by(kept, wrong, Span(gap.start, complete), complete >= newest) if complete > gap.start else []
        await self._writes.write(kept, source, spans[0] if spans else None)
        for span in spans[1:]:
            await self._writes.write(barlib.empty_of(series), source, span)
        for left in {gap.start, *(span.end for span in spans)} - {complete, *(span.start for span in spans)}:
            self._silent[series, left] = time.monotonic() + _ASK_AGAIN
        self.on_stored()
        return True

    async def _set_aside(self, series: Series, source: Source, owner: Source, by: float) -> None:
        """Stop using bars of `owner` that the vendor has adjusted again since, and raise `_Readjusted`."""
        reason = described(source, series.instrument, by)
        if owner != source:
            reason += " since the import; import a newer file"
        if not await self._threads.run(self._store.set_aside, series.instrument, owner, reason):
            raise SourceConflict(
                f"{reason}; the bars of a read-only home are not replaced: fetch them with a desk that may write",
                symbol=series.instrument.symbol,
            )
        self._silent.clear()
        raise _Readjusted

    async def _ask(self, instrument: Instrument, question: Awaitable[T]) -> T:
        """Ask the feed. After a slow failure, the next questions fail at once for a while."""
        name = self._feed.route(instrument).name
        until, failure = self._failed.get(name, (0.0, None))
        began = time.monotonic()
        if failure is not None and began < until:
            if isinstance(question, Coroutine):
                question.close()
            raise failure
        try:
            answer = await question
        except FeedUnavailable as error:
            self.unreachable[name] = error
            if (ended := time.monotonic()) - began > _SLOW:
                self._failed[name] = (ended + _REMEMBERED, error)
            raise
        self.unreachable.pop(name, None)
        return answer

    def _refuse(self, bars: Bars) -> None:
        """Use a native timeframe no longer, because its bars are cut at other times than ours.

        Others that would be cut in the same way are not used either: if days begin at 16:00 UTC, so do 6 and 12 hours.
        """
        series = bars.series
        log.warning("%s: the bars of %s are cut at other times; smaller ones are used", series, self._feed.name)
        starts, _ = barlib.bucket_bounds(bars.instrument, bars.timeframe, bars.time)
        by_session = bars.instrument.asset_class is AssetClass.STOCK or by_trading_day(bars.instrument, bars.timeframe)
        self._natives[series.instrument] = {
            each: native
            for each, native in self._natives[series.instrument].items()
            if each is not series.timeframe and (by_session or not ((bars.time - starts) % each.seconds).any())
        }

    async def _screened(self, bars: Bars) -> tuple[list[Bars], Counter[str], set[Instrument]]:
        """A few bars are screened here: a thread would take longer to answer."""
        now = self._clock.epoch()
        return screen([bars], now) if len(bars) <= SMALL else await self._threads.run(screen, [bars], now)


def _fits(bars: Bars) -> bool:
    """Returns True if every bar opens at the start of a bucket. Minutes are checked one by one when they are screened."""
    if bars.timeframe is Timeframe.M1:
        return True
    starts, _ = barlib.bucket_bounds(bars.instrument, bars.timeframe, bars.time)
    return bool((starts == bars.time).all())


def _without(spans: list[Span], left_out: list[Span]) -> list[Span]:
    """Spans without the parts that lie in others."""
    for out in left_out:
        cut = ((Span(each.start, min(each.end, out.start)), Span(max(each.start, out.end), each.end)) for each in spans)
        spans = [part for parts in cut for part in parts if part.start < part.end]
    return spans


def _pieces(spans: list[Span], longest: int) -> Iterator[Span]:
    """Spans cut into pieces, newest first: what was stored stays if a later piece fails."""
    for span in reversed(spans):
        end = span.end
        while end > span.start:
            start = max(span.start, end - longest)
            yield Span(start, end)
            end = start


@dataclass(frozen=True, slots=True)
class _Key:
    """What the parts of a group have in common."""

    source: Source
    covers: Span | None


@dataclass(slots=True)
class _Group:
    task: asyncio.Task[None]
    parts: list[Bars] = field(default_factory=list)


class GroupedWrites:
    """Writes bars of many instruments to a store."""

    def __init__(self, store: BarStore, threads: Threads) -> None:
        self._store = store
        self._threads = threads
        self._groups: dict[_Key, _Group] = {}

    async def write(self, bars: Bars, source: Source, covers: Span | None) -> None:
        """Returns when the bars are durable. Raises as `BarStore.write` does, for reasons of these bars alone.

        A caller that is cancelled leaves its bars to be written.
        """
        key = _Key(source, covers)
        if len(bars) > SMALL:
            await self._write([bars], key)
            return
        group = self._groups.get(key)
        if group is None:
            # Its first step comes after those of all tasks that are ready now: they add their parts before.
            task = asyncio.create_task(self._write_group(key), context=own_context())
            task.add_done_callback(_look)
            group = self._groups[key] = _Group(task)
        group.parts.append(bars)
        try:
            await asyncio.shield(group.task)
        except OpenbellError:
            if len(group.parts) == 1:
                raise
            await self._write([bars], key)

    async def _write_group(self, key: _Key) -> None:
        await self._write(self._groups.pop(key).parts, key)

    async def _write(self, parts: list[Bars], key: _Key) -> None:
        await self._threads.run(self._store.write, parts, key.source, covers=key.covers)


def _look(done: asyncio.Task[None]) -> None:
    """Retrieve a failure whose callers have all left, so that it is not reported as lost."""
    if not done.cancelled():
        done.exception()
