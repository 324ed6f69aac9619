"""The collector: screens the bars that the feed streams and stores them durably. One runs per home: the lease holder.

When it starts, it compares in the background the bars that were written with those that are stored: a file may have been
deleted, a database dropped or restored from an older copy. Lost bars become gaps: they are fetched when a tool needs them,
and those that a chart of 3,000 minutes needs at once.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from openbell.desk.bars.bar_checks import screen
from openbell.desk.bars.service import BarService
from openbell.desk.bars.watchlist import Watchlist, WatchlistFile
from openbell.desk.events.hub import Hub, WatchlistChanged
from openbell.desk.events.leased_work import LeasedWork, LeasesInBarStore, while_renewed
from openbell.desk.events.supervision import FailingUnits, WorkState, WorkStatus
from openbell.feeds.port import Batch, Feed
from openbell.market.bars import MINUTE, Bars, empty
from openbell.market.clock import Clock
from openbell.market.errors import (
    FeedUnavailable,
    LeaseLost,
    OpenbellError,
    SettingsError,
    SourceConflict,
    StoreError,
    UnknownSymbol,
)
from openbell.market.instruments import Instrument
from openbell.market.lookback import lookback_start
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.net.rates import backoff
from openbell.stores.port import Lease, Loss, Span

log = logging.getLogger(__name__)

LEASE = "collector"
_LONGEST_PAUSE = 60.0
_DAY = 86400
_Covers = Span | Mapping[Series, Sequence[Span]] | None
_HISTORY = "the history of"
_WORSE = [WorkState.IDLE, WorkState.WORKING, WorkState.STARTING, WorkState.WAITING, WorkState.FAILED]
"""States of a feed; the collector has the last one of all its feeds."""
P = ParamSpec("P")
T = TypeVar("T")
_LONGEST_CHECK = 600.0
"""Seconds after which the check ends, so that a slow database is not kept busy."""
_CHECK_PAUSE = 30.0
"""Seconds between two attempts while the database cannot be reached."""


@dataclass(slots=True)
class CollectorStatus(WorkStatus):
    """The state of the collector and its counters, for displays."""

    watched: int = 0
    stored: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    reconnects: int = 0
    batches: int = 0
    through: int = 0
    """All minutes before this time are stored."""


class Collector:
    """Runs until cancelled. `on_stored` is called when a batch is durable, with the batch and the number of stored bars."""

    def __init__(
        self,
        bars: BarService,
        watchlist: WatchlistFile,
        hub: Hub,
        on_stored: Callable[[Batch, int], None] = lambda _batch, _count: None,
        on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        self._bars = bars
        self._store = bars.store
        self._feed = bars.feed
        self._clock: Clock = bars.clock
        self._watchlist = watchlist
        self._hub = hub
        self._on_stored = on_stored
        self._on_progress = on_progress
        self._pause = random.Random()  # noqa: S311 - only jitter of reconnects and of waiting
        self._unknown: set[str] = set()
        self._read: Watchlist | None = None
        """The watchlist as it was last read by this collector."""
        self._begun = False
        """True once the lease was held."""
        self._checked = False
        """True once the stored bars were compared with those that were written."""
        self._states: dict[str, tuple[WorkState, str]] = {}
        """By feed."""
        self._failing = FailingUnits()
        self.status = CollectorStatus()

    async def run(self) -> None:
        """Wait for the lease, collect while it is held, and start over when it is lost.

        Raises `StoreError` only if the store cannot be used at the start.
        """
        work = LeasedWork(
            LeasesInBarStore(self._store.leases, self._bars.threads),
            LEASE,
            LEASE,
            self.status,
            standby_level=logging.WARNING,
            raises_first_failure=not self._begun,
        )
        await work.run(self._work)

    async def _work(self, lease: Lease, renewing: asyncio.Task[None]) -> None:
        self.status.become(WorkState.STARTING)
        checking = None if self._checked else asyncio.create_task(self._check())
        self._begun = True
        try:
            await while_renewed(renewing, self._collect(lease))
        finally:
            if checking is not None:
                checking.cancel()
                await asyncio.gather(checking, return_exceptions=True)

    async def _check(self) -> None:
        try:
            await check_stored(self._bars, (await self._watchlist.current()).instruments)
        except Exception:  # bars are collected all the same
            log.exception("the stored bars were not checked")
        self._checked = True

    async def _collect(self, lease: Lease) -> None:
        """Collect from every feed; start over after each edit of the watchlist."""
        while True:
            instruments = await self._watched()
            self.status.watched = len(instruments)
            self._states = {}
            # Each feed by itself: one that fails must not keep the others waiting.
            tasks = [
                asyncio.create_task(self._collect_from(feed, some, lease))
                for feed, some in self._by_feed(instruments).items()
            ]
            if not tasks:
                await self._tidy()
                self.status.become(WorkState.IDLE, "nothing to collect")
            edited = asyncio.create_task(self._wait_for_edit())
            try:
                await asyncio.wait({edited, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (edited, *tasks):
                    task.cancel()
                ended = await asyncio.gather(edited, *tasks, return_exceptions=True)
            for failure in ended:
                if isinstance(failure, Exception):
                    raise failure
            log.info("the watchlist has changed")

    def _by_feed(self, instruments: Sequence[Instrument]) -> dict[Feed, list[Instrument]]:
        found: dict[Feed, list[Instrument]] = {}
        for instrument in instruments:
            try:
                found.setdefault(self._feed.route(instrument), []).append(instrument)
            except UnknownSymbol as error:  # no feed has its asset class
                self._refuse(error)
        return found

    async def _collect_from(self, feed: Feed, instruments: Sequence[Instrument], lease: Lease) -> None:
        """Fill the gap and stream from one feed; start over after every failure."""
        failures = 0
        while True:
            before = self.status.batches
            instruments = [each for each in instruments if each.symbol not in self._unknown]
            try:
                since = await self._catch_up(feed, instruments)
                await self._tidy()
                self._set_state(feed, WorkState.WORKING, "collecting")
                await self._stream(feed, instruments, since, lease)
                continue
            except UnknownSymbol as error:
                self._refuse(error)
                continue
            except (LeaseLost, StoreError):
                raise
            except FeedUnavailable as error:
                why = f"{error}"
                self._set_state(feed, WorkState.WAITING, "waiting for the feed")
            except SettingsError:
                raise
            except Exception as error:
                # The faults of an adapter end neither the other feeds nor the collector.
                why = f"the feed {feed.name} failed with {type(error).__name__}"
                log.exception("%s", why)
                self._set_state(feed, WorkState.FAILED, f"{why}; the log has the trace")
            failures = 0 if self.status.batches > before else failures
            self.status.reconnects += 1
            pause = backoff(failures, self._pause.random(), first=1.0, longest=_LONGEST_PAUSE)
            failures += 1
            log.warning("%s; trying again in %.1f s", why, pause)
            await self._rest(pause)

    def _set_state(self, feed: Feed, state: WorkState, text: str) -> None:
        """Show the state of a feed; of several that differ, each with its name, and the worst of them."""
        self._states[feed.name] = state, text
        shown = text
        if len(set(self._states.values())) > 1:
            shown = "; ".join(f"{name}: {each}" for name, (_, each) in self._states.items())
        self.status.become(max((each for each, _ in self._states.values()), key=_WORSE.index), shown)

    @staticmethod
    async def _rest(seconds: float) -> None:
        await asyncio.sleep(seconds)

    def _refuse(self, error: UnknownSymbol) -> None:
        """Skip a symbol that the vendor does not have, until the watchlist is edited."""
        log.warning("%s; skipped until %s changes", error, self._watchlist.path)
        self._unknown.add(str(error.details["symbol"]))
        self.status.watched -= 1

    async def _watched(self) -> list[Instrument]:
        watchlist = await self._watchlist.current()
        if watchlist != self._read:
            self._read = watchlist
            self._unknown.clear()
        for fault in watchlist.faults:
            log.warning("%s: %s", self._watchlist.path, fault)
        if self._feed.source is None:
            return list(watchlist.instruments)
        unknown = [i.symbol for i in watchlist.instruments if not self._feed.supports(i)]
        if unknown:
            log.warning("feed %s does not know %s", self._feed.name, ", ".join(unknown))
        return [i for i in watchlist.instruments if self._feed.supports(i) and i.symbol not in self._unknown]

    async def _catch_up(self, feed: Feed, instruments: Sequence[Instrument]) -> int:
        """Fetch missed bars, as far back as a chart of 3,000 minutes; returns the time at which the stream must start."""
        self._set_state(feed, WorkState.STARTING, "catching up")
        until = self._bars.closed_until()
        # The vendor may still add to the latest minutes: the stream starts before them.
        complete = self._by_now(min(until, feed.watermark(self._clock.epoch())))
        for done, instrument in enumerate(instruments):
            self._on_progress(done, len(instruments))
            start = lookback_start(instrument, Timeframe.M1, 3000, until)
            try:
                failure = await self._bars.fill(instrument, Span(start, until))
            except OpenbellError:
                raise
            except Exception as error:  # noqa: BLE001 - a fault of the adapter with this symbol: others are collected
                self._failing.failed(_HISTORY, instrument.symbol, error)
                continue
            self._failing.works(_HISTORY, instrument.symbol)
            if failure and not isinstance(failure, SourceConflict):  # others can be collected all the same
                raise failure
        self._on_progress(len(instruments), len(instruments))
        self.status.through = max(self.status.through, complete)
        return complete

    def _by_now(self, complete_until: float) -> int:
        """Returns the minute up to which a feed's bars are complete; never later than now, whatever the feed reports."""
        return int(min(complete_until, self._clock.epoch()) // MINUTE * MINUTE)

    async def _wait_for_edit(self) -> None:
        with self._hub.listen(WatchlistChanged) as edited:
            while await self._watchlist.current() == self._read:
                await edited.wait()

    async def _stream(self, feed: Feed, instruments: Sequence[Instrument], since: int, lease: Lease) -> None:
        until = since
        async with aclosing(feed.stream(instruments, since)) as batches:
            async for batch in batches:
                complete = await self._store_batch(batch, instruments, until, lease)
                if complete // _DAY > until // _DAY:
                    await self._tidy()
                until = max(until, complete)

    async def _store_batch(self, batch: Batch, instruments: Sequence[Instrument], since: int, lease: Lease) -> int:
        """Store the valid bars of a batch; returns the minute before which it is complete."""
        complete = self._by_now(batch.complete_until)
        good, refused, faulty = screen(batch.bars, self._clock.epoch())
        self.status.refused += refused
        for reason, count in refused.items():
            log.warning("refused %d bars of %s: %s", count, ", ".join(sorted(map(str, faulty))), reason)
        count = sum(len(part) for part in good)
        if self._feed.source is not None:
            covers: _Covers = None
            if complete > since:
                covers = span = Span(since, complete)
                heard = {part.instrument for part in good}
                good += [empty(each) for each in instruments if each not in heard]
                if faulty:
                    # A span with an invalid bar is not marked as covered, so that it is fetched again from the history.
                    covers = {part.series: () if part.instrument in faulty else (span,) for part in good}
            count = await self._bars.threads.run(self._write_all, good, covers, lease)
            self._bars.history.on_stored()
        self.status.batches += 1
        self.status.stored += count
        self.status.through = max(self.status.through, complete)
        self._on_stored(batch, count)
        return complete

    def _write_all(self, parts: list[Bars], covers: _Covers, lease: Lease) -> int:
        """Store the parts of a batch, those of each source together; returns how many bars were stored."""
        by_source: dict[Source, list[Bars]] = {}
        for part in parts:
            if source := self._feed.route(part.instrument).source:
                by_source.setdefault(source, []).append(part)
        return sum(self._write(some, source, covers, lease) for source, some in by_source.items())

    def _write(self, parts: list[Bars], source: Source, covers: _Covers, lease: Lease) -> int:
        """Store a batch; skips only instruments whose month belongs to another source."""
        while True:
            try:
                self._store.write(parts, source, covers=covers, lease=lease)
            except SourceConflict as conflict:
                log.warning("%s", conflict)
                parts = [part for part in parts if part.instrument.symbol != conflict.details["symbol"]]
            else:
                return sum(len(part) for part in parts)

    async def _tidy(self) -> None:
        """Move bars of earlier days from the buffer to the files."""
        today = int(self._clock.epoch() // _DAY * _DAY)
        moved = await self._bars.threads.run(self._store.compact, min(today, self._bars.closed_until() - MINUTE))
        if moved:
            log.info("moved %d bars to files", moved)


async def check_stored(bars: BarService, watched: Collection[Instrument]) -> list[Loss]:
    """Make lost bars of every series gaps, and fetch the latest ones of watched instruments. Returns the losses.

    One series at a time, so that other work comes in between.
    """
    deadline = time.monotonic() + _LONGEST_CHECK
    lost: list[Loss] = []
    left = None
    while time.monotonic() < deadline:
        try:
            if left is None:
                if await _call(bars, bars.store.audit.mend_made):
                    log.error("bars that are made of minutes were lost in %s: they are made again", bars.store.name)
                left = await _call(bars, bars.store.audit.to_check)
            while left and time.monotonic() < deadline:
                lost += await _call(bars, bars.store.audit.mend_losses, left[0])
                left.pop(0)
        except StoreError as error:
            log.warning("the stored bars were not checked: %s; trying again in %.0f s", error, _CHECK_PAUSE)
            await asyncio.sleep(_CHECK_PAUSE)
            continue
        break
    if left:
        log.warning("%d series were not checked within %.0f s: openbell doctor checks them", len(left), _LONGEST_CHECK)
    if lost:
        log.error("%d periods have lost bars: openbell doctor lists them", len(lost))
    for instrument in {loss.series.instrument for loss in lost} & set(watched):
        await _fetch(bars, instrument)
    return lost


async def _call(bars: BarService, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the store in a thread. A cancelled check waits for the call: nothing may use the store once it is closed."""
    call = asyncio.ensure_future(bars.threads.run(work, *args, **kwargs))
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        await asyncio.gather(call, return_exceptions=True)
        raise


async def _fetch(bars: BarService, instrument: Instrument) -> None:
    """Fetch the latest minutes again: the stream does not deliver them a second time."""
    until = bars.closed_until()
    failure = await bars.fill(instrument, Span(lookback_start(instrument, Timeframe.M1, 3000, until), until))
    if failure and not isinstance(failure, SourceConflict):
        log.warning("%s: lost bars could not be fetched: %s", instrument, failure)
