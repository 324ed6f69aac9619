"""Looks at the parts of the desk in this process, at intervals and when asked, and reports them as one `HealthSnapshot`.

Each store gets one bounded question at a time.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openbell.desk.events.checks import TIMEOUT, Check, Checks, Outage, in_own_thread, see_error
from openbell.desk.events.supervision import Supervisor, WorkState, WorkStatus
from openbell.desk.operations.health.report import (
    DEGRADED,
    FAILING,
    LOW_SPACE,
    OFF,
    WORKING,
    HealthFigures,
    HealthPart,
    HealthSnapshot,
    free_bytes,
    resident_bytes,
    versions,
)
from openbell.market.clock import iso
from openbell.market.errors import OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.sessions import Phase, forex_open, phase, stock_phase

if TYPE_CHECKING:
    from openbell.desk.bars.collector import CollectorStatus
    from openbell.desk.bars.service import BarService
    from openbell.desk.bars.watchlist import WatchlistFile
    from openbell.desk.orders.engine import EngineStatus
    from openbell.desk.orders.halt_file import HaltFile
    from openbell.desk.settings import Settings
    from openbell.market.clock import Clock
    from openbell.stores.port import BarStore
    from openbell.stores.records.records import Records
    from openbell.stores.records.snapshot import View
    from openbell.trading.halt import Halt

EVERY = 5.0
"""Seconds between two looks, if nobody asks."""
LATE = 300.0
"""Seconds without a new minute, while a watched market is open, after which the feed counts as failing."""
_SPACE = "free space"
T = TypeVar("T")
COLLECTOR = "collector"


@dataclass(frozen=True, slots=True)
class HealthSources:
    """What the health of a desk is read from. Parts that may not be made yet are functions."""

    settings: Settings
    clock: Clock
    supervisor: Supervisor
    watchlist: WatchlistFile
    checks: Mapping[str, Check]
    """The checks of the stores `records` and `bars`."""
    bars: Callable[[], BarService]
    store: Callable[[], BarStore]
    records: Callable[[], Records]
    engine: Callable[[], EngineStatus | None]
    """Returns None if this desk runs no engine."""
    halt_file: Callable[[], HaltFile]


class DeskHealth:
    """The health of the desk in this process. `collector` and `sender` are set by the command that runs them."""

    def __init__(self, sources: HealthSources) -> None:
        self._sources = sources
        self.checks = Checks(sources.checks)
        self.collector: CollectorStatus | None = None
        self.sender: WorkStatus | None = None
        self._watched: list[Instrument] = []
        """What the feed delivers of the watchlist."""
        self._advanced = (0, 0.0)
        """Up to when minutes are complete, and the monotonic time at which that was seen first."""
        self._since: dict[str, float] = {}
        """Since when each part fails that has no check of its own."""
        self._records = Question(lambda: record_figures(sources.records()), RecordFigures())
        self._bars = Question(lambda: bar_figures(sources.store()), BarFigures())
        self.last: HealthSnapshot | None = None
        """The result of the last look."""

    async def run(self) -> None:
        """Look at intervals. Ends only if cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY)

    async def close(self) -> None:
        """Note no outages from now on."""
        self.checks.close()

    async def look(self) -> HealthSnapshot:
        """Returns the current health. Takes about 1.5 s at most, whatever does not answer."""
        await self.checks.failing()
        if self.collector is not None and self.collector.through:
            feed = self._sources.bars().feed
            watched = (await self._sources.watchlist.current()).instruments
            self._watched = [each for each in watched if feed.supports(each)]
        # The buffer of a database is in the home: it answers while that does not.
        bars = "bars" not in self.checks.outages or self._sources.settings.store_backend.is_remote
        asked = (*((self._records,) if "records" not in self.checks.outages else ()), *((self._bars,) if bars else ()))
        await asyncio.gather(*(each.ask() for each in asked))
        parts = self._parts()
        figures = self._collected()
        if (low := self._low_space(figures)) is not None:
            parts["disk"] = low
        failing = {name: part for name, part in parts.items() if part.state == FAILING}
        text = "; ".join(f"{name}: {part}" for name, part in failing.items()) or "every part works"
        self.last = HealthSnapshot(
            state=DEGRADED if failing else WORKING,
            text=text,
            at=iso(int(time.time())),
            home=str(self._sources.settings.home),
            versions=versions(),
            process=os.getpid(),
            parts=parts,
            figures=figures,
        )
        return self.last

    # Parts

    def _parts(self) -> dict[str, HealthPart]:
        return {
            "records": self._checked("records", "PostgreSQL" if self._sources.settings.database_url else "SQLite"),
            "bars": self._checked("bars", self._sources.settings.store_backend.title),
            "feed": self._feed(),
            "collector": self._collector(),
            "engine": self._engine(),
            "gateway": self._supervised("gateway", "answers"),
            "webhooks": self._webhooks(),
            **{name: self._supervised(name, "") for name in self._unexpected()},
        }

    def _unexpected(self) -> Iterable[str]:
        """Returns the names of background work that has raised an unexpected exception, and is no part of its own."""
        own = {"collector", "engine", "gateway", "webhooks"}
        statuses = self._sources.supervisor.statuses()
        return (name for name, each in statuses.items() if each.state is WorkState.FAILED and name not in own)

    def _supervised(self, name: str, text: str) -> HealthPart:
        """Returns the state of background work that has no status of its own; `text` says what it does when it works."""
        status = self._sources.supervisor.statuses().get(name)
        return self._failing(name, f"{status}" if status is not None and status.fails else None) or HealthPart(
            WORKING, text
        )

    def _checked(self, name: str, kind: str) -> HealthPart:
        outage = self.checks.outages.get(name)
        return HealthPart(WORKING, kind) if outage is None else _failed(outage)

    def _failing(self, name: str, text: str | None) -> HealthPart | None:
        """Returns the part if `text` tells why it fails, with the time since when; None if it does not fail."""
        if text is None:
            self._since.pop(name, None)
            return None
        return _failed(Outage(text, self._since.setdefault(name, time.time())))

    def _feed(self) -> HealthPart:
        name = self._sources.settings.feed
        failures = list(self._sources.bars().history.unreachable.values())
        silence = self._silence()
        text = failures[0].message if failures else None
        if text is None and silence > LATE:
            text = "no new minutes, and a watched market is open"
        return self._failing("feed", text) or HealthPart(WORKING, name)

    def _collector(self) -> HealthPart:
        if self.collector is None:
            return HealthPart(OFF, "not part of this process")
        text = f"{self.collector}"
        return self._failing("collector", text if self.collector.fails else None) or HealthPart(WORKING, text)

    def _engine(self) -> HealthPart:
        status = self._sources.engine()
        if status is None:
            return HealthPart(OFF, "read-only, or the clock is not the present")
        faults = list(status.failing.faults())
        more = f"; {len(faults) - 1} more" if len(faults) > 1 else ""
        return self._work("engine", status, faults[0] + more if faults else None)

    def _webhooks(self) -> HealthPart:
        if self.sender is None or self.sender.state is WorkState.OFF:
            return HealthPart(OFF, "not part of this process" if self.sender is None else f"{self.sender}")
        return self._work("webhooks", self.sender)

    def _work(self, name: str, status: WorkStatus, fault: str | None = None) -> HealthPart:
        """Returns the state of work on the records, which cannot go on without them. `fault` is what else fails in it."""
        if status.fails:
            fault = f"{status}"
        elif "records" in self.checks.outages:
            fault = "waiting for the records"
        return self._failing(name, fault) or HealthPart(WORKING, f"{status}")

    def _low_space(self, figures: HealthFigures) -> HealthPart | None:
        free = figures.free_bytes
        low = free is not None and free < LOW_SPACE
        return self._failing(_SPACE, f"{free or 0:,} bytes are free on the disk of the home" if low else None)

    # Figures

    def _collected(self) -> HealthFigures:
        sources, found, bars = self._sources, self._records.answer, self._bars.answer
        through = self.collector.through if self.collector else 0
        return HealthFigures(
            lag_seconds=self._lag(),
            through=iso(through) if through else None,
            markets=market_phases(sources.clock.epoch()),
            buffered_bars=bars.waiting,
            leases={COLLECTOR: bars.collector, **found.leases},
            ledger_entries=found.entries,
            ledger_head=found.head,
            webhooks_waiting=found.waiting,
            webhooks_dead=found.dead,
            free_bytes=free_bytes(sources.settings.home),
            resident_bytes=resident_bytes(),
        ).with_halt(sources.halt_file().read() or found.halted)

    def _lag(self) -> float | None:
        """Returns by how many seconds the newest complete minute is behind; 0 while every watched market is closed."""
        if self.collector is None or not self.collector.through:
            return None
        if not any(is_open(each, self._sources.clock.epoch()) for each in self._watched):
            return 0.0
        return float(max(0, self._sources.bars().closed_until() - self.collector.through))

    def _silence(self) -> float:
        """Returns for how many seconds no new minute was complete, while a watched market is open."""
        lag, now = self._lag(), time.monotonic()
        through = self.collector.through if self.collector else 0
        if (
            not lag
            or self._sources.bars().feed.source is None
            or not self._sources.clock.moving
            or through != self._advanced[0]
        ):
            self._advanced = (through, now)
        return now - self._advanced[1]


def _failed(outage: Outage) -> HealthPart:
    return HealthPart(FAILING, outage.reason, iso(int(outage.since)))


@dataclass(frozen=True, slots=True)
class RecordFigures:
    """What the records tell. None: not known."""

    leases: dict[str, str | None] = field(default_factory=dict)
    entries: int | None = None
    head: str | None = None
    waiting: int | None = None
    """Deliveries of webhooks that wait."""
    dead: int | None = None
    halted: Halt | None = None


@dataclass(frozen=True, slots=True)
class BarFigures:
    """What the store of bars tells. None: not known."""

    waiting: int | None = None
    """Bars that wait for the bar database."""
    collector: str | None = None
    """The holder of the lease."""


class Question(Generic[T]):
    """A question to a store. While its answer does not come in time, the last answer stays and nothing else is asked."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]], answer: T) -> None:
        self._ask = ask
        self._task: asyncio.Task[T] | None = None
        self.answer = answer

    async def ask(self) -> None:
        """Ask, or wait for the answer that has not come yet, for 1.5 s at most."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._ask())
            self._task.add_done_callback(see_error)
        await asyncio.wait({self._task}, timeout=TIMEOUT)
        if self._task.done() and not self._task.cancelled():
            error = self._task.exception()
            if error is None:
                self.answer = self._task.result()
            elif not isinstance(error, OpenbellError):  # the checks report those
                raise error


async def record_figures(records: Records) -> RecordFigures:
    """Returns the figures in the records."""
    from openbell.desk.settings.open_records import ENGINE
    from openbell.stores.records import leases, switches, webhooks
    from openbell.stores.records.journal import head_of

    def read(view: View) -> RecordFigures:
        head, counts = head_of(view.connection), webhooks.counts(view)
        return RecordFigures(
            leases={name: leases.holder(view, name) for name in (ENGINE, "webhook sender")},
            entries=head.seq,
            head=head.hash,
            waiting=sum(count for (_, is_dead), count in counts.items() if not is_dead),
            dead=sum(count for (_, is_dead), count in counts.items() if is_dead),
            halted=switches.halted(view),
        )

    return await records.read(read, check_head=False)


async def bar_figures(store: BarStore) -> BarFigures:
    """Returns the figures in the home's store of bars."""
    waiting = getattr(store, "waiting", lambda: 0)

    def read() -> BarFigures:
        return BarFigures(waiting(), store.leases.holder(COLLECTOR))

    return await in_own_thread(read)


def market_phases(now: float) -> dict[str, str]:
    """Returns the phase of each market."""
    return {"stocks": str(stock_phase(now)), "forex": "open" if forex_open(now) else "closed", "crypto": "open"}


def is_open(instrument: Instrument, now: float) -> bool:
    """Returns True in the regular hours of an instrument's market."""
    return phase(instrument, now) is Phase.REGULAR
