"""One engine runs at a time, and one that was stopped for longer than its lease writes nothing when it continues."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from openbell.stores.records.verify import entries, faults
from openbell.trading.ledger import LedgerEntry, LedgerFault
from tests.client import OPENBELL, PATIENCE, Client
from tests.counts import runs
from tests.desk.trading.child import Fork, compete, desk_of, stall
from tests.stores.records.postgres_server import NotHere, PostgresServer

STOPS = runs(2, soak=20)
SOON = 0.6
"""Seconds of a lease that a test lets expire."""
LONG = 3600.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer | str]:
    try:
        server = PostgresServer()
    except NotHere as error:
        yield str(error)
        return
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Settings of a home on SQLite, or on a PostgreSQL database of its own."""
    given = {"HOME": str(tmp_path), "FEED": "sim", "TRADE": "1"}
    if request.param == "sqlite":
        return given
    server = request.getfixturevalue("postgres")
    name = f"fence_{abs(hash(tmp_path)):x}"
    server.ask(f"CREATE DATABASE {name}")
    return given | {"DATABASE_URL": f"{server.url.rpartition('/')[0]}/{name}"}


def told(settings: dict[str, str]) -> tuple[list[LedgerEntry], list[LedgerFault]]:
    """Returns the entries of the ledger and its faults."""

    async def read() -> tuple[list[LedgerEntry], list[LedgerFault]]:
        desk = desk_of(settings)
        try:
            noted = desk.trading.records.head.read()
            heads = (noted,) if noted else ()
            return await desk.trading.records.read(
                lambda view: (list(entries(view.connection)), list(faults(view.connection, heads)))
            )
        finally:
            await desk.close()

    return asyncio.run(read())


def writers(settings: dict[str, str]) -> list[str]:
    """Returns the writers in the order of the ledger; consecutive entries of one writer count once."""
    ledger, wrong = told(settings)
    assert wrong == []
    return [label for label, _ in groupby(json.loads(entry.body)["principal"] for entry in ledger)]


def count(settings: dict[str, str], label: str) -> int:
    return sum(json.loads(entry.body)["principal"] == label for entry in told(settings)[0])


def eventually(condition: Callable[[], bool], what: str, bound: float = PATIENCE) -> None:
    deadline = time.monotonic() + bound
    while not condition():
        assert time.monotonic() < deadline, f"not in {bound} s: {what}"
        time.sleep(0.02)


def test_an_engine_that_was_stopped_past_its_lease_writes_nothing_when_it_goes_on(settings: dict[str, str]) -> None:
    with Fork(stall, settings, "stopped", SOON) as stopped:
        stopped.until("stopping")
        with Fork(compete, settings, "next", SOON) as following:
            following.until("working")
            eventually(lambda: count(settings, "next") > 3, "the next engine writes")
            before = count(settings, "stopped")
            stopped.send(signal.SIGCONT)
            assert stopped.hear() == "LeaseLost"
            eventually(lambda: count(settings, "next") > 6, "the next engine goes on")
            assert before == count(settings, "stopped") == 4
            assert writers(settings) == ["stopped", "next"]


def test_stopped_at_any_moment_two_engines_never_write_in_turn(settings: dict[str, str]) -> None:
    """The engine is stopped by a signal: between two steps, before a write or in the middle of one."""
    with Fork(compete, settings, "first", SOON) as first, Fork(compete, settings, "second", SOON) as second:
        working, waiting = (first, second) if _works(first) else (second, first)
        taken_over = 0
        for _ in range(STOPS):
            working.send(signal.SIGSTOP)
            try:
                # Stopped inside a transaction of SQLite it blocks all others until it continues: no other engine takes over.
                said = _heard(waiting, "working", 3 * SOON + 2)
            finally:
                working.send(signal.SIGCONT)
            if said:
                working.until("standing by")
                taken_over += 1
                working, waiting = waiting, working
    assert len(writers(settings)) <= 1 + taken_over


def _works(engine: Fork) -> bool:
    while (said := engine.hear()) not in {"working", "standing by"}:
        assert said == "starting"
    return bool(said == "working")


def _heard(engine: Fork, wanted: str, bound: float) -> bool:
    try:
        engine.until(wanted, bound)
    except AssertionError:
        return False
    return True


def test_of_several_engines_one_works_and_when_it_dies_the_next_one_does_at_once(settings: dict[str, str]) -> None:
    """The lease lasts an hour, but other processes of this machine see that its holder has died."""
    with ExitStack() as stack:
        engines = {name: stack.enter_context(Fork(compete, settings, name, LONG)) for name in ("a", "b", "c", "d")}
        died: list[str] = []
        while engines:
            working = _who_works(engines)
            eventually(lambda: count(settings, working) > 2, f"{working} writes")  # noqa: B023
            assert writers(settings) == [*died, working]
            engines.pop(working).kill()
            died.append(working)


def _who_works(engines: dict[str, Fork]) -> str:
    """Returns the engine that is working; the others stand by."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for name, engine in engines.items():
            if engine._pipe.poll(0.01) and engine.hear() == "working":
                return name
    raise AssertionError("nobody works")


def _holder(home: Path) -> str:
    """Returns the holder of the engine's lease in the file."""
    found = list(home.glob("simulated/**/records.sqlite"))
    if not found:
        return ""
    try:
        with closing(sqlite3.connect(f"file:{found[0]}?mode=ro", uri=True)) as records:
            row: Any = records.execute("SELECT holder FROM leases WHERE name = 'engine'").fetchone()
    except sqlite3.OperationalError:  # the table does not exist yet
        return ""
    return str(row[0]) if row else ""


def test_a_stdio_server_that_may_trade_is_the_engine_when_nobody_else_is(tmp_path: Path) -> None:
    command = [*OPENBELL, "mcp", "chartgen", "--trade"]
    with Client(tmp_path, command=command) as first:
        eventually(lambda: f":{first.process.pid}:" in _holder(tmp_path), "the first takes the lease")
        with Client(tmp_path, command=command) as second:
            second.initialize()
            assert second.call("list_alerts", {})["result"]["isError"] is False
            assert f":{first.process.pid}:" in _holder(tmp_path)
            first.process.kill()
            first.process.wait()
            eventually(lambda: f":{second.process.pid}:" in _holder(tmp_path), "the second takes over", 12.0)


def test_a_stdio_server_that_may_not_trade_is_no_engine(tmp_path: Path) -> None:
    with Client(tmp_path, command=[*OPENBELL, "mcp", "chartgen"]) as reader:
        reader.initialize()
        assert reader.call("list_alerts")["result"]["isError"] is True
        assert _holder(tmp_path) == ""
