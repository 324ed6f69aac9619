"""The stores of the embedded default: records in SQLite, bars in Parquet files and a buffer, each on its own disk."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.operations.outages.disks import Disk
from tests.operations.outages.faults import Fault, Impossible, Store
from tests.operations.outages.station import Station

_NO_SERVER = Impossible("a file in the home has no server")
_MEGABYTES = 24


@asynccontextmanager
async def files(home: Path) -> AsyncIterator[tuple[Station, tuple[Store, ...]]]:
    """A desk with its two stores."""
    records_disk = Disk(home, _MEGABYTES)
    station = Station(home)
    bars_disk = Disk(station.settings.bar_folder, _MEGABYTES)
    records = station.settings.market_folder / "records.sqlite"
    yield (
        station,
        (
            _store(station, "Records in SQLite", records, records_disk, holds_records=True),
            _store(
                station,
                "Bars in Parquet files and their buffer",
                station.settings.bar_folder / "buffer.sqlite",
                bars_disk,
                holds_records=False,
            ),
        ),
    )


def _store(station: Station, title: str, database: Path, disk: Disk, *, holds_records: bool) -> Store:
    """A store whose writes all pass through one SQLite file."""
    lock = _Lock(database)
    copy = _Copy(station, disk.folder, database, alone=holds_records)

    async def fill() -> None:
        disk.fill()

    async def free() -> None:
        disk.free()

    async def close_for_writing() -> None:
        disk.set_writable(False)

    async def open_for_writing() -> None:
        disk.set_writable(True)

    return Store(
        title,
        {
            "stopped": _NO_SERVER,
            "stalled": Fault(f"another process keeps `{database.name}` locked", lock.take, lock.release),
            "refused": _NO_SERVER,
            "full": Fault("its disk has no free block", fill, free, runs_out=holds_records),
            "read-only": Fault(
                "its file system is mounted for reading only, and the desk is started on it",
                close_for_writing,
                open_for_writing,
                restarts=True,
            ),
            "restored older": Fault(
                "an older copy is put back while the desk is stopped",
                copy.put_back,
                copy.accept,
                restarts=True,
                copy=copy.make,
            ),
        },
        holds_records=holds_records,
    )


class _Lock:
    """The write lock of an SQLite file, held by a connection of somebody else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    async def take(self) -> None:
        self._connection = sqlite3.connect(self._path, isolation_level=None, timeout=5)
        self._connection.execute("BEGIN IMMEDIATE")

    async def release(self) -> None:
        assert self._connection
        self._connection.execute("ROLLBACK")
        self._connection.close()


class _Copy:
    """A copy of an SQLite file, or of the whole folder around it."""

    def __init__(self, station: Station, folder: Path, database: Path, *, alone: bool) -> None:
        self._station = station
        self._folder = folder
        self._database = database
        self._alone = alone
        self._kept = station.home.with_name("kept")

    async def make(self) -> None:
        """Copy the database as a backup of a running one is made, and the other files as they are."""
        shutil.rmtree(self._kept, ignore_errors=True)
        if self._alone:
            self._kept.mkdir()
        else:
            shutil.copytree(self._folder, self._kept, ignore=shutil.ignore_patterns("buffer.sqlite*"))
        source, target = sqlite3.connect(self._database), sqlite3.connect(self._kept / self._database.name)
        source.backup(target)
        source.close()
        target.close()

    async def put_back(self) -> None:
        for old in self._database.parent.glob(f"{self._database.name}*"):
            old.unlink()
        if not self._alone:
            for part in self._folder.iterdir():
                shutil.rmtree(part) if part.is_dir() else part.unlink()
        shutil.copytree(self._kept, self._database.parent, dirs_exist_ok=True)

    async def accept(self) -> None:
        """Do what an operator does: `openbell verify --adopt`, if records were put back."""
        if self._alone:
            await self._station.adopt()
