"""The bar service: closed bars of any timeframe, read through the store to the feed.

`market.series_plan` decides which series a question is answered from. Bars that the store lacks are fetched from the feed
once, even if several callers ask at the same time, and stored first. The newest bars of every series that was asked for
stay in memory and are checked against the store with one cheap query, so any number of processes see each other's writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from openbell.desk.bars.bar_assembly import BarAssembly, QuietEdges
from openbell.desk.bars.history_fetcher import CHUNK, Failure, HistoryFetcher
from openbell.desk.bars.single_flight import SingleFlight
from openbell.feeds.port import Feeds
from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock, bounded
from openbell.market.errors import DataError, FeedUnavailable, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.lookback import bucket_start, lookback_start
from openbell.market.series import Series
from openbell.market.series_plan import PlanPart, base_of, next_close
from openbell.market.timeframes import Timeframe
from openbell.market.trading_time import most_bars
from openbell.stores.port import BarStore, Span, Version
from openbell.stores.threads import CALLER, Threads

_TRIES = 3
_LONG_HISTORIES = 8
"""Histories of many instruments that are fetched at a time: each is in memory until it is stored."""
MOST_CACHED = 3000
"""The most bars that a calculation uses, at every timeframe."""
_FIRST_PIECE = 250
"""Half the bars of the first further piece of history that is fetched for a symbol that trades seldom."""
GRACE = 20.0
"""Seconds after its end at which a bar of a silent live feed counts as closed all the same."""


@dataclass(frozen=True, slots=True)
class BarCache:
    """The newest `depth` bars before `end`, or all if there are fewer, as the store had them at `versions`."""

    bars: Bars
    parts: tuple[PlanPart, ...]
    """What the bars are made of, oldest first."""
    versions: Mapping[Series, Version]
    """Of every series that they are made of or could be."""
    end: int
    depth: int

    def current(self, depth: int, end: int) -> bool:
        """Returns True if it holds `depth` bars up to `end`, provided that the store has not changed since."""
        return self.end == end and self.depth >= depth

    def native_parts(self, since: int) -> list[PlanPart]:
        """Returns its parts after a time that are not made of minutes."""
        return native_parts(self.parts, since)


def native_parts(parts: Sequence[PlanPart], since: int) -> list[PlanPart]:
    """Returns the parts after a time that are not made of minutes."""
    return [part for part in parts if part.base is not Timeframe.M1 and part.end > since]


class BarService:
    """Closed bars for everyone above."""

    def __init__(self, store: BarStore, feed: Feeds, clock: Clock, threads: Threads | None = None) -> None:
        self.store = store
        self.feed = feed
        self.threads = threads or Threads()
        self.clock = bounded(clock)
        """Never ahead of the machine's time: what has not happened is neither closed nor covered."""
        self.history = HistoryFetcher(store, feed, self.clock, self.threads)
        self.edges = QuietEdges(store)
        self._sourcing = BarAssembly(store, self.history, self.clock, self.edges)
        self._caches: dict[Series, BarCache] = {}
        self._flights = SingleFlight()
        self.failures: dict[Series, Failure] = {}
        """The failure of the feed for series of which stored bars are returned."""

    def closed_until(self) -> int:
        """The minute before which every bar is final."""
        now = self.clock.epoch()
        return int(min(now, max(self.feed.watermark(now), now - GRACE)) // MINUTE * MINUTE)

    async def find(self, symbol: str) -> Instrument:
        """The instrument of a symbol that is stored or known to the feed. Raises `InvalidSymbol`, `UnknownSymbol`."""
        instrument = parse(symbol)
        if not await self.known(instrument):
            raise UnknownSymbol(instrument.symbol, "neither stored nor known to the feed")
        return instrument

    async def known(self, instrument: Instrument) -> bool:
        """Whether the feed can deliver it or the store holds bars of it that had closed by the clock."""
        return self.feed.supports(instrument) or await self.threads.run(self.has_stored, instrument)

    def has_stored(self, instrument: Instrument) -> bool:
        """Whether the store holds bars of it that had closed by the clock. It may block."""
        end, series = self.closed_until(), Series(instrument)
        return bool(len(self.store.tail(series, 1, end)) or self._stored_timeframes(instrument, end))

    def _stored_timeframes(self, instrument: Instrument, end: int) -> list[Timeframe]:
        """The timeframes other than minutes of which a bar is stored that had closed at `end`, shortest first."""
        stored = self.store.timeframes(instrument)
        return [each for each in stored if len(self.store.resampled(Series(instrument, each), each, 1, end))]

    async def fill(self, instrument: Instrument, span: Span) -> Failure | None:
        """Fetch the minutes of a span that the store lacks. A failure is returned, not raised."""
        return await self.history.fill(Series(instrument), span)

    # The newest bars

    async def latest(self, instrument: Instrument, timeframe: Timeframe) -> Bars:
        """The newest closed bars, at most `MOST_CACHED`; empty if there are none. Raises `FeedUnavailable` when the feed
        fails and nothing is stored, `UnknownSymbol` when nobody knows it.
        """
        return await self.newest(instrument, timeframe, MOST_CACHED)

    async def newest(self, instrument: Instrument, timeframe: Timeframe, count: int) -> Bars:
        """The newest `count` closed bars, at most `MOST_CACHED`. Raises as `latest` does."""
        count = min(count, MOST_CACHED)
        return (await self._newest(Series(instrument, timeframe), count, self.closed_until())).tail(count)

    async def stored_timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """The timeframes other than minutes of which a bar is stored that had closed by the clock, shortest first."""
        return await self.threads.run(self._stored_timeframes, instrument, self.closed_until())

    async def parts_of(self, bars: Bars) -> list[PlanPart]:
        """What closed bars are made of, oldest first."""
        cached = self._caches.get(bars.series)
        if bars.timeframe is Timeframe.M1:
            return [PlanPart(Timeframe.M1, int(bars.time[0]), barlib.closed_at(bars))]
        if cached and len(cached.bars) and cached.bars.time[0] <= bars.time[0]:
            return [part for part in cached.parts if part.end > bars.time[0] and part.start <= bars.time[-1]]
        return await self.threads.run(self._parts_of, bars)

    def _parts_of(self, bars: Bars) -> list[PlanPart]:
        candidates = self._sourcing.candidates(bars.series)
        return self._sourcing.parts(bars.series, candidates, int(bars.time[0]), barlib.closed_at(bars))

    async def latest_of(self, instruments: Sequence[Instrument], timeframe: Timeframe) -> dict[Instrument, Bars]:
        """What `latest` returns for many instruments at once, without those for which it raises `DataError` or
        `UnknownSymbol`. Those whose bars are in memory take one query of the store together, those to which only stored
        bars were added one turn of a thread.
        """
        end = self.closed_until()
        caches = {each: cached for each in instruments if (cached := self._caches.get(Series(each, timeframe)))}
        versions = {series: version for cached in caches.values() for series, version in cached.versions.items()}
        touched = {series.instrument for series in await self._changed(versions)}
        found = {
            each: cached.bars
            for each, cached in caches.items()
            if cached.current(MOST_CACHED, end) and each not in touched
        }
        if behind := [each for each in touched if caches[each].depth >= MOST_CACHED]:
            found |= await self._read_again(behind, timeframe, end)
        rest = [each for each in instruments if each not in found]
        turn = asyncio.Semaphore(_LONG_HISTORIES)

        async def latest(instrument: Instrument) -> Bars | None:
            async with nullcontext() if instrument in caches else turn:
                return await self._latest_or_none(instrument, timeframe, end)

        bars = await asyncio.gather(*map(latest, rest))
        return found | {each: some for each, some in zip(rest, bars, strict=True) if some is not None}

    async def latest_stored(self, instruments: Sequence[Instrument], timeframe: Timeframe) -> dict[Instrument, Bars]:
        """What `latest` returns for many instruments, without those for which the feed has to be asked first."""
        ready = [each for each in instruments if self.history.is_known(each)]
        return await self._read_again(ready, timeframe, self.closed_until()) if ready else {}

    async def _read_again(
        self, instruments: list[Instrument], timeframe: Timeframe, end: int
    ) -> dict[Instrument, Bars]:
        """The bars of instruments whose stored bars have changed, except where the feed has to be asked for more."""

        def work() -> dict[Instrument, BarCache]:
            found: dict[Instrument, BarCache] = {}
            for each in instruments:
                with suppress(StoreError):  # the next read of this instrument by itself raises it again
                    cached = self._read(Series(each, timeframe), MOST_CACHED, end)
                    if len(cached.bars) and not self._sourcing.missing(cached.bars.series, MOST_CACHED, end):
                        found[each] = cached
            return found

        found = await self.threads.run(work)
        self._caches.update({cached.bars.series: cached for cached in found.values()})
        return {each: cached.bars for each, cached in found.items()}

    async def _latest_or_none(self, instrument: Instrument, timeframe: Timeframe, end: int) -> Bars | None:
        try:
            return (await self._newest(Series(instrument, timeframe), MOST_CACHED, end)).tail(MOST_CACHED)
        except (DataError, UnknownSymbol):
            return None

    async def _newest(self, series: Series, depth: int, end: int) -> Bars:
        """At least the newest `depth` closed bars. Principals read them apart: one would wait in the other's queue."""
        cached = self._caches.get(series)
        if cached and cached.current(depth, end) and not await self._changed(cached.versions):
            return cached.bars
        depth = max(depth, cached.depth) if cached else depth
        return await self._flights.run((CALLER.get(), series, end, depth), lambda: self._refresh(series, depth, end))

    async def _changed(self, versions: Mapping[Series, Version]) -> set[Series]:
        """The series whose stored bars may have changed since their versions."""
        known = self.store.versions
        return known.changed(versions) if known.is_quick else await self.threads.run(known.changed, versions)

    async def _refresh(self, series: Series, depth: int, end: int) -> Bars:
        for _ in range(_TRIES):
            failure = await self._sourcing.fill_parts(series, depth, end)
            cached, is_missing = await self.threads.run(self._read_checked, series, depth, end)
            if failure or not is_missing:
                break
        self._note(series, failure)
        if not len(cached.bars):
            if failure:
                raise failure
            if not await self.known(series.instrument):
                raise UnknownSymbol(series.instrument.symbol)
        self._caches[series] = cached
        return cached.bars

    def _read_checked(self, series: Series, depth: int, end: int) -> tuple[BarCache, bool]:
        """The newest bars; True if some have to be fetched: reading may find a damaged file and set it aside."""
        return self._read(series, depth, end), self._sourcing.missing(series, depth, end)

    def _note(self, series: Series, failure: Failure | None) -> None:
        self.failures.pop(series, None)
        if failure:
            self.failures[series] = failure

    def _read(self, series: Series, depth: int, end: int) -> BarCache:
        """The newest `depth` bars, of which most are usually in memory."""
        candidates = self._sourcing.candidates(series)
        versions = {each: self.store.versions.of(each) for each in candidates}

        def parts_since(count: int) -> list[PlanPart]:
            start = lookback_start(series.instrument, series.timeframe, count, end)
            return self._sourcing.parts(series, candidates, start, end)

        cached = self._caches.get(series)
        if cached and cached.end <= end and cached.depth >= depth and len(cached.bars):
            # Minutes are made of nothing else.
            newest = [] if series.timeframe is Timeframe.M1 else parts_since(depth)
            if kept := self._extended(cached, newest, versions, end):
                return kept
            depth = cached.depth
        parts = parts_since(depth)
        found = self._sourcing.bars_of(series, parts, depth)
        if len(found) < depth:  # it trades seldom, or only a part of its history is stored
            parts = self._sourcing.parts(series, candidates, 0, end)
            found = self._sourcing.bars_of(series, parts, depth)
        return BarCache(found, tuple(parts), versions, end, depth)

    def _extended(
        self, cached: BarCache, parts: Sequence[PlanPart], versions: Mapping[Series, Version], end: int
    ) -> BarCache | None:
        """The cached bars as they are now, if nothing but new minutes was added; None if more has changed."""
        series, minutes = cached.bars.series, Series(cached.bars.instrument)
        native = {each: version for each, version in cached.versions.items() if each != minutes}
        if cached.versions.keys() != versions.keys() or (native and self.store.versions.changed(native)):
            return None
        changed = self.store.versions.changed_since(minutes, cached.versions[minutes])
        again = cached.end if changed is None else max(0, min(changed, cached.end))
        again = bucket_start(series.instrument, series.timeframe, again)
        first = int(cached.bars.time[0])
        before = cached.native_parts(first)
        if native_parts(parts, first) != before or again <= first or (before and again < before[-1].end):
            return None
        closes = again if series.timeframe.intraday else next_close(series.instrument, series.timeframe, again)
        stored = self.store.read(minutes, again, end) if closes <= end else barlib.empty_of(minutes)  # no bar closed
        fresh = barlib.resample(stored, series.timeframe, end)
        if series.timeframe is not Timeframe.M1:  # without bars that would be made of a part of their minutes
            fresh = barlib.merge(barlib.empty_of(series), *(fresh.between(part.start, part.end) for part in parts))
        fresh = fresh.tail(cached.depth)
        kept = cached.bars.between(0, again).tail(cached.depth - len(fresh))
        # Joined arrays are new ones; a part of others would keep all of them in memory.
        bars = barlib.merge(kept, fresh) if len(kept) and len(fresh) else barlib.merge(kept, fresh).copy()
        return BarCache(bars, tuple(parts), versions, end, cached.depth)

    # Spans

    async def span(self, series: Series, start: int | None, end: int | None) -> Bars:
        """The closed bars that opened in [start, end), fetched as needed; without a start, what is stored.

        Raises as `latest` does.
        """
        closed = self.closed_until()
        last = closed if end is None else min(end, closed)
        failure: Failure | None = None
        if start is not None:
            failure = await self._sourcing.fill_span(series, start, last)
            self._note(series, failure)
        else:
            # What is stored is read by the same rule as what is fetched.
            with suppress(FeedUnavailable, UnknownSymbol):
                await self.history.natives(series.instrument)
        bars = await self.threads.run(self._sourcing.read_span, series, start or 0, last)
        if failure and not len(bars):
            raise failure
        return bars

    async def earliest(self, series: Series) -> int:
        """Returns the time before which stored bars are not shown: the feed's reach, where the feed knows its total."""
        reach = self._sourcing.reach(series)
        # Whether it knows totals, a span without bars shows too, and those of ten years need not be counted.
        if reach is None or await self.feed.count(series.instrument, series.timeframe, reach, reach) is None:
            return 0
        return reach

    # Pages

    async def page(self, instrument: Instrument, timeframe: Timeframe, limit: int, offset: int) -> tuple[Bars, int]:
        """`limit` closed bars before the `offset` newest, and how many there are in all.

        The total is what the feed and the store have up to the clock, whatever was asked before. It is exact where the feed
        knows it, where there is no feed, and on the last page; on an earlier page of a feed that does not know it, it is
        the most that the market can have made. Bars before the feed's reach are left out where the feed knows its total.
        Raises as `latest` does.
        """
        series, end = Series(instrument, timeframe), self.closed_until()
        with suppress(FeedUnavailable, UnknownSymbol):  # stored bars may be enough; otherwise it is raised below
            await self.history.natives(instrument)
        reach = self._sourcing.reach(series)
        counted = None if reach is None else await self.feed.count(instrument, timeframe, reach, end)
        if counted is not None and offset >= counted:
            return barlib.empty(instrument, timeframe), counted
        # One more than asked for: whether there are more is known then.
        found = await self._before(series, limit + 1, offset, end)
        if counted is not None and reach is not None:
            return found.between(reach, end).tail(min(limit, counted - offset)), counted
        shown = found.tail(limit)
        if reach is None or not len(found):
            return shown, await self.threads.run(self._sourcing.count, series, end)
        if len(found) == len(shown):
            return shown, offset + len(shown)
        older = await self.threads.run(self._sourcing.count, series, reach)
        most = older + most_bars(instrument, timeframe, reach, end)
        return shown, max(most, offset + len(found))

    async def _before(self, series: Series, count: int, offset: int, end: int) -> Bars:
        """`count` closed bars before the `offset` newest, or as many as there are."""
        depth = offset + count
        if depth <= MOST_CACHED:
            newest = await self._newest(series, depth, end)
            start = lookback_start(series.instrument, series.timeframe, depth, end)
            unreachable = isinstance(self.failures.get(series), FeedUnavailable)
            if len(newest) >= depth or unreachable or not self._sourcing.more_to_ask(series, start):
                last = max(0, len(newest) - offset)
                return newest.take(slice(max(0, last - count), last))
        failure = await self._fill_back(series, depth, end)
        self._note(series, failure)

        def read() -> Bars:
            parts = self._sourcing.parts(series, self._sourcing.candidates(series), 0, end)
            return self._sourcing.bars_of(series, parts, count, offset)

        found = await self.threads.run(read)
        if failure and not len(found) and not await self.threads.run(self._sourcing.count, series, end):
            raise failure
        return found

    async def _fill_back(self, series: Series, depth: int, end: int) -> Failure | None:
        """Ask the feed for `depth` bars; of one that trades seldom, piece by piece until there are so many.

        Pieces grow, and the largest without a bar is where a history begins: further back the feed is not asked.
        """
        failure = await self._sourcing.fill_parts(series, depth, end)
        base = base_of(series.instrument, series.timeframe, self.history.known_natives(series.instrument))
        at = lookback_start(series.instrument, series.timeframe, depth, end)
        step = max(_FIRST_PIECE, depth)
        while not failure and base is not None and self._sourcing.more_to_ask(series, at):
            if await self.threads.run(self._sourcing.count, series, end) >= depth:
                break
            step = min(CHUNK, 2 * step)
            start = at - step * base.seconds
            failure = await self.history.fill(series.at(base), Span(start, at))
            newest = await self.threads.run(self.store.tail, series.at(base), 1, at)
            if step == CHUNK and (not len(newest) or newest.time[0] < start):
                break
            at = start
        return failure
