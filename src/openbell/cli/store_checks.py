"""The checks of `openbell doctor` on what is stored: bars, what `--mend` does to them, and whether the desk can write."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from openbell.cli.findings import IMPORT, Finding
from openbell.desk.desk import Desk
from openbell.desk.settings import Settings
from openbell.market.clock import iso
from openbell.market.errors import StoreError
from openbell.market.plural import counted
from openbell.market.timeframes import SHORT

if TYPE_CHECKING:
    from openbell.market.series import Series
    from openbell.stores.port import FileProblem, Premature, Span

_MEND = "openbell doctor --mend"
_LEAST = 100_000_000
"""Free bytes below which the desk may fail at any time."""
_FEW = 1 << 30
_SHARE = 0.05
_TRIED = 1 << 20
"""Bytes that are written to each folder."""


def check_bars(desk: Desk) -> Iterator[Finding]:
    """Check that the store can be read, that nothing was lost, and that nothing was stored too early."""
    folder = desk.settings.bar_folder
    if not desk.settings.store_backend.has_bars:
        yield Finding(
            "note",
            f"no bars in {folder} yet",
            "openbell up" if desk.settings.simulated else IMPORT,
        )
        return
    where = desk.store.where().removesuffix(" (read only)")
    stored = desk.store.stored()
    symbols = len({series.instrument for series in stored})
    by_timeframe = Counter(series.timeframe for series in stored)
    counts = ", ".join(f"{count} at {name}" for name, each in SHORT.items() if (count := by_timeframe[each]))
    try:
        size = f"{desk.store.size() / 1e6:.1f} MB"
    except StoreError as error:  # a database may tell it to administrators only
        size = f"of unknown size ({error.message})"
    yield Finding("ok", f"{counted(symbols, 'symbol')} ({counts or 'no bars'}), {size} in {where}")
    for problem in desk.store.audit.problems():
        yield _problem(problem)
    for found in desk.store.audit.premature():
        yield Finding("bad", _describe(found), _MEND)
    yield from _losses(desk)
    from openbell.desk.importing.storing import uncovered_imports

    for series, spans in uncovered_imports(desk.store):
        yield Finding("bad", _describe_uncovered(series, spans), _MEND)


def mend_bars(desk: Desk) -> Iterator[Finding]:
    """Remove coverage of bars that had not closed and of bars that were lost, so that they are fetched again.

    Imported bars that are stored and not covered are covered, so that they are read.
    """
    if not desk.settings.bar_folder.exists():
        return
    store = desk.store
    for found in store.audit.mend():
        yield Finding("ok", f"mended: {_describe(found)}; it will be fetched again when needed")
    if store.audit.mend_made():
        yield Finding("ok", "mended: bars that are made of minutes were lost; they are made again when needed")
    for series in store.audit.to_check():
        for loss in store.audit.mend_losses(series):
            yield Finding("ok", f"mended: {store.name} {loss.described()}")
    from openbell.desk.importing.storing import cover_imports, uncovered_imports

    for series, spans in uncovered_imports(store):
        cover_imports(store, series, spans)
        yield Finding("ok", f"mended: {_describe_uncovered(series, spans)}; they are read from now on")


def _losses(desk: Desk) -> Iterator[Finding]:
    store = desk.store
    for series in store.audit.to_check():
        for loss in store.audit.losses(series):
            yield Finding("bad", f"{store.name} {loss.described()}", _MEND)
    for loss in store.audit.lost_for_good():
        yield Finding("bad", f"{store.name} {loss.described()}", IMPORT)
    if store.audit.lacks_made():
        yield Finding("bad", "bars that are made of minutes were lost: the database is older than this home", _MEND)


def _problem(problem: FileProblem) -> Finding:
    if problem.reason.startswith(("is gone", "has lost")):
        return Finding("note", f"{iso(int(problem.at))}: {problem.path} {problem.reason}")
    return Finding(
        "note",
        f"set aside {problem.path}: {problem.reason}",
        "fetched again if the feed has it; otherwise import the file again",
    )


def _describe_uncovered(series: Series, spans: Sequence[Span]) -> str:
    first, last = iso(spans[0].start)[:10], iso(spans[-1].end)[:10]
    return f"imported bars of {series} between {first} and {last} are stored, but left out when bars are read"


def _describe(found: Premature) -> str:
    early = found.span.end > found.written
    return (
        f"{found.series} from {iso(found.span.start)} to {iso(found.span.end)} was recorded as complete at "
        f"{iso(int(found.written))}, "
        + ("before it had ended" if early else "later than the machine's time now: its clock was or is wrong")
    )


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
