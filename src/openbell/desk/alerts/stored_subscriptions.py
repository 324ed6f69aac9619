"""Stored subscriptions to crossings: of clients over HTTP, which keep no connection to a process.

A subscription belongs to its principal until it is ended. The engine follows it, so that one process records each alert, and
every process pushes it from the queue: in the same order, once, and for up to an hour to a client that was not connected.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import isfinite

from openbell.desk.alerts.connection_subscriptions import CrossingWatches, unknown
from openbell.desk.bars.service import BarService
from openbell.desk.events.hub import BarsClosed, Hub
from openbell.desk.events.supervision import FailingUnits
from openbell.desk.orders.engine import raise_if_general
from openbell.desk.quotes.signals import SignalService
from openbell.desk.settings.principals import Quota
from openbell.market.errors import OpenbellError
from openbell.signals.crossing_alerts import CrossingAlert, CrossingRequest, CrossingSubscription, Watch
from openbell.stores.port import Lease
from openbell.stores.records import crossings as queries
from openbell.stores.records.crossings import Stored
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.alerts import QUEUE_SECONDS


class StoredSubscriptions:
    """Makes and ends stored subscriptions, and records their alerts."""

    def __init__(
        self,
        records: Records,
        bars: BarService,
        signals: SignalService,
        hub: Hub,
        quota: Quota,
        failing: FailingUnits | None = None,
    ) -> None:
        """`failing` is where the engine's step notes the subscriptions that fail."""
        self._records = records
        self._signals = signals
        self._quota = quota
        self.step = SubscriptionEngine(records, bars, signals, hub, failing or FailingUnits()).step

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
            self._quota.check(len(mine))
            made = replace(wanted, id=f"sub_{secrets.token_hex(8)}")
            queries.add(journal, Stored(made, seen))
            return made

        return await self._records.write(work)

    async def unsubscribe(self, principal: str, subscription_id: str) -> None:
        """End a subscription of this principal. Raises `InvalidParameter` if it does not exist or belongs to another."""
        if not await self._records.write(queries.remove, principal, subscription_id):
            raise unknown(subscription_id)


@dataclass(frozen=True, slots=True)
class _Due:
    """An alert that is to be recorded."""

    subscription: CrossingSubscription
    alert: CrossingAlert
    seen: int


class SubscriptionEngine:
    """The step of the engine that records the alerts of stored subscriptions."""

    def __init__(
        self, records: Records, bars: BarService, signals: SignalService, hub: Hub, failing: FailingUnits
    ) -> None:
        self._records = records
        self._bars = bars
        self._hub = hub
        self._failing = failing
        self._crossings = CrossingWatches(signals, failing)
        self._read_at: Hashable = None
        """The closed bars that all series were read with."""
        self._timer: asyncio.TimerHandle | None = None
        records.on_replaced.append(self._forget)

    def _forget(self) -> None:
        """Drop what was read from an earlier ledger."""
        self._crossings.watches, self._read_at = {}, None

    async def step(self, lease: Lease | None, until: int) -> int:
        """Check every subscription on the bars that had closed by `until`; returns how many alerts were recorded."""
        stored = await self._records.read(queries.all_stored)
        if not stored and not self._crossings.watches:
            return 0
        state = (until, self._bars.store.versions.of_store())
        given: dict[Hashable, CrossingSubscription] = {each.subscription.id: each.subscription for each in stored}
        new = self._begin(stored)
        if new or state != self._read_at:
            self._read_at = state if await self._crossings.observe(given, until - QUEUE_SECONDS) else None
        now = time.monotonic()
        due = [_Due(given[key], alert, self._crossings.watches[key].seen) for key, alert in self._crossings.due(now)]
        self._wake_up(now)
        return await self._record(due, lease) if due else 0

    def _begin(self, stored: list[Stored]) -> bool:
        """Make the watches of new subscriptions and drop those of ended ones. Returns True if there are new ones."""
        known, self._crossings.watches = self._crossings.watches, {}
        for each in stored:
            given = each.subscription
            watch = known.get(given.id)
            if watch is None:
                watch = Watch(given.crossings, given.throttle_ms / 1000, each.seen)
                if each.sent_at is not None:
                    watch.sent(time.monotonic() - max(0.0, time.time() - each.sent_at))
            self._crossings.watches[given.id] = watch
        return not self._crossings.watches.keys() <= known.keys()

    def _wake_up(self, now: float) -> None:
        """Let the engine run again when the next alert that a throttle holds back is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._crossings.next_due()
        if isfinite(due):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, due - now), self._hub.publish, BarsClosed())

    async def _record(self, due: list[_Due], lease: Lease | None) -> int:
        """Record alerts in one transaction, or one by one if that fails; returns how many were recorded."""
        try:
            return await self._write(due, lease)
        except Exception as error:  # noqa: BLE001 - raised again below if it is not of one alert alone
            await self._forget_if_general(error, due, lease)
        count = 0
        for each in due:
            try:
                count += await self._write([each], lease)
            except Exception as error:  # noqa: BLE001 - the others are recorded
                await self._forget_if_general(error, due, lease)
                self._failing.failed("subscription", each.subscription.id, error)
                self._crossings.watches.pop(each.subscription.id, None)
            else:
                self._failing.works("subscription", each.subscription.id)
        return count

    async def _forget_if_general(self, error: Exception, due: list[_Due], lease: Lease | None) -> None:
        """Raise an error of all alerts; their watches are then made anew from the records, so that they are found again."""
        try:
            await raise_if_general(self._records, error, lease)
        except OpenbellError:
            for each in due:
                self._crossings.watches.pop(each.subscription.id, None)
            raise

    async def _write(self, due: list[_Due], lease: Lease | None) -> int:
        """Record alerts and queue their pushes in one transaction."""

        def work(journal: Journal) -> int:
            count = 0
            for each in due:
                given, body = each.subscription, each.subscription.notification(each.alert)
                happened = float(each.alert.snapshot.time + given.timeframe.seconds)
                count += queries.fire(journal, given, body, each.seen, happened, time.time())
            return count

        return await self._records.write(work, lease=lease)
