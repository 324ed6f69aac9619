"""Subscriptions to crossings of clients that keep a connection to this process; they end with it.

Those of other clients are stored: `desk/alerts/stored_subscriptions.py`. Both are fed by the same watches with the bars that
close.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from math import inf, isfinite

from openbell.desk.events.hub import BarsClosed, Hub
from openbell.desk.events.supervision import FailingUnits, Supervisor
from openbell.desk.quotes.signals import SeriesReading, SignalService
from openbell.desk.settings.principals import Quota
from openbell.market.errors import InvalidParameter, OpenbellError
from openbell.market.timeframes import SHORT, name_of
from openbell.signals.crossing_alerts import CrossingAlert, CrossingRequest, CrossingSubscription, Watch
from openbell.signals.crossings import NEEDED

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


_CROSSINGS = "crossings of"
_READ_SECONDS = 5.0
"""How long one look may wait for the bars of its series. Those that take longer are read at a later one."""


class CrossingWatches:
    """A watch for each subscription. A series is read once for all of its subscriptions."""

    def __init__(self, signals: SignalService, failing: FailingUnits) -> None:
        """`failing` is where series that cannot be read are noted."""
        self._signals = signals
        self._failing = failing
        self.watches: dict[Hashable, Watch] = {}
        """By the key of the subscription."""
        self.all_read = True
        """False if the last look could not read some series, for whatever reason."""

    async def observe(self, subscriptions: Mapping[Hashable, CrossingSubscription], since: float = 0.0) -> bool:
        """Pass the bars that have closed to the watches; bars that ended before `since` do not trigger.

        Returns False if some could not be read, and must be read again even if no other bar closes.
        """
        series = defaultdict(list)
        for key, each in subscriptions.items():
            series[each.instrument, each.timeframe].append(self.watches[key])
        complete = self.all_read = True
        deadline = asyncio.get_running_loop().time() + _READ_SECONDS
        names = {(of, timeframe): f"{of} {name_of(timeframe, SHORT)}" for of, timeframe in series}
        for which, watches in series.items():
            try:
                async with asyncio.timeout_at(deadline):
                    reading = await self._signals.read(*which)
                for watch in watches:
                    observe(watch, reading, since)
            except TimeoutError:
                complete = self.all_read = False
            except Exception as error:  # noqa: BLE001 - the other series are read
                self._failing.failed(_CROSSINGS, names[which], error)
                complete, self.all_read = complete and isinstance(error, OpenbellError), False
            else:
                self._failing.works(_CROSSINGS, names[which])
        self._failing.keep(_CROSSINGS, set(names.values()))
        return complete

    def due(self, now: float) -> Iterator[tuple[Hashable, CrossingAlert]]:
        """Yields and removes the alerts that are due, each with the key of its subscription."""
        for key, watch in self.watches.items():
            if (alert := watch.take(now)) is not None:
                yield key, alert

    def next_due(self) -> float:
        """The time at which the next alert that a throttle holds back is due; infinity if there is none."""
        return min((watch.due() for watch in self.watches.values()), default=inf)


def observe(watch: Watch, reading: SeriesReading, since: float = 0.0) -> None:
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


def unknown(subscription_id: str) -> InvalidParameter:
    """Returns the error for an id that is not one of the caller's subscriptions."""
    return InvalidParameter(f"no subscription {subscription_id!r}", subscription_id=subscription_id)
