"""Looks at the parts of the desk in this process, at intervals and when asked, and reports them as one `Health`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from openbell.desk.health import machine
from openbell.desk.health.figures import (
    COLLECTOR,
    BarFigures,
    Question,
    RecordFigures,
    bar_figures,
    is_open,
    market_phases,
    record_figures,
)
from openbell.desk.health.report import DEGRADED, FAILING, OFF, WORKING, Figures, Health, Part
from openbell.desk.readiness import Checks, Outage, desk_checks
from openbell.market.clock import iso
from openbell.market.instruments import Instrument

if TYPE_CHECKING:
    from openbell.desk.collector import Status as CollectorStatus
    from openbell.desk.desk import Desk
    from openbell.desk.leased_work import WorkStatus

EVERY = 5.0
"""Seconds between two looks, if nobody asks."""
LATE = 300.0
"""Seconds without a new minute, while a watched market is open, after which the feed counts as failing."""
_COLLECTS = ("collecting", "standing by", "nothing to collect", "catching up", "starting")
_WORKS = ("working", "standing by", "starting", "no webhooks", "waiting for the scenario")
_NO_TAKEOVER = "cannot take over"
"""In the state of work that stands by, and could not write to the ledger if it were its turn."""
_SPACE = "free space"


class DeskHealth:
    """The health of the desk in this process. `collector` and `sender` are set by the command that runs them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.checks = Checks(desk_checks(desk))
        self.collector: CollectorStatus | None = None
        self.sender: WorkStatus | None = None
        self._advanced = (0, 0.0)
        """Up to when minutes are complete, and the monotonic time at which that was seen first."""
        self._since: dict[str, float] = {}
        """Since when each part fails that has no check of its own."""
        self._records = Question(lambda: record_figures(desk), RecordFigures())
        self._bars = Question(lambda: bar_figures(desk), BarFigures())
        self.last: Health | None = None
        """The result of the last look."""

    async def run(self) -> None:
        """Look at intervals. Ends only if cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> Health:
        """Returns the current health. Takes about 1.5 s at most, whatever does not answer."""
        await self.checks.failing()
        # The buffer of an InfluxDB is in the home: it answers while that does not.
        bars = "bars" not in self.checks.outages or self._desk.settings.influx_url
        asked = (*((self._records,) if "records" not in self.checks.outages else ()), *((self._bars,) if bars else ()))
        await asyncio.gather(*(each.ask() for each in asked))
        parts = self._parts()
        figures = self._collected()
        if (low := self._low_space(figures)) is not None:
            parts["disk"] = low
        failing = {name: part for name, part in parts.items() if part.state == FAILING}
        text = "; ".join(f"{name}: {part}" for name, part in failing.items()) or "every part works"
        self.last = Health(
            state=DEGRADED if failing else WORKING,
            text=text,
            at=iso(int(time.time())),
            home=str(self._desk.settings.home),
            versions=machine.versions(),
            process=os.getpid(),
            parts=parts,
            figures=figures,
        )
        return self.last

    # Parts

    def _parts(self) -> dict[str, Part]:
        return {
            "records": self._checked("records", "PostgreSQL" if self._desk.settings.database_url else "SQLite"),
            "bars": self._checked("bars", "InfluxDB" if self._desk.settings.influx_url else "Parquet files"),
            "feed": self._feed(),
            "collector": self._collector(),
            "engine": self._engine(),
            "gateway": Part(WORKING, "answers"),
            "webhooks": self._webhooks(),
        }

    def _checked(self, name: str, kind: str) -> Part:
        outage = self.checks.outages.get(name)
        return Part(WORKING, kind) if outage is None else _failed(outage)

    def _failing(self, name: str, text: str | None) -> Part | None:
        """Returns the part if `text` tells why it fails, with the time since when; None if it does not fail."""
        if text is None:
            self._since.pop(name, None)
            return None
        return _failed(Outage(text, self._since.setdefault(name, time.time())))

    def _feed(self) -> Part:
        name = self._desk.settings.feed
        failures = list(self._desk.bars.history.unreachable.values())
        silence = self._silence()
        text = failures[0].message if failures else None
        if text is None and silence > LATE:
            text = "no new minutes, and a watched market is open"
        return self._failing("feed", text) or Part(WORKING, name)

    def _collector(self) -> Part:
        if self.collector is None:
            return Part(OFF, "not part of this process")
        state = self.collector.state
        works = any(word in state for word in _COLLECTS) and "waiting" not in state
        return self._failing("collector", None if works else state) or Part(WORKING, state)

    def _engine(self) -> Part:
        if not self._desk.trading.writes:
            return Part(OFF, "read-only, or the clock is not the present")
        return self._work("engine", self._desk.trading.engine.status.state)

    def _webhooks(self) -> Part:
        if self.sender is None or self.sender.state.startswith("off"):
            return Part(OFF, "not part of this process" if self.sender is None else self.sender.state)
        return self._work("webhooks", self.sender.state)

    def _work(self, name: str, state: str) -> Part:
        """Returns the state of work on the records, which cannot go on without them whatever it says."""
        says_why = state.startswith("waiting: ") or _NO_TAKEOVER in state
        if "records" in self.checks.outages and not says_why:
            state = "waiting for the records"
        works = state.startswith(_WORKS) and not says_why
        return self._failing(name, None if works else state) or Part(WORKING, state)

    def _low_space(self, figures: Figures) -> Part | None:
        free = figures.free_bytes
        low = free is not None and free < machine.LOW_SPACE
        return self._failing(_SPACE, f"{free or 0:,} bytes are free on the disk of the home" if low else None)

    # Figures

    def _collected(self) -> Figures:
        desk, found, bars = self._desk, self._records.answer, self._bars.answer
        through = self.collector.through if self.collector else 0
        return Figures(
            lag_seconds=self._lag(),
            through=iso(through) if through else None,
            markets=market_phases(desk.clock.epoch()),
            buffered_bars=bars.waiting,
            leases={COLLECTOR: bars.collector, **found.leases},
            ledger_entries=found.entries,
            ledger_head=found.head,
            webhooks_waiting=found.waiting,
            webhooks_dead=found.dead,
            free_bytes=machine.free_bytes(desk.settings.home),
            resident_bytes=machine.resident_bytes(),
            halted=desk.trading.halt_file.read() or found.halted,
        )

    def _lag(self) -> float | None:
        """Returns by how many seconds the newest complete minute is behind; 0 while every watched market is closed."""
        if self.collector is None or not self.collector.through:
            return None
        if not any(is_open(each, self._desk.clock.epoch()) for each in self._watched()):
            return 0.0
        return float(max(0, self._desk.bars.closed_until() - self.collector.through))

    def _silence(self) -> float:
        """Returns for how many seconds no new minute was complete, while a watched market is open."""
        lag, now = self._lag(), time.monotonic()
        through = self.collector.through if self.collector else 0
        if not lag or self._desk.feed.source is None or not self._desk.clock.moving or through != self._advanced[0]:
            self._advanced = (through, now)
        return now - self._advanced[1]

    def _watched(self) -> Iterable[Instrument]:
        return (each for each in self._desk.watchlist.read().instruments if self._desk.feed.supports(each))


def _failed(outage: Outage) -> Part:
    return Part(FAILING, outage.reason, iso(int(outage.since)))
