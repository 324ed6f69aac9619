"""A scenario's SQLite file that another process is creating: until its tables are committed it counts as absent."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from openbell.market.clock import FixedClock
from openbell.stores.records.journal import head_of
from openbell.stores.records.records import RecordAccess, Records
from openbell.stores.records.snapshot import View
from tests.stores.records.contract import put, run
from tests.stores.records.places import NOON, Place
from tests.waiting import until


@pytest.fixture
def place(on_sqlite: Place) -> Place:
    on_sqlite.folder.mkdir()
    return on_sqlite


def scenario(place: Place, *, read_only: bool = False) -> Records:
    clock = FixedClock(NOON)
    return Records(place.database(), place.head, clock, RecordAccess.SCENARIO, name="s", read_only=read_only)


def count(view: View) -> int:
    return head_of(view.connection).seq


@contextmanager
def migrating(place: Place) -> Iterator[None]:
    """Another process that holds the write lock of a new file and has not committed its tables."""
    with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE ledger (seq INTEGER)")
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_without_tables_is_read_as_an_empty_scenario(place: Place, read_only: bool) -> None:
    async def main() -> None:
        records = scenario(place, read_only=read_only)
        with migrating(place):
            assert place.path.stat().st_size > 0
            assert not await records.is_created()
            assert await records.read(count) == 0
        writer = scenario(place)
        await writer.write(put("first"))
        assert await records.is_created()
        assert await records.read(count) == 1
        await writer.close()
        await records.close()

    run(main)


def test_a_read_that_has_begun_does_not_see_the_file_before_its_tables(place: Place) -> None:
    async def main() -> tuple[int, int]:
        records = scenario(place)
        with place.head.path.open("wb") as head:
            fcntl.flock(head, fcntl.LOCK_EX)
            reading = asyncio.create_task(records.read(count))
            # The read has found no database, and waits for the head file now.
            await until(lambda: records._tables.is_absent, "the read")
            with migrating(place):
                writing = asyncio.create_task(records.write(put("first")))
                await until(lambda: _migrates(records), "the write")
                fcntl.flock(head, fcntl.LOCK_UN)
                before = await reading
            await writing
        after = await records.read(count)
        await records.close()
        return before, after

    assert run(main) == (0, 1)


def _migrates(records: Records) -> bool:
    """Returns True if a write waits for the lock of the other process."""
    executor = records.database._writers._executor  # type: ignore[attr-defined]
    return executor._work_queue.empty() and bool(executor._threads)
