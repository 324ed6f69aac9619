"""Subscriptions to crossings of clients that keep a connection to this process; they end with it.

Those of other clients are stored: `desk/alerts/stored_subscriptions.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from math import inf, isfinite

from openbell.desk.alerts.crossing_watches import CrossingWatches, unknown
from openbell.desk.events.hub import BarsClosed, Hub
from openbell.desk.events.supervision import FailingUnits, Supervisor
from openbell.desk.quotes.signals import SignalService
from openbell.desk.settings.principals import Quota
from openbell.signals.crossing_alerts import CrossingAlert, CrossingRequest, CrossingSubscription, Watch

log = logging.getLogger(__name__)

_SENDING = "an alert to"
"""The kind of unit that may fail alone."""
_RETRY_SECONDS = 1.0
"""Seconds until bars are read again after a failure."""


Sink = Callable[[CrossingSubscription, CrossingAlert], Awaitable[None]]
"""Sends an alert to the subscriber. Raises `OSError` if the subscriber has disconnected; the subscription ends then."""


@dataclass(frozen=True, slots=True)
class _Connected:
    """A subscription, and how its alerts leave."""

    subscription: CrossingSubscription
    sink: Sink
    context: Context
    """Of the call that subscribed: the sink finds its connection in it."""


class ConnectionSubscriptions:
    """The subscriptions of connections to this process. They are not stored."""

    def __init__(self, signals: SignalService, hub: Hub, quota: Quota, supervisor: Supervisor) -> None:
        self._quota = quota
        self._supervisor = supervisor
        self._signals = signals
        self._hub = hub
        self._failing = FailingUnits()
        self._watches = CrossingWatches(signals, self._failing)
        self._connected: dict[Hashable, _Connected] = {}
        """By principal and id."""
        self._made: Counter[str] = Counter()
        """How many subscriptions each principal has made: ids show nothing about others."""
        self._following: asyncio.Task[None] | None = None

    async def subscribe(self, asked: CrossingRequest, sink: Sink, *, once: bool = False) -> CrossingSubscription:
        """Start a subscription. Crossings of the current bar do not fire. With `once`, one with the same terms is kept."""
        subscription = asked.subscription("", await self._signals.find(asked.symbol))
        watch = Watch(subscription.crossings, asked.throttle_ms / 1000)
        reading = await self._signals.read(subscription.instrument, asked.timeframe)
        if reading.series:
            last = len(reading.bars) - 1
            watch.begin(int(reading.bars.time[last]), reading.series.crossings(last))
        # Nothing is awaited from here on: what another call has stored meanwhile counts.
        mine = [
            each.subscription for each in self._connected.values() if each.subscription.principal == asked.principal
        ]
        for each in mine if once else ():
            if each.has_terms_of(subscription):
                return each
        self._quota.check(len(mine))
        self._made[asked.principal] += 1
        subscription = replace(subscription, id=f"sub_{self._made[asked.principal]}")
        key = asked.principal, subscription.id
        self._connected[key] = _Connected(subscription, sink, copy_context())
        self._watches.watches[key] = watch
        if self._following is None:
            self._following = self._supervisor.background("subscriptions", self._follow)
        return subscription

    def unsubscribe(self, principal: str, subscription_id: str) -> None:
        """End a subscription of this principal. Raises `InvalidParameter` if it does not exist or belongs to another."""
        if (principal, subscription_id) not in self._connected:
            raise unknown(subscription_id)
        self._end((principal, subscription_id))

    async def close(self) -> None:
        """End all subscriptions."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        self._connected.clear()
        self._watches.watches.clear()

    def _end(self, key: Hashable) -> None:
        self._connected.pop(key, None)
        self._watches.watches.pop(key, None)

    async def _follow(self) -> None:
        with self._hub.listen(BarsClosed) as closed:
            while self._connected:
                due = inf if self._watches.all_read else _RETRY_SECONDS
                due = min(due, max(0.0, self._watches.next_due() - time.monotonic()))
                await closed.wait(due if isfinite(due) else None)
                subscriptions = {key: each.subscription for key, each in self._connected.items()}
                await self._watches.observe(subscriptions)
                await asyncio.gather(*(self._send(*each) for each in list(self._watches.due(time.monotonic()))))
        self._following = None

    async def _send(self, key: Hashable, alert: CrossingAlert) -> None:
        connected = self._connected.get(key)
        if connected is None:
            return
        sending = connected.sink(connected.subscription, alert)
        try:
            await asyncio.create_task(_awaited(sending), context=connected.context)
        except OSError as error:
            log.info("%s ends: %s", connected.subscription.id, error)
            self._end(key)
        except Exception as error:  # noqa: BLE001 - the other subscriptions get their alerts
            self._failing.failed(_SENDING, connected.subscription.id, error)
        else:
            self._failing.works(_SENDING, connected.subscription.id)


async def _awaited(sending: Awaitable[None]) -> None:
    await sending
