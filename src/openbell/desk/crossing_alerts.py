"""Subscriptions to crossings: one task each, which follows closed bars and sends alerts to the subscriber."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from math import isfinite

from openbell.desk.events import BarsClosed, Hub, Listener
from openbell.desk.signals import Reading, SignalService
from openbell.market.errors import InvalidParameter, OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from openbell.signals.crossing_alerts import CrossingAlert, Watch, watched_crossings

log = logging.getLogger(__name__)

MOST_PER_PRINCIPAL = 100
_RETRY_SECONDS = 1.0
"""Seconds until bars are read again after a failure."""


@dataclass(frozen=True, slots=True)
class CrossingSubscription:
    """A subscription; its id is needed to end it."""

    id: str
    principal: str
    instrument: Instrument
    timeframe: Timeframe
    crossings: tuple[str, ...]
    throttle_ms: int


Sink = Callable[[CrossingSubscription, CrossingAlert], Awaitable[None]]
"""Sends an alert to the subscriber. Raises `OSError` if the subscriber has disconnected; the subscription ends then."""


class CrossingAlertService:
    """The subscriptions of this process. They are not stored."""

    def __init__(self, signals: SignalService, hub: Hub) -> None:
        self._signals = signals
        self._hub = hub
        self._tasks: dict[str, tuple[CrossingSubscription, asyncio.Task[None]]] = {}
        self._count = 0

    async def subscribe(
        self,
        principal: str,
        symbol: str,
        timeframe: Timeframe,
        conditions: Iterable[tuple[str, str | None]],
        throttle_ms: int,
        sink: Sink,
    ) -> CrossingSubscription:
        """Start a subscription. Crossings of the current bar do not fire."""
        crossings = watched_crossings(conditions)
        instrument = await self._signals.find(symbol)
        mine = sum(1 for subscription, _ in self._tasks.values() if subscription.principal == principal)
        if mine >= MOST_PER_PRINCIPAL:
            raise InvalidParameter(f"{mine} subscriptions are open, the most allowed: end one with unsubscribe_alerts")
        watch = Watch(crossings, throttle_ms / 1000)
        reading = await self._signals.read(instrument, timeframe)
        if reading.series:
            last = len(reading.bars) - 1
            watch.begin(int(reading.bars.time[last]), reading.series.crossings(last))
        self._count += 1
        subscription = CrossingSubscription(
            f"sub_{self._count}", principal, instrument, timeframe, crossings, throttle_ms
        )
        task = asyncio.create_task(self._follow(subscription, watch, sink), name=subscription.id)
        self._tasks[subscription.id] = (subscription, task)
        return subscription

    def unsubscribe(self, principal: str, subscription_id: str) -> None:
        """End a subscription of this principal. Raises `InvalidParameter` if it does not exist or belongs to another."""
        found = self._tasks.get(subscription_id)
        if found is None or found[0].principal != principal:
            raise InvalidParameter(f"no subscription {subscription_id!r}", subscription_id=subscription_id)
        del self._tasks[subscription_id]
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
            _observe(watch, reading)
            if alert := watch.take(time.monotonic()):
                try:
                    await sink(subscription, alert)
                except OSError as error:
                    log.info("%s ends: %s", subscription.id, error)
                    self._tasks.pop(subscription.id, None)
                    return


def _observe(watch: Watch, reading: Reading) -> None:
    """Pass every bar that closed since the last call to the watch."""
    if reading.series is None:
        return
    times = reading.bars.time
    first = int(times.searchsorted(watch.seen, side="right")) if watch.seen >= 0 else len(times) - 1
    # The first bar after the warm-up has no earlier values to compare with.
    for index in range(max(first, 34), len(times)):
        watch.observe(reading.series.snapshot(index), reading.series.crossings(index))
