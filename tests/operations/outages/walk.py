"""Walks the conditions of the stores of one desk and writes what was seen.

    python -m tests.operations.outages.walk SETUP FOLDER

SETUP is `files` or `databases`. FOLDER/walk.json has the result: a list of `Visit` as objects.
OUTAGES_ONLY=TEXT walks only conditions with this text in the store's title and their name, such as "InfluxDB full".
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from openbell.feeds.sim.feed import SimFeed
from openbell.market.bars import MINUTE
from openbell.market.clock import parse_time
from openbell.market.errors import OpenbellError
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.stores.records.progress import set_progress
from tests.operations.outages.acknowledged import Found, Writer
from tests.operations.outages.actions import Outcome, Reader
from tests.operations.outages.disks import CannotMount, enter_private_mounts
from tests.operations.outages.faults import CONDITIONS, Fault, Impossible, Store
from tests.operations.outages.station import START, SYMBOL, Station, shorten_pauses
from tests.operations.outages.visits import Cell, Visit
from tests.operations.outages.words import plain

_TRIES = 200
"""How often everything is written while there is room."""
_KINDS = {"buy", "sell", "alert", "decision"}
_DAY = 86400
_PATIENCE = 60.0
_SOON = 3.0
"""Seconds in which an alert fires if it can."""


class Walk:
    """One desk and what it has acknowledged."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.writer = Writer(station)
        self.reader = Reader(station)

    async def begin(self) -> None:
        """Open a position that the walk reduces."""
        await self.station.open()
        with self.station.patient():  # the first calls load and compute much
            assert (await self.reader.backtest()).works
            assert (await self.reader.price()).works
        for _ in range(2 * len(CONDITIONS)):
            assert (await self.writer.write("buy")).works
        await self._settle()

    async def visit(self, store: Store, condition: str) -> Visit:
        """One condition from its beginning to its end."""
        fault = store.faults[condition]
        if isinstance(fault, Impossible):
            return Visit(store.title, condition, fault.why, impossible=True)
        visit = Visit(store.title, condition, fault.how)
        began = time.monotonic()
        if fault.copy and not store.holds_records:
            await fault.copy()
            await self._pass_day()
        order, alert, _, _ = [await self._written_before(kind) for kind in ("rest", "alert", "buy", "decision")]
        known = set(self.writer.ids)
        if fault.copy and store.holds_records:
            await fault.copy()
            await self._acknowledge_more()
        since = set(self.writer.ids) - known
        await self._apply(fault.begin, fault)
        if fault.runs_out:
            await self._use_up_room()
        self.station.clock.advance(120)
        await self._act(visit, order, alert)
        if fault.runs_out:
            self._leave_out_chance(visit)
        await self._apply(fault.end, fault)
        if fault.restarts_after:
            await self.station.close()
            await self.station.open()
        self.writer.forget(since)
        try:
            await self._recover(visit, order)
        except (TimeoutError, AssertionError) as error:
            visit.faults.append(plain(f"does not recover: {error}", self.station.home))
        visit.seconds = round(time.monotonic() - began, 1)
        return visit

    async def _written_before(self, kind: str) -> str:
        """Something that is acknowledged before the fault; returns its name."""
        found = await self.writer.write(kind)
        assert found.works, found.text
        return f"n{self.writer.count}"

    async def _acknowledge_more(self) -> None:
        """A decision, an order and its fill, which an older copy of the records does not have."""
        for kind in ("decision", "buy"):
            self.writer.count += 1
            await self._eventually(partial(self.writer.write, kind, f"n{self.writer.count}"))
        await self._settle()

    async def _pass_day(self) -> None:
        """The minutes of a day, which an older copy of the bars does not have."""
        await self.station.until(self._is_back, "the stores do not answer again")
        self.station.clock.advance(_DAY)
        await self._settle()

    async def _eventually(self, action: Callable[[], Awaitable[Outcome]]) -> None:
        """Repeat something until it works."""
        deadline = time.monotonic() + _PATIENCE
        while not (found := await action()).works:
            assert time.monotonic() < deadline, found.text
            await asyncio.sleep(0.05)

    async def _use_up_room(self) -> None:
        """Write until everything is refused: a store without a free block still has room in its files."""
        refused: set[str] = set()
        for _ in range(_TRIES):
            refused = {kind for kind in _KINDS if not (await self.writer.write(kind)).works}
            if refused == _KINDS:
                return
        raise AssertionError(f"a full store refuses only {refused}")

    async def _apply(self, change: Callable[[], Awaitable[None]], fault: Fault) -> None:
        if fault.restarts:
            await self.station.close()
        await change()
        if fault.restarts:
            await self.station.open()

    # During the fault

    async def _act(self, visit: Visit, order: str, alert: str) -> None:
        reader, writer = self.reader, self.writer
        due = partial(reader.positions, writer.expected)
        for name, read in (("price", reader.price), ("candles", reader.candles), ("positions", due)):
            visit.cells[name] = self._cell(await read())
        for name, kind in (
            ("opening an order", "buy"),
            ("reducing a position", "sell"),
            ("setting an alert", "alert"),
            ("saving a decision", "decision"),
        ):
            visit.cells[name] = self._cell(await writer.write(kind))
        visit.cells["cancelling an order"] = self._cell(await writer.cancel(order))
        visit.cells["a backtest of a canonical strategy"] = self._cell(await reader.backtest())
        visit.cells["an alert set before"] = await self._fired(alert)

    async def _fired(self, alert: str) -> Cell:
        """Whether an alert fires during the fault."""
        began = time.monotonic()
        while True:
            reply = await self.station.call("chartgen", "get_notifications", cursor=0, limit=1000)
            took = time.monotonic() - began
            if reply.is_error:
                return self._cell(Outcome(False, str(reply.payload["error"]), took))
            if any(each["alert_id"] == self.writer.ids[alert] for each in reply.payload["notifications"]):
                return self._cell(Outcome(True, "", 0.0))
            if took > _SOON:
                return self._cell(Outcome(True, "fires when the store is back", 0.0))
            await asyncio.sleep(0.05)

    @staticmethod
    def _leave_out_chance(visit: Visit) -> None:
        """Whether the engine finds room in the files of a full store for a fill or a fired alert differs from run to run."""
        visit.cells["positions"].text = ""
        if visit.cells["an alert set before"].works:
            visit.cells["an alert set before"].text = "fires if the files have room, otherwise when the store is back"

    def _cell(self, found: Outcome) -> Cell:
        return Cell(found.works, plain(found.text, self.station.home), round(found.seconds, 2))

    # Afterwards

    async def _recover(self, visit: Visit, order: str) -> None:
        """Repeat what was refused, let everything fill and fire, and look for what is lost or doubled."""
        station, writer = self.station, self.writer
        await station.until(self._is_back, "the stores do not answer again")
        await station.until(self._is_idle, "writes of the outage do not end")
        found = await Found.on(station)
        visit.faults += found.refused_but_there(writer)
        await self._repeat(found, order)
        await self._settle()
        visit.faults += list((await Found.on(station)).faults(writer))
        visit.faults += await self._wrong_minutes_left()
        code, printed = await station.command("verify")
        if code:
            visit.faults.append(plain(f"verify: {printed}", station.home))

    async def _is_back(self) -> bool:
        """True if a user can read bars and write records again."""
        mark = self.station.desk.trading.records.write(lambda journal: set_progress(journal.view, "outages", 1.0))
        try:
            await mark
        except OpenbellError:
            return False
        return (await self.reader.candles()).works

    async def _is_idle(self) -> bool:
        return not self.station.desk.trading.records._writing

    async def _repeat(self, found: Found, order: str) -> None:
        """Send again what was not acknowledged, with the same names."""
        for name in self.writer.unanswered(found):
            again = await self.writer.write(self.writer.asked[name], name)
            assert again.works, f"repeated: {again.text}"
        if order not in self.writer.cancelled:
            again = await self.writer.cancel(order)
            # A cancellation whose caller had stopped waiting may have taken effect since.
            if not again.works and (await Found.on(self.station)).states.get(order) == "cancelled":
                self.writer.cancelled.add(order)

    async def _settle(self) -> None:
        """Let two minutes close, and wait until all orders have filled and all alerts have fired."""
        self.station.clock.advance(120)

        async def settled() -> bool:
            working = (await self.station.ask("chartgen", "get_orders", filter="open", limit=1000))["orders"]
            active = (await self.station.ask("chartgen", "list_alerts"))["alerts"]
            return not active and all(each["type"] == "limit" for each in working)

        await self.station.until(settled, "orders do not fill or alerts do not fire")

    async def _wrong_minutes_left(self) -> list[str]:
        """Minutes that stay wrong: those that an older copy lacks are found by a check in the background."""
        with suppress(TimeoutError):
            await self.station.until(self._minutes_are_right, "minutes stay wrong")
        return await self._wrong_minutes()

    async def _minutes_are_right(self) -> bool:
        return not await self._wrong_minutes()

    async def _wrong_minutes(self) -> list[str]:
        """Minutes of the walk that are missing, or that differ from what the feed delivered."""
        begin, end = int(START // MINUTE * MINUTE), self.station.desk.bars.closed_until()
        shown: dict[int, float] = {}
        while min(shown, default=end) > begin:
            given = {"symbol": SYMBOL, "timeframe": "1m", "limit": 1000, "offset": len(shown)}
            page = (await self.station.ask("market-data", "get_candles", **given))["items"]
            shown |= {int(parse_time(each["timestamp"])): each["close"] for each in page}
        feed = SimFeed(self.station.clock, seed=self.station.settings.sim_seed)
        right = await feed.history(Series(parse(SYMBOL)), begin, end)
        wanted = dict(zip(right.time.tolist(), right.close.tolist(), strict=True))
        missing = [at for at in wanted if at not in shown]
        wrong = [at for at, close in wanted.items() if shown.get(at, close) != close]
        return [f"minutes are {what}" for what, each in (("missing", missing), ("wrong", wrong)) if each]


async def _walk(setup: str, folder: Path, report: Callable[[Visit], None]) -> None:
    from tests.operations.outages.databases import databases
    from tests.operations.outages.files import files

    only = os.environ.get("OUTAGES_ONLY", "")
    async with (files if setup == "files" else databases)(folder / "home") as (station, stores):
        walk = Walk(station)
        await walk.begin()
        try:
            for store in stores:
                for condition in CONDITIONS:
                    if only in f"{store.title} {condition}":
                        report(await walk.visit(store, condition))
        finally:
            await station.close()


def main() -> None:
    """Walk one setup."""
    setup, folder = sys.argv[1], Path(sys.argv[2])
    visits: list[dict[str, Any]] = []

    def report(visit: Visit) -> None:
        visits.append(dataclasses.asdict(visit))
        (folder / "walk.json").write_text(json.dumps(visits, indent=1))

    try:
        enter_private_mounts()
    except CannotMount as error:
        sys.exit(f"NOT TESTED: {error}")
    shorten_pauses()
    asyncio.run(_walk(setup, folder, report))


if __name__ == "__main__":
    main()
