"""Stored subscriptions to crossings: of clients over HTTP, which keep no connection to a process.

A subscription belongs to its principal until it is ended. The engine follows it, so that one process records each alert, and
every process pushes it from the queue: in the same order, once, and for up to an hour to a client that was not connected.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, replace

from openbell.desk.bars import BarService
from openbell.desk.crossing_alerts import check_room, observe, unknown
from openbell.desk.events import BarsClosed, Hub
from openbell.desk.signals import SignalService
from openbell.market.errors import OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from openbell.signals.crossing_alerts import CrossingAlert, CrossingRequest, CrossingSubscription, Watch
from openbell.stores.port import Lease
from openbell.stores.records import crossings as queries
from openbell.stores.records.crossings import Stored
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.inbox import QUEUE_SECONDS

log = logging.getLogger(__name__)

_READ_SECONDS = 5.0
"""How long a step may wait for the bars of its series. Those that take longer are read in a later step."""


class Crossings:
    """Makes and ends stored subscriptions, and records their alerts."""

    def __init__(self, records: Records, bars: BarService, signals: SignalService, hub: Hub) -> None:
        self._records = records
        self._signals = signals
        self.step = CrossingEngine(records, bars, signals, hub).step

    async def subscribe(self, asked: CrossingRequest) -> CrossingSubscription:
        """Store a subscription; crossings of the current bar do not fire. The same one twice is one subscription."""
        wanted = asked.subscription("", await self._signals.find(asked.symbol))
        reading = await self._signals.read(wanted.instrument, wanted.timeframe)
        seen = int(reading.bars.time[-1]) if reading.series else -1

        def work(journal: Journal) -> CrossingSubscription:
            mine = [each.subscription for each in queries.of_principal(journal.view, asked.principal)]
            for each in mine:
                if each.has_terms_of(wanted):
                    return each
            check_room(len(mine))
            made = replace(wanted, id=f"sub_{journal.seq + 1}")
            queries.add(journal, Stored(made, seen))
            return made

        return await self._records.write(work)

    async def unsubscribe(self, principal: str, subscription_id: str) -> None:
        """End a subscription of this principal. Raises `InvalidParameter` if it does not exist or belongs to another."""
        if not await self._records.write(lambda journal: queries.remove(journal, principal, subscription_id)):
            raise unknown(subscription_id)


@dataclass(frozen=True, slots=True)
class _Due:
    """An alert that is to be recorded."""

    subscription: CrossingSubscription
    alert: CrossingAlert
    seen: int


class CrossingEngine:
    """The step of the engine that records the alerts of stored subscriptions."""

    def __init__(self, records: Records, bars: BarService, signals: SignalService, hub: Hub) -> None:
        self._records = records
        self._bars = bars
        self._signals = signals
        self._hub = hub
        self._watches: dict[str, Watch] = {}
        self._read_at: Hashable = None
        """The closed bars that all series were read with."""
        self._timer: asyncio.TimerHandle | None = None
        records.on_replaced.append(self._forget)

    def _forget(self) -> None:
        """Drop what was read from an earlier ledger."""
        self._watches, self._read_at = {}, None

    async def step(self, lease: Lease | None, until: int) -> int:
        """Check every subscription on the bars that had closed by `until`; returns how many alerts were recorded."""
        stored = await self._records.read(queries.all_stored)
        if not stored and not self._watches:
            return 0
        state = (until, self._bars.store.changes())
        new = self._begin(stored)
        if new or state != self._read_at:
            self._read_at = state if await self._observe(stored, until - QUEUE_SECONDS) else None
        now = time.monotonic()
        due = []
        for each in stored:
            watch = self._watches[each.subscription.id]
            if (alert := watch.take(now)) is not None:
                due.append(_Due(each.subscription, alert, watch.seen))
        self._wake_up(now)
        return await self._record(due, lease) if due else 0

    def _begin(self, stored: list[Stored]) -> bool:
        """Make the watches of new subscriptions and drop those of ended ones. Returns True if there are new ones."""
        known, self._watches = self._watches, {}
        for each in stored:
            given = each.subscription
            watch = known.get(given.id)
            if watch is None:
                watch = Watch(given.crossings, given.throttle_ms / 1000, each.seen)
                if each.sent_at is not None:
                    watch.sent(time.monotonic() - max(0.0, time.time() - each.sent_at))
            self._watches[given.id] = watch
        return not self._watches.keys() <= known.keys()

    async def _observe(self, stored: list[Stored], since: float) -> bool:
        """Pass the bars that have closed to the watches. Returns False if some bars could not be read in time."""
        series: dict[tuple[Instrument, Timeframe], list[Watch]] = defaultdict(list)
        for each in stored:
            given = each.subscription
            series[given.instrument, given.timeframe].append(self._watches[given.id])
        complete = True
        deadline = asyncio.get_running_loop().time() + _READ_SECONDS
        for (instrument, timeframe), watches in series.items():
            try:
                async with asyncio.timeout_at(deadline):
                    reading = await self._signals.read(instrument, timeframe)
            except (OpenbellError, TimeoutError) as error:
                log.debug("crossings of %s wait: %s", instrument, error)
                complete = complete and not isinstance(error, TimeoutError)
                continue
            for watch in watches:
                observe(watch, reading, since)
        return complete

    def _wake_up(self, now: float) -> None:
        """Let the engine run again when the next alert that a throttle holds back is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = min((watch.due() for watch in self._watches.values() if watch.is_pending), default=None)
        if due is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, due - now), self._hub.publish, BarsClosed())

    async def _record(self, due: list[_Due], lease: Lease | None) -> int:
        """Record alerts and queue their pushes in one transaction."""

        def work(journal: Journal) -> int:
            count = 0
            for each in due:
                given, body = each.subscription, each.subscription.notification(each.alert)
                happened = float(each.alert.snapshot.time + given.timeframe.seconds)
                count += queries.fire(journal, given, body, each.seen, happened, time.time())
            return count

        try:
            return await self._records.write(work, lease)
        except OpenbellError:
            for each in due:  # they are made anew from the records, so that the alerts are found again
                self._watches.pop(each.subscription.id, None)
            raise
