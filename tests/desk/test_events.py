"""The event hub: every change after a listener was entered wakes it, also changes by other processes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

from openbell.desk.desk import Desk
from openbell.desk.event_sources import RecordSource
from openbell.desk.events.hub import (
    INTERVAL,
    RECORDS,
    AlertChanged,
    AlertFired,
    BarsClosed,
    Event,
    Hub,
    NotificationAdded,
    OrderChanged,
    WatchlistChanged,
)
from openbell.desk.settings import load
from openbell.market.bars import MINUTE
from openbell.market.errors import StoreError
from openbell.stores.sqlite_connections import FileVersion
from tests.client import PATIENCE, run
from tests.clocks import HandClock
from tests.servers.desks import awaited
from tests.stores.records.places import Place, decision
from tests.stores.records.postgres_server import PostgresServer
from tests.waiting import until


class Scripted:
    """A source of events that a test controls."""

    def __init__(self) -> None:
        self.next: list[Event] = []
        self.polls = 0
        self.fails = False

    async def poll(self) -> list[Event]:
        self.polls += 1
        if self.fails:
            raise StoreError("not there")
        found, self.next = self.next, []
        return found


@awaited
async def test_listeners_get_their_own_kinds_and_equal_events_once() -> None:
    hub = Hub()
    with hub.listen(OrderChanged) as orders, hub.listen(AlertFired, WatchlistChanged) as others:
        for _ in range(1000):
            hub.publish(OrderChanged())
        hub.publish(AlertFired())
        assert await orders.wait(PATIENCE) == {OrderChanged()}
        assert await others.wait(PATIENCE) == {AlertFired()}
        assert await orders.wait(0.001) == frozenset()
    hub.publish(OrderChanged())
    assert await orders.wait(0.001) == frozenset(), "a listener that has left gets nothing"
    await hub.close()


@awaited
async def test_the_watcher_runs_while_somebody_listens_and_goes_on_after_a_failure() -> None:
    source = Scripted()
    hub = Hub({RECORDS: lambda: source})
    assert source.polls == 0
    with hub.listen(BarsClosed):
        await asyncio.sleep(0)
        assert source.polls == 0, "no listener needs this source"
    with hub.listen(OrderChanged) as changed:
        source.fails = True
        await until(lambda: source.polls >= 2, "two looks")
        source.fails, source.next = False, [OrderChanged()]
        assert await changed.wait(PATIENCE) == {OrderChanged()}
    await asyncio.sleep(0)
    polls = source.polls
    await asyncio.sleep(3 * INTERVAL)
    assert source.polls <= polls + 1
    await hub.close()


@awaited
async def test_a_poke_is_seen_at_once() -> None:
    source = Scripted()
    hub = Hub({RECORDS: lambda: source})
    with hub.listen(OrderChanged) as changed:
        await until(lambda: source.polls >= 1, "the first look")
        polls = source.polls
        source.next = [OrderChanged()]
        hub.poke()
        assert await changed.wait(PATIENCE) == {OrderChanged()}
        assert source.polls == polls + 1
    await hub.close()


def settings(home: Path, **given: str) -> dict[str, str]:
    return {"OPENBELL_HOME": str(home), **{f"OPENBELL_{name}": value for name, value in given.items()}}


@awaited
async def test_bars_that_close_by_the_clock_are_told(tmp_path: Path) -> None:
    clock = HandClock(1_767_225_630.0)
    desk = Desk(load(settings(tmp_path)))
    desk.clock = clock
    async with desk:
        with desk.hub.listen(BarsClosed) as closed:
            await closed.wait(PATIENCE)  # the first look
            assert await closed.wait(3 * INTERVAL) == frozenset()
            clock.advance(MINUTE)
            assert await closed.wait(PATIENCE) == {BarsClosed()}


@awaited
async def test_bars_that_another_process_stores_are_told(tmp_path: Path) -> None:
    file = tmp_path / "bars.csv"
    file.write_text("timestamp,open,high,low,close,volume\n2025-09-19T13:31:00Z,10,11,9,10,5\n")
    async with Desk(load(settings(tmp_path / "home", FEED="none", AS_OF="2026-01-05T15:00:00Z"))) as desk:
        with desk.hub.listen(BarsClosed) as closed:
            await closed.wait(PATIENCE)
            done = await asyncio.to_thread(run, tmp_path / "home", "import", str(file), "--symbol", "AAPL")
            assert done.returncode == 0, done.stderr
            assert await closed.wait(PATIENCE) == {BarsClosed()}


@awaited
async def test_an_edit_of_the_watchlist_is_told(tmp_path: Path) -> None:
    async with Desk(load(settings(tmp_path))) as desk:
        with desk.hub.listen(WatchlistChanged) as edited:
            await edited.wait(PATIENCE)
            (tmp_path / "watchlist.txt").write_text("AAPL\n")
            assert await edited.wait(PATIENCE) == {WatchlistChanged()}


@pytest.mark.parametrize("flags", [(), ("READ_ONLY",)], ids=["writing", "read-only"])
@awaited
async def test_orders_and_alerts_of_another_process_are_told(tmp_path: Path, flags: tuple[str, ...]) -> None:
    placed = await asyncio.to_thread(call, tmp_path, "place_order", ORDER)
    assert placed.returncode == 0, placed.stderr
    async with Desk(load(settings(tmp_path, **dict.fromkeys(flags, "1")))) as desk:
        with desk.hub.listen(OrderChanged) as orders, desk.hub.listen(AlertChanged) as alerts:
            await orders.wait(PATIENCE)
            await alerts.wait(PATIENCE)
            assert (
                await asyncio.to_thread(call, tmp_path, "place_order", {**ORDER, "quantity": "0.002"})
            ).returncode == 0
            assert await orders.wait(PATIENCE) == {OrderChanged()}
            assert (await asyncio.to_thread(call, tmp_path, "set_alert", ALERT)).returncode == 0
            assert await alerts.wait(PATIENCE) == {AlertChanged()}


ORDER: dict[str, object] = {"symbol": "BTC/USD", "side": "buy", "type": "limit", "price": 1, "quantity": "0.001"}
ALERT: dict[str, object] = {"symbol": "BTC/USD", "condition": {"price_above": 1}}


def call(home: Path, tool: str, arguments: dict[str, object]) -> subprocess.CompletedProcess[str]:
    return run(home, "call", "chartgen", tool, "--trade", json.dumps(arguments), RISK_COLLAR="0")


@awaited
async def test_on_postgresql_a_commit_is_told_even_after_the_connection_was_cut(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    place = Place(tmp_path, postgres.url, "events")
    async with place.opened() as mine, place.opened() as other:
        await other.write(lambda journal: journal.put("decision", decision("zero"), new=True))
        hub = Hub({RECORDS: lambda: RecordSource(mine)})
        with hub.listen(OrderChanged, NotificationAdded) as changed:
            assert await changed.wait(PATIENCE) == {OrderChanged(), NotificationAdded()}
            await until(lambda: isinstance(mine.version(), int), "the listening connection")
            await other.write(lambda journal: journal.put("switch", switch("one")))
            assert await changed.wait(PATIENCE) == {OrderChanged()}
            await place.tamper(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND query LIKE 'LISTEN%'"
            )
            await until(lambda: not isinstance(mine.version(), int), "the end of that connection")
            await other.write(lambda journal: journal.put("switch", switch("two")))
            assert await changed.wait(PATIENCE) == {OrderChanged()}
            await until(lambda: isinstance(mine.version(), int), "a new connection")
            await other.write(lambda journal: journal.put("switch", switch("three")))
            assert await changed.wait(PATIENCE) == {OrderChanged()}
        await hub.close()


def switch(reason: str) -> dict[str, object]:
    return {"name": "halt", "reason": reason, "at": 0.0}


class TestFileVersion:
    def make(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE IF NOT EXISTS t (x)")
        return db

    def test_differs_after_every_commit_and_only_then(self, tmp_path: Path) -> None:
        path = tmp_path / "file.sqlite"
        version = FileVersion(path)
        assert version.read() is None
        db = self.make(path)
        seen = {version.read()}
        for number in range(50):
            db.execute("INSERT INTO t VALUES (?)", (number,))
            seen.add(version.read())
            assert version.read() in seen
        assert len(seen) == 51
        db.execute("SELECT count(*) FROM t").fetchall()
        assert version.read() in seen
        version.close()
        db.close()

    def test_follows_a_file_that_was_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "file.sqlite"
        self.make(path).close()
        version = FileVersion(path)
        first = version.read()
        path.rename(tmp_path / "old.sqlite")
        assert version.read() is None
        db = self.make(path)
        second = version.read()
        assert second != first
        db.execute("INSERT INTO t VALUES (1)")
        assert version.read() != second
        version.close()
        db.close()

    def test_without_touching_it_makes_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "file.sqlite"
        self.make(path).close()
        before = sorted(tmp_path.iterdir())
        version = FileVersion(path, touch=False)
        first = version.read()
        assert sorted(tmp_path.iterdir()) == before
        db = self.make(path)
        db.execute("INSERT INTO t VALUES (1)")
        assert version.read() != first
        db.close()
