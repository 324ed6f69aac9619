"""The events of one process: bars have closed; orders, alerts, strategies or webhooks have changed; the
watchlist was edited.

One watcher detects the changes of this process and of others: it compares version numbers of the bar store, the records and
the watchlist file every 100 ms, and at once after a write of this process. Alerts, pushes, waiting calls, the engine and the
live view listen to the hub. Three timers remain. A process that waits for a lease, or for the records of its scenario, reads
them once per second. With a broker, which sends no events, the engine also runs once per second. The live view also redraws
every second.

An event only reports that something has changed. The listener reads the current state, so that equal events merge and a slow
listener uses no memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, Self

from openbell.desk.events.supervision import FailingUnits, Supervisor, WorkState, WorkStatus
from openbell.market.errors import OpenbellError

log = logging.getLogger(__name__)

_LOOK = "the look for changes of"
INTERVAL = 0.1
"""Seconds between two polls of the sources."""


@dataclass(frozen=True, slots=True)
class BarsClosed:
    """Bars have closed, or bars that had closed were stored or corrected."""


@dataclass(frozen=True, slots=True)
class OrderChanged:
    """An order was placed, filled, cancelled or otherwise changed, or trading was halted or resumed."""


@dataclass(frozen=True, slots=True)
class AlertChanged:
    """An alert was set or cancelled."""


@dataclass(frozen=True, slots=True)
class AlertFired:
    """An alert has fired."""


@dataclass(frozen=True, slots=True)
class NotificationAdded:
    """A notification is in the inbox of some principal."""


@dataclass(frozen=True, slots=True)
class SpecSubmitted:
    """A strategy spec was submitted."""


@dataclass(frozen=True, slots=True)
class StrategyChanged:
    """An implementation of a strategy was found or promoted, or a signal or a consensus has changed."""


@dataclass(frozen=True, slots=True)
class WebhookChanged:
    """A webhook was added or removed, or a dead delivery is to be sent again."""


@dataclass(frozen=True, slots=True)
class WatchlistChanged:
    """The watchlist file was edited."""


Event = (
    BarsClosed
    | OrderChanged
    | AlertChanged
    | AlertFired
    | NotificationAdded
    | SpecSubmitted
    | StrategyChanged
    | WebhookChanged
    | WatchlistChanged
)
Kind = type[Event]


class EventSource(Protocol):
    """Something that the watcher polls."""

    async def poll(self) -> Iterable[Event]:
        """Returns the events since the last call. Raises `OpenbellError` if the source cannot be read."""


class Listener:
    """Waits for events of some kinds. Use as a context manager."""

    def __init__(self, hub: Hub, kinds: frozenset[Kind]) -> None:
        self._hub = hub
        self.kinds = kinds
        self._pending: set[Event] = set()
        self._arrived = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event; the hub calls this."""
        self._pending.add(event)
        self._arrived.set()

    async def wait(self, seconds: float | None = None) -> frozenset[Event]:
        """Returns the events since the last call; waits for the first one, at most `seconds`."""
        if not self._pending:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
        found = frozenset(self._pending)
        self._pending.clear()
        self._arrived.clear()
        return found

    def __enter__(self) -> Self:
        self._hub.add(self)
        return self

    def __exit__(self, *_error: object) -> None:
        self._hub.remove(self)


class Hub:
    """Delivers events to listeners, and runs the watcher while there are any."""

    def __init__(
        self, sources: Mapping[str, Callable[[], EventSource]] | None = None, supervisor: Supervisor | None = None
    ) -> None:
        """`sources` create the watcher's sources, by name; each is created when a listener first needs it.

        `supervisor` runs the watcher.
        """
        self._supervisor = supervisor or Supervisor()
        self._status = WorkStatus()
        self._failing = FailingUnits()
        self._makers = dict(sources or {})
        self._kinds = {name: SOURCES[name] for name in self._makers}
        self._sources: dict[str, EventSource] = {}
        self._listeners: set[Listener] = set()
        self._poked = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    def listen(self, *kinds: Kind) -> Listener:
        """Returns a listener to some kinds of events. It misses nothing that changes after its block is entered."""
        return Listener(self, frozenset(kinds))

    def publish(self, event: Event) -> None:
        """Deliver an event to every listener of its kind."""
        for listener in self._listeners:
            if type(event) in listener.kinds:
                listener.put(event)

    def poke(self) -> None:
        """Make the watcher poll at once, after a write of this process."""
        self._poked.set()

    def add(self, listener: Listener) -> None:
        """Start to deliver events to a listener."""
        self._listeners.add(listener)
        for name, kinds in self._kinds.items():
            if kinds & listener.kinds and name not in self._sources:
                self._sources[name] = self._makers[name]()
        if self._watching is None or self._watching.done():
            self._watching = self._supervisor.background("events", self._watch, self._status)

    def remove(self, listener: Listener) -> None:
        """Stop delivering events to a listener."""
        self._listeners.discard(listener)
        if not self._listeners and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def close(self) -> None:
        """Stop the watcher."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        self._sources.clear()

    async def _watch(self) -> None:
        while True:
            self._poked.clear()
            for name, source in list(self._sources.items()):
                try:
                    for event in await source.poll():
                        self.publish(event)
                except OpenbellError as error:
                    log.debug("%s", error)
                except Exception as error:  # noqa: BLE001 - the other sources are polled
                    self._failing.failed(_LOOK, name, error)
                else:
                    self._failing.works(_LOOK, name)
            fault = next(iter(self._failing.faults()), "")
            self._status.become(WorkState.FAILED if fault else WorkState.WORKING, fault)
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._poked.wait()


BARS, RECORDS, WATCHLIST = "bars", "records", "watchlist"
SOURCES: dict[str, frozenset[Kind]] = {
    BARS: frozenset({BarsClosed}),
    RECORDS: frozenset(
        {OrderChanged, AlertChanged, AlertFired, NotificationAdded, SpecSubmitted, StrategyChanged, WebhookChanged}
    ),
    WATCHLIST: frozenset({WatchlistChanged}),
}
"""Which source reports which events."""
