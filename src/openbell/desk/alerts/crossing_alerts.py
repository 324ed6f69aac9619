"""Subscriptions to crossings of clients that keep a connection: each is a task that follows closed bars and sends alerts.

Those of other clients are stored: `desk/alerts/crossings.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from math import isfinite

from openbell.desk.events.hub import BarsClosed, Hub, Listener
from openbell.desk.events.supervision import Supervisor
from openbell.desk.quotes.signals import Reading, SignalService
from openbell.desk.settings.quotas import Quota
from openbell.market.errors import InvalidParameter, OpenbellError
from openbell.signals.crossing_alerts import CrossingAlert, CrossingRequest, CrossingSubscription, Watch
from openbell.signals.crossings import NEEDED

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
"""Seconds until bars are read again after a failure."""


Sink = Callable[[CrossingSubscription, CrossingAlert], Awaitable[None]]
"""Sends an alert to the subscriber. Raises `OSError` if the subscriber has disconnected; the subscription ends then."""


class CrossingAlertService:
    """The subscriptions of connections to this process. They are not stored."""

    def __init__(self, signals: SignalService, hub: Hub, quota: Quota, supervisor: Supervisor) -> None:
        self._quota = quota
        self._supervisor = supervisor
        self._signals = signals
        self._hub = hub
        self._tasks: dict[tuple[str, str], tuple[CrossingSubscription, asyncio.Task[None]]] = {}
        """By principal and id."""
        self._made: Counter[str] = Counter()
        """How many subscriptions each principal has made: ids show nothing about others."""

    async def subscribe(self, asked: CrossingRequest, sink: Sink, *, once: bool = False) -> CrossingSubscription:
        """Start a subscription. Crossings of the current bar do not fire. With `once`, one with the same terms is kept."""
        subscription = asked.subscription("", await self._signals.find(asked.symbol))
        watch = Watch(subscription.crossings, asked.throttle_ms / 1000)
        reading = await self._signals.read(subscription.instrument, asked.timeframe)
        if reading.series:
            last = len(reading.bars) - 1
            watch.begin(int(reading.bars.time[last]), reading.series.crossings(last))
        # Nothing is awaited from here on: what another call has stored meanwhile counts.
        for each, _ in self._tasks.values() if once else ():
            if each.has_terms_of(subscription):
                return each
        self._quota.check(sum(1 for each, _ in self._tasks.values() if each.principal == asked.principal))
        self._made[asked.principal] += 1
        subscription = replace(subscription, id=f"sub_{self._made[asked.principal]}")
        task = self._supervisor.background(
            "subscriptions", partial(self._follow, subscription, watch, sink), context=copy_context()
        )
        self._tasks[asked.principal, subscription.id] = (subscription, task)
        return subscription

    def unsubscribe(self, principal: str, subscription_id: str) -> None:
        """End a subscription of this principal. Raises `InvalidParameter` if it does not exist or belongs to another."""
        found = self._tasks.pop((principal, subscription_id), None)
        if found is None:
            raise unknown(subscription_id)
        found[1].cancel()

    async def close(self) -> None:
        """End all subscriptions."""
        tasks = [task for _, task in self._tasks.values()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, subscription: CrossingSubscription, watch: Watch, sink: Sink) -> None:
        with self._hub.listen(BarsClosed) as closed:
            await self._send_alerts(subscription, watch, sink, closed)

    async def _send_alerts(
        self, subscription: CrossingSubscription, watch: Watch, sink: Sink, closed: Listener
    ) -> None:
        failed = False
        while True:
            due = watch.due() - time.monotonic()
            await closed.wait(_RETRY_SECONDS if failed else max(0.0, due) if isfinite(due) else None)
            try:
                reading = await self._signals.read(subscription.instrument, subscription.timeframe)
            except OpenbellError as error:
                log.warning("%s: %s", subscription.id, error)
                failed = True
                continue
            failed = False
            observe(watch, reading)
            if alert := watch.take(time.monotonic()):
                try:
                    await sink(subscription, alert)
                except OSError as error:
                    log.info("%s ends: %s", subscription.id, error)
                    self._tasks.pop((subscription.principal, subscription.id), None)
                    return


def unknown(subscription_id: str) -> InvalidParameter:
    """Returns the error for an id that is not one of the caller's subscriptions."""
    return InvalidParameter(f"no subscription {subscription_id!r}", subscription_id=subscription_id)


def observe(watch: Watch, reading: Reading, since: float = 0.0) -> None:
    """Pass every bar that closed since the last call to the watch. Bars that ended before `since` do not trigger."""
    if reading.series is None:
        return
    times = reading.bars.time
    first = int(times.searchsorted(watch.seen, side="right")) if watch.seen >= 0 else len(times) - 1
    recent = int(times.searchsorted(since - reading.bars.timeframe.seconds, side="right"))
    # The first bar after the warm-up has no earlier values to compare with.
    first = max(first, recent, NEEDED - 1)
    if first >= NEEDED and times[first - 1] >= watch.seen >= 0:
        watch.begin(int(times[first - 1]), reading.series.crossings(first - 1))
    for index in range(first, len(times)):
        watch.observe(reading.series.snapshot(index), reading.series.crossings(index))
