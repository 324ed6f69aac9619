"""Stored subscriptions to crossings: of clients over HTTP, which keep no connection to a process.

A subscription belongs to its principal until it is ended. The engine follows it, so that one process records each alert, and
every process pushes it from the queue: in the same order, once, and for up to an hour to a client that was not connected.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, replace

from openbell.desk.alerts.crossing_alerts import observe, unknown
from openbell.desk.bars.service import BarService
from openbell.desk.events.hub import BarsClosed, Hub
from openbell.desk.events.supervision import FailingUnits
from openbell.desk.orders.engine import raise_if_general
from openbell.desk.quotes.signals import SignalService
from openbell.desk.settings.quotas import Quota
from openbell.market.errors import OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.signals.crossing_alerts import CrossingAlert, CrossingRequest, CrossingSubscription, Watch
from openbell.stores.port import Lease
from openbell.stores.records import crossings as queries
from openbell.stores.records.crossings import Stored
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.alerts import QUEUE_SECONDS

_CROSSINGS = "crossings of"
_READ_SECONDS = 5.0
"""How long a step may wait for the bars of its series. Those that take longer are read in a later step."""


class Crossings:
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
        self.step = CrossingEngine(records, bars, signals, hub, failing or FailingUnits()).step

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

    def __init__(
        self, records: Records, bars: BarService, signals: SignalService, hub: Hub, failing: FailingUnits
    ) -> None:
        self._records = records
        self._bars = bars
        self._signals = signals
        self._hub = hub
        self._failing = failing
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
        """Pass the bars that have closed to the watches. Returns False if some could not be, and must be read again."""
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
                for watch in watches:
                    observe(watch, reading, since)
            except TimeoutError:
                complete = False
            except Exception as error:  # noqa: BLE001 - the other series are read
                self._failing.failed(_CROSSINGS, _name(instrument, timeframe), error)
                complete = complete and isinstance(error, OpenbellError)
            else:
                self._failing.works(_CROSSINGS, _name(instrument, timeframe))
        self._failing.keep(_CROSSINGS, {_name(*each) for each in series})
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
                self._watches.pop(each.subscription.id, None)
            else:
                self._failing.works("subscription", each.subscription.id)
        return count

    async def _forget_if_general(self, error: Exception, due: list[_Due], lease: Lease | None) -> None:
        """Raise an error of all alerts; their watches are then made anew from the records, so that they are found again."""
        try:
            await raise_if_general(self._records, error, lease)
        except OpenbellError:
            for each in due:
                self._watches.pop(each.subscription.id, None)
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

        return await self._records.write(work, lease)


def _name(instrument: Instrument, timeframe: Timeframe) -> str:
    return f"{instrument} {name_of(timeframe, SHORT)}"
