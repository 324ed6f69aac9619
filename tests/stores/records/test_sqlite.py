"""SQLite only: the file is private, is never set aside or created again, and its loss is always reported."""

from __future__ import annotations

import asyncio
import resource
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from openbell.market.errors import StoreError, StoreTimeout
from openbell.stores import sqlite_connections
from openbell.stores.records import ledger_head_file as heads
from openbell.stores.records.journal import Journal, LedgerBroken, head_of
from openbell.stores.records.sqlite import SqliteDatabase
from openbell.trading.ledger import Head
from tests.stores.records.contract import forge, put, rows, run, three
from tests.stores.records.places import Place
from tests.stores.records.test_head import as_somebody_else
from tests.waiting import until


@pytest.fixture
def place(on_sqlite: Place) -> Place:
    return on_sqlite


def files(place: Place) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(place.folder.iterdir())}


def test_only_the_owner_may_read_the_file_and_its_companions(place: Place) -> None:
    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))
            modes = {path.name: path.stat().st_mode & 0o777 for path in place.folder.iterdir()}
            names = ("head", "records.sqlite", "records.sqlite-shm", "records.sqlite-wal")
            assert modes == dict.fromkeys(names, 0o600)

    run(main)


def test_commits_are_synchronised_and_in_the_write_ahead_log(place: Place) -> None:
    async def main() -> None:
        async with place.opened() as records:

            async def mode(pragma: str) -> object:
                return await records.read(lambda view: view.connection.exec_driver_sql(f"PRAGMA {pragma}").scalar())

            assert await mode("journal_mode") == "wal"
            assert await mode("synchronous") == 2
            assert await mode("foreign_keys") == 1

    run(main)


def garbage(content: bytes) -> bytes:
    return b"no database at all " * 999


def zeroed(content: bytes) -> bytes:
    return content[:100] + b"\0" * (len(content) - 100)


def scrambled(content: bytes) -> bytes:
    return content[:4096] + b"\xa5" * (len(content) - 4096)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 3 + 7]


@pytest.mark.parametrize("damage", [garbage, zeroed, scrambled, cut])
def test_a_damaged_file_is_named_and_left_as_it_is(place: Place, damage: Callable[[bytes], bytes]) -> None:
    async def main() -> None:
        await three(place)
        place.path.write_bytes(damage(place.path.read_bytes()))
        before = files(place)
        async with place.opened() as records:
            for _ in range(2):
                with pytest.raises(
                    StoreError, match=r"records\.sqlite failed: .*the file was left unchanged"
                ) as caught:
                    await records.write(put("more"))
                assert str(place.path) in str(caught.value)
        after = files(place)
        assert after["records.sqlite"] == before["records.sqlite"]
        assert set(after) - {"records.sqlite-wal", "records.sqlite-shm"} == set(before)

    run(main)


def test_an_emptied_file_is_not_taken_for_a_new_one(place: Place) -> None:
    async def main() -> None:
        await three(place)
        place.path.write_bytes(b"")
        async with place.opened() as records:
            with pytest.raises(LedgerBroken, match="entry 3"):
                await records.write(put("more"))

    run(main)


def test_a_removed_file_is_not_taken_for_a_new_one(place: Place) -> None:
    async def main() -> None:
        await three(place)
        place.path.unlink()
        async with place.opened() as records:
            with pytest.raises(LedgerBroken, match="entry 3"):
                await records.write(put("more"))

    run(main)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")

    async def main() -> None:
        async with Place(tmp_path / "home").opened() as records:
            with pytest.raises(StoreError, match=r"home/records\.sqlite failed: (Not a directory|File exists)"):
                await records.read(rows)

    run(main)


def test_a_folder_that_cannot_be_written_is_named(memory_path: Path) -> None:
    place = Place(memory_path)
    place.folder.chmod(0o555)

    async def main() -> None:
        async with place.opened() as records:
            with pytest.raises(StoreError, match=r"records\.sqlite failed: Permission denied"):
                await records.read(rows)

    with as_somebody_else():
        run(main)


def test_a_file_that_cannot_be_opened_is_named(place: Place) -> None:
    place.path.mkdir(parents=True)

    async def main() -> None:
        async with place.opened() as records:
            with pytest.raises(StoreError, match=r"records\.sqlite failed: unable to open database file"):
                await records.read(rows)

    run(main)


# Removed or replaced while in use


def test_a_file_that_is_removed_while_in_use_is_neither_written_to_nor_created_again(place: Place) -> None:
    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))
            await asyncio.gather(*(records.read(rows) for _ in range(5)))
            away = place.path.with_name("away")
            place.path.rename(away)
            for _ in range(2):
                with pytest.raises(StoreError, match="was removed while it was in use"):
                    await records.write(put("second"))
                with pytest.raises(StoreError, match="was removed while it was in use"):
                    await records.read(rows)
            assert not place.path.exists()
            away.rename(place.path)
            assert await records.write(put("second")) == 2
            assert await place.faults() == []

    run(main)


def put_in_its_place(place: Place, other: Path) -> None:
    """Replace the file, and remove its -wal and -shm files."""
    other.replace(place.path)
    for rest in ("-wal", "-shm"):
        place.path.with_name(place.path.name + rest).unlink()


def test_a_file_that_is_replaced_by_an_older_copy_while_in_use_is_not_written_to(place: Place) -> None:
    async def main() -> None:
        await three(place)
        old = Path(shutil.copy(place.path, place.folder / "old"))
        async with place.opened() as records:
            await records.write(put("fourth"))
            put_in_its_place(place, old)
            with pytest.raises(LedgerBroken, match="ends at entry 3"):
                await records.write(put("fifth"))
            assert len(await place.entries()) == 3

    run(main)


def test_a_file_that_is_replaced_by_a_complete_copy_while_in_use_is_used(place: Place) -> None:
    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))
            copy = place.folder / "copy"
            with closing(sqlite3.connect(place.path)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
            put_in_its_place(place, copy)
            assert await records.write(put("second")) == 2
            assert len(await place.entries()) == 2
            assert await place.faults() == []

    run(main)


def test_a_file_that_is_removed_during_a_write_is_noticed_before_it_is_acknowledged(place: Place) -> None:
    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))

            def work(journal: Journal) -> None:
                journal.note("k", "x", 1)
                place.path.unlink()

            with pytest.raises(StoreError, match="may be lost"):
                await records.write(work)
            noted = place.head.read()
            assert noted
            assert noted.seq == 1

    run(main)


# The head


@pytest.mark.parametrize("moment", ["at work", "after another's write", "after a commit that never came"])
def test_foreign_entries_that_are_added_while_in_use_are_found(place: Place, moment: str) -> None:
    async def main() -> None:
        async with place.opened() as records, place.opened() as other:
            await records.write(put("first"))
            if moment == "after another's write":
                await other.write(put("second"))
            if moment == "after a commit that never came":
                place.head.intend(await place.past(head_of), Head(2, "f" * 64))
            await forge(place, 1)
            for each in (records, other):
                with pytest.raises(LedgerBroken, match="this home did not write what comes after"):
                    await each.write(put("more"))
            assert [fault.reason.partition(" (")[0] for fault in await place.faults()] == [
                "1 entry comes after the head that was noted"
            ]

    run(main)


def test_a_write_synchronises_the_head_twice_and_one_without_entries_not_at_all(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))
            synchronised: list[int] = []
            monkeypatch.setattr(heads, "_synchronise", synchronised.append)
            await records.write(put("second"))
            assert len(synchronised) == 2
            await records.write(lambda _journal: None)
            assert len(synchronised) == 2

    run(main)


def test_a_ledger_cut_to_less_than_another_process_has_noted_is_not_written_to(place: Place) -> None:
    async def main() -> None:
        async with place.opened() as records, place.opened() as other:
            await records.write(put("first"))
            for name in ("second", "third"):
                await other.write(put(name))
            await place.tamper("DELETE FROM ledger WHERE seq = 3")
            with pytest.raises(LedgerBroken, match="its entry 3 is not the one that was noted"):
                await records.write(put("more"))

    run(main)


# Full disks and locks


@contextmanager
def full_disk(beyond: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writes = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # it would be cut off too, for every later process
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = writes


def test_on_a_full_disk_nothing_is_half_written(place: Place) -> None:
    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))
            size = place.path.with_name("records.sqlite-wal").stat().st_size
            with full_disk(size + 20_000):
                with pytest.raises(StoreError, match=rf"{place.path} failed: (disk I/O error|the disk of .* is full)"):
                    await records.write(put("second", reasoning="x" * 1_000_000))
                assert [row["id"] for row in await records.read(rows)] == ["first"]
            assert await records.write(put("third")) == 2
            assert await place.faults() == []

    run(main)


def test_a_lock_held_for_too_long_raises_a_timeout_and_does_not_stop_readers(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.3)

    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))
            with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                writers = [asyncio.ensure_future(records.write(put(f"w{n}"))) for n in range(6)]
                assert isinstance(records.database, SqliteDatabase)
                await until(records.database._writer.locked, "a writer")
                for _ in range(20):  # let the other writers start
                    await asyncio.sleep(0)
                assert len(await records.read(rows)) == 1
                assert not any(writer.done() for writer in writers)
                with pytest.raises(StoreTimeout, match="locked by another process"):
                    await writers[0]
                other.execute("ROLLBACK")
                await asyncio.gather(*writers, return_exceptions=True)
            await records.write(put("last"))
            assert await place.faults() == []

    run(main)


def test_switching_to_wal_mode_waits_for_a_lock(place: Place) -> None:
    """SQLite's busy timeout does not cover this step."""
    place.folder.mkdir()

    async def main() -> None:
        with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
            other.execute("CREATE TABLE something (a)")
            other.execute("BEGIN IMMEDIATE")
            async with place.opened() as records:
                reading = asyncio.ensure_future(records.read(rows))
                done, _ = await asyncio.wait([reading], timeout=0.1)
                assert not done
                other.execute("COMMIT")
                assert await reading == []

    run(main)
