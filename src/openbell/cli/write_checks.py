"""The checks of `openbell doctor` that try to write what the desk writes. Nothing that they write stays."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from openbell.cli.findings import Finding
from openbell.desk.desk import Desk
from openbell.desk.settings import Settings
from openbell.market.errors import StoreError

_LEAST = 100_000_000
"""Free bytes below which the desk may fail at any time."""
_FEW = 1 << 30
_SHARE = 0.05
_TRIED = 1 << 20
"""Bytes that are written to each folder."""


def check_home(desk: Desk) -> Iterator[Finding]:
    """Check that the home can be written and has room."""
    home = desk.settings.home
    if not home.exists():
        yield Finding("note", f"home {home} does not exist yet", "openbell up")
        return
    if not os.access(home, os.W_OK | os.X_OK):
        yield Finding("bad", f"home {home} cannot be written", f"chmod u+rwx {home}, or set OPENBELL_HOME")
        return
    if desk.settings.store_backend.is_remote or desk.settings.database_url:
        what = "the buffer, heads of the ledger and settings"
    else:
        what = "all records and bars"
    folders = [each for each in (home, desk.settings.market_folder, desk.settings.bar_folder) if each.is_dir()]
    for folder in {each.stat().st_dev: each for each in reversed(folders)}.values():
        if refused := _refused(folder):
            yield Finding(
                "bad", f"{folder} cannot be written: {refused}", "free space on its disk, or check its rights"
            )
        else:
            yield from _room(folder, what)
    yield Finding("ok", f"home {home}")


def _refused(folder: Path) -> str:
    """Why a file cannot be written durably in a folder; empty if it can. The file has no name where the system allows."""
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".openbell-doctor-") as file:
            file.write(bytes(_TRIED))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _room(folder: Path, what: str) -> Iterator[Finding]:
    """Report a disk with little room."""
    disk = shutil.disk_usage(folder)
    if disk.free >= max(_LEAST, min(_FEW, int(disk.total * _SHARE))):
        return
    text = f"{disk.free / 1e6:.0f} MB are free in {folder}, which holds {what}"
    yield Finding("bad" if disk.free < _LEAST else "note", text, "free space on its disk")


def check_writes(desk: Desk) -> Iterator[Finding]:
    """Try a write to every store, and take it back."""
    settings = desk.settings
    if settings.database_url:
        import asyncio

        yield from asyncio.run(_try_postgres(settings))
    for path in sqlite_files(settings):
        if refused := _try_sqlite(path):
            yield Finding("bad", f"{path} cannot be written: {refused}", "check its rights and the disk")
    if refused_bars := settings.store_backend.refused_write():
        yield Finding("bad", *refused_bars)


def sqlite_files(settings: Settings) -> list[Path]:
    """The databases of this desk in the home that exist."""
    names = [settings.bar_folder / "buffer.sqlite"]
    if not settings.database_url:
        names += [settings.market_folder / "records.sqlite", settings.home / "access.sqlite"]
    return [each for each in names if each.exists()]


def _try_sqlite(path: Path) -> str:
    """Why a database cannot be written; empty if it can.

    The log of a killed process stays as it is: the last connection would move it into the file, unless it may only read.
    """
    from openbell.stores.failure_causes import full_disk
    from openbell.stores.sqlite_connections import connect

    uri = path.absolute().as_uri()
    try:
        with ExitStack() as stack:
            if path.with_name(f"{path.name}-wal").exists():
                reader = stack.enter_context(closing(connect(f"{uri}?mode=ro", 5.0)))
                reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            writer = stack.enter_context(closing(connect(f"{uri}?mode=rw", 5.0)))
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("CREATE TABLE doctor (tried INTEGER)")
            writer.execute("INSERT INTO doctor VALUES (1)")
            writer.execute("ROLLBACK")
    except sqlite3.Error as error:
        return full_disk(error, path) or str(error)
    return ""


async def _try_postgres(settings: Settings) -> list[Finding]:
    from openbell.desk.settings.access import make_access
    from openbell.desk.settings.open_records import make_records
    from openbell.market.clock import SystemClock
    from openbell.stores.access.tables import metadata as access_tables
    from openbell.stores.records.database import write_refusal
    from openbell.stores.records.tables import metadata as record_tables

    hint = "grant SELECT, INSERT, UPDATE and DELETE on all tables of the schema to the role of OPENBELL_DATABASE_URL"
    found = []
    for database, tables in (
        (make_records(settings, SystemClock()).database, record_tables),
        (make_access(settings).database, access_tables),
    ):
        try:
            if await database.exists() and (refused := await write_refusal(database, tables)):
                found.append(Finding("bad", f"nothing can be written: {refused}", hint))
        except StoreError:
            continue  # the check of the records reports it
        finally:
            await database.close()
    return found
