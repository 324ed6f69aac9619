"""The bar service: closed bars of any timeframe, read through the store to the feed.

What the store lacks is asked of the feed once, however many ask at the same time, and stored before it is answered. The
newest 3,000 bars of every series that was asked for stay in memory and are checked against the store with one cheap query,
so any number of processes see each other's writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from openbell.desk.flight import SingleFlight
from openbell.desk.screening import screen
from openbell.desk.writes import SMALL, GroupedWrites
from openbell.feeds.port import Feed
from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.capacity import most_bars
from openbell.market.clock import Clock, bounded
from openbell.market.errors import DataError, FeedUnavailable, SourceConflict, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.lookback import bucket_start, lookback_start
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore, Span, Version
from openbell.stores.threads import Threads

log = logging.getLogger(__name__)

_WEEK, _MONDAY = 604800, 345600
_TRIES = 3
_CHUNK = 43_200
"""Minutes that are read or fetched at once: thirty days."""

_LONG_HISTORIES = 8
"""Histories of many instruments that are fetched at a time: each is in memory until it is stored."""

RING = 3000
"""The most bars that a calculation uses, at every timeframe."""
GRACE = 20.0
"""Seconds after its end at which a bar of a silent live feed counts as closed all the same."""


@dataclass(frozen=True, slots=True)
class _Ring:
    """The newest `depth` bars before `end`, or all if there are fewer, as the store had them at `version`."""

    bars: Bars
    version: Version
    end: int
    depth: int

    def current(self, depth: int, end: int) -> bool:
        """Returns True if it holds `depth` bars up to `end`, provided that the store has not changed since."""
        return self.end == end and self.depth >= depth


class BarService:
    """Closed bars for everyone above."""

    def __init__(self, store: BarStore, feed: Feed, clock: Clock, threads: Threads | None = None) -> None:
        self.store = store
        self.feed = feed
        self.threads = threads or Threads()
        self.clock = bounded(clock)
        """Never ahead of the machine's time: what has not happened is neither closed nor covered."""
        self._rings: dict[tuple[Instrument, Timeframe], _Ring] = {}
        self._flights = SingleFlight()
        self.on_stored: Callable[[], None] = lambda: None
        """Called after bars were stored."""
        self._writes = GroupedWrites(store, self.threads)
        self.fetches: Counter[Instrument] = Counter()
        """How often the feed has delivered history of an instrument: whether an answer needed it can be told from that."""

    def closed_until(self) -> int:
        """The minute before which every bar is final."""
        now = self.clock.epoch()
        final = min(now, max(self.feed.watermark(now), now - GRACE))
        return int(final // MINUTE * MINUTE)

    def _complete(self, end: int) -> int:
        """The minute before which the feed's history will not grow, at most `end`, and never after now."""
        now = self.clock.epoch()
        return min(end, int(min(now, self.feed.watermark(now)) // MINUTE * MINUTE))

    async def find(self, symbol: str) -> Instrument:
        """The instrument of a symbol that is stored or known to the feed. Raises `InvalidSymbol`, `UnknownSymbol`."""
        instrument = parse(symbol)
        if not await self.known(instrument):
            raise UnknownSymbol(instrument.symbol, "neither stored nor known to the feed")
        return instrument

    async def known(self, instrument: Instrument) -> bool:
        """Whether the feed can deliver it or the store holds bars of it that had closed by the clock."""
        if self.feed.supports(instrument):
            return True
        return bool(len(await self.threads.run(self.store.tail, instrument, 1, self.closed_until())))

    async def latest(self, instrument: Instrument, timeframe: Timeframe) -> Bars:
        """The newest closed bars, at most `RING`; empty if there are none.

        Raises `FeedUnavailable` when the feed fails and nothing is stored, `UnknownSymbol` when nobody knows it.
        """
        return (await self._newest(instrument, timeframe, RING, self.closed_until())).tail(RING)

    async def latest_of(self, instruments: Sequence[Instrument], timeframe: Timeframe) -> dict[Instrument, Bars]:
        """What `latest` returns for many instruments at once, without those for which it raises `DataError` or
        `UnknownSymbol`. Those whose bars are in memory take one query of the store together, those to which only stored
        bars were added one turn of a thread.
        """
        end = self.closed_until()
        rings = {each: ring for each in instruments if (ring := self._rings.get((each, timeframe)))}
        changed = self.store.changed({each: ring.version for each, ring in rings.items()})
        found = {each: ring.bars for each, ring in rings.items() if ring.current(RING, end) and each not in changed}
        if behind := [each for each in changed if rings[each].depth >= RING]:
            found |= await self._read_again(behind, timeframe, end)
        rest = [each for each in instruments if each not in found]
        turn = asyncio.Semaphore(_LONG_HISTORIES)

        async def latest(instrument: Instrument) -> Bars | None:
            async with nullcontext() if instrument in rings else turn:
                return await self._latest_or_none(instrument, timeframe, end)

        bars = await asyncio.gather(*map(latest, rest))
        return found | {each: some for each, some in zip(rest, bars, strict=True) if some is not None}

    async def _read_again(
        self, instruments: list[Instrument], timeframe: Timeframe, end: int
    ) -> dict[Instrument, Bars]:
        """The bars of instruments whose stored bars have changed, except where the feed has to be asked for more."""

        def work() -> dict[Instrument, _Ring]:
            read = {each: self._read(each, timeframe, RING, end) for each in instruments}
            return {
                each: ring
                for each, ring in read.items()
                if len(ring.bars)
                and not self._gaps(each, Span(lookback_start(each, timeframe, RING, end), self._complete(end)))
            }

        found = await self.threads.run(work)
        self._rings.update({(each, timeframe): ring for each, ring in found.items()})
        return {each: ring.bars for each, ring in found.items()}

    async def _latest_or_none(self, instrument: Instrument, timeframe: Timeframe, end: int) -> Bars | None:
        try:
            return (await self._newest(instrument, timeframe, RING, end)).tail(RING)
        except (DataError, UnknownSymbol):
            return None

    async def newest(self, instrument: Instrument, timeframe: Timeframe, count: int) -> Bars:
        """The newest `count` closed bars, at most `RING`. Raises as `latest` does."""
        return (await self._newest(instrument, timeframe, min(count, RING), self.closed_until())).tail(count)

    async def page(self, instrument: Instrument, timeframe: Timeframe, limit: int, offset: int) -> tuple[Bars, int]:
        """`limit` closed bars before the `offset` newest, and how many there are in all.

        The total is what the feed and the store have up to the clock, whatever was asked before. It is exact where the feed
        knows it, where there is no feed, and on the last page; on an earlier page of a feed that does not know it, it is
        the most that the market can have made. Bars before the feed's reach are left out where the feed knows its total.
        Raises as `latest` does.
        """
        end = self.closed_until()
        reach = self._reach(instrument)
        counted = None if reach is None else self.feed.count(instrument, timeframe, reach, end)
        if counted is not None and offset >= counted:
            return barlib.empty(instrument, timeframe), counted
        # One more than asked for: whether there are more is known then.
        found = await self._before(instrument, timeframe, limit + 1, offset, end)
        if counted is not None and reach is not None:
            return found.between(reach, end).tail(min(limit, counted - offset)), counted
        shown = found.tail(limit)
        if reach is None or not len(found):
            return shown, await self.threads.run(self.store.count, instrument, timeframe, end)
        if len(found) == len(shown):
            return shown, offset + len(shown)
        older = await self.threads.run(self.store.count, instrument, timeframe, reach)
        most = older + most_bars(instrument, timeframe, reach, end)
        return shown, max(most, offset + len(found))

    async def _before(self, instrument: Instrument, timeframe: Timeframe, count: int, offset: int, end: int) -> Bars:
        """`count` closed bars before the `offset` newest, or as many as there are."""
        depth = offset + count
        if depth <= RING:
            newest = await self._newest(instrument, timeframe, depth, end)
            if len(newest) >= depth or not self._more_to_ask(
                instrument, lookback_start(instrument, timeframe, depth, end)
            ):
                last = max(0, len(newest) - offset)
                return newest.take(slice(max(0, last - count), last))
        failure = await self._fill_back(instrument, timeframe, depth, end)
        found = await self.threads.run(self.store.resampled, instrument, timeframe, count, end, offset)
        if failure and not len(found) and not len(await self.threads.run(self.store.tail, instrument, 1, end)):
            raise failure
        return found

    async def _fill_back(
        self, instrument: Instrument, timeframe: Timeframe, depth: int, end: int
    ) -> FeedUnavailable | UnknownSymbol | StoreError | None:
        """Ask the feed for `depth` bars; of one that trades seldom, month by month until there are so many.

        A month without a bar is where a history begins: further back the feed is not asked.
        """
        at = lookback_start(instrument, timeframe, depth, end)
        failure = await self.fill(instrument, Span(at, end))
        while not failure and self._more_to_ask(instrument, at):
            if len(await self.threads.run(self.store.resampled, instrument, timeframe, 1, end, depth - 1)):
                break
            start = at - _CHUNK * MINUTE
            failure = await self.fill(instrument, Span(start, at))
            newest = await self.threads.run(self.store.tail, instrument, 1, at)
            if not len(newest) or newest.time[0] < start:
                break
            at = start
        return failure

    def _reach(self, instrument: Instrument) -> int | None:
        """The time from which on the feed has bars of an instrument; None if it has none.

        The feed's edge slides with the clock; whole weeks from it on leave no bucket cut.
        """
        if self.feed.source is None or not self.feed.supports(instrument):
            return None
        return _next_monday(self.feed.earliest(self.clock.epoch()))

    def _more_to_ask(self, instrument: Instrument, before: int) -> bool:
        """Whether the feed may have bars from before a time."""
        reach = self._reach(instrument)
        return reach is not None and before > reach

    async def _newest(self, instrument: Instrument, timeframe: Timeframe, depth: int, end: int) -> Bars:
        """At least the newest `depth` closed bars, if there are so many."""
        ring = self._rings.get((instrument, timeframe))
        if ring and ring.current(depth, end) and self.store.changed_since(instrument, ring.version) is None:
            return ring.bars
        depth = max(depth, ring.depth) if ring else depth
        key = (instrument, timeframe, end, depth)
        return await self._flights.run(key, lambda: self._refresh(instrument, timeframe, depth, end))

    async def _refresh(self, instrument: Instrument, timeframe: Timeframe, depth: int, end: int) -> Bars:
        span = Span(lookback_start(instrument, timeframe, depth, end), end)
        for _ in range(_TRIES):
            failure = await self.fill(instrument, span)
            ring = await self.threads.run(self._read, instrument, timeframe, depth, end)
            # Reading may have found a damaged file and set it aside: its month is a gap again.
            if failure or not self._gaps(instrument, Span(span.start, self._complete(end))):
                break
        if not len(ring.bars):
            if failure:
                raise failure
            if not await self.known(instrument):
                raise UnknownSymbol(instrument.symbol)
        self._rings[instrument, timeframe] = ring
        return ring.bars

    def _read(self, instrument: Instrument, timeframe: Timeframe, depth: int, end: int) -> _Ring:
        version = self.store.version(instrument)
        ring = self._rings.get((instrument, timeframe))
        if ring and ring.end <= end and ring.depth >= depth and len(ring.bars):
            changed = self.store.changed_since(instrument, ring.version)
            again = bucket_start(instrument, timeframe, ring.end if changed is None else max(0, min(changed, ring.end)))
            if again > ring.bars.time[0]:
                fresh = barlib.resample(self.store.read(instrument, again, end), timeframe, end)
                kept = ring.bars.between(0, again)
                return _Ring(barlib.merge(kept, fresh).tail(depth).copy(), version, end, depth)
        return _Ring(self.store.resampled(instrument, timeframe, depth, end), version, end, depth)

    async def fill(self, instrument: Instrument, span: Span) -> FeedUnavailable | UnknownSymbol | StoreError | None:
        """Ask the feed for what the store lacks of a span. A failure is returned, not raised: stored bars may do."""
        source = self.feed.source
        if source is None:
            return None
        for gap in _pieces(self._gaps(instrument, span)):
            try:
                # What a vendor may still add to is stored, but asked for again. Taken before the question: the answer
                # cannot be newer than that.
                complete = self._complete(gap.end)
                covers = Span(gap.start, complete) if complete > gap.start else None
                bars = await self.feed.history(instrument, gap.start, gap.end)
                self.fetches[instrument] += 1
                good, refused = await self._screened(bars)
                for reason, count in refused.items():
                    log.warning("%s: refused %d bars of the history: %s", instrument, count, reason)
                bars = barlib.merge(barlib.empty(instrument), *good).between(gap.start, gap.end)
                await self._writes.write(bars, source, covers)
                self.on_stored()
            except (FeedUnavailable, UnknownSymbol) as error:
                log.warning("%s: %s", instrument, error)
                return error
            except SourceConflict as error:
                log.warning("%s", error)
            except StoreError as error:
                log.warning("%s", error)
                return error
        return None

    async def _screened(self, bars: Bars) -> tuple[list[Bars], Counter[str]]:
        """A few bars are screened here: a thread would take longer to answer."""
        now = self.clock.epoch()
        return screen([bars], now) if len(bars) <= SMALL else await self.threads.run(screen, [bars], now)

    def _gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """What the feed could still deliver of a span by now."""
        reach = self._reach(instrument)
        if reach is None:
            return []
        start, end = max(span.start, reach), min(span.end, int(self.clock.epoch() // MINUTE * MINUTE))
        return self.store.gaps(instrument, Span(start, end)) if start < end else []


def _next_monday(epoch: int) -> int:
    """The first start of a UTC week that is not before."""
    return -(-(epoch - _MONDAY) // _WEEK) * _WEEK + _MONDAY


def _pieces(spans: list[Span]) -> Iterator[Span]:
    """Spans cut into pieces of a month, newest first: what was stored stays if a later piece fails."""
    for span in reversed(spans):
        end = span.end
        while end > span.start:
            start = max(span.start, end - _CHUNK * MINUTE)
            yield Span(start, end)
            end = start
