"""Makes a backup of a home that may be in use.

Records are copied before bars, so that the bar behind each fill is there. Of bars the buffer is copied before the files: a
bar that leaves the buffer meanwhile is in both. If files were replaced otherwise than by that, both are copied again.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from openbell import __version__
from openbell.desk.operations.backup import contents
from openbell.desk.operations.backup.contents import Copied, Manifest, Market
from openbell.desk.settings.access import FILE as ACCESS
from openbell.market.errors import Refused, StoreError
from openbell.stores.folders import sync_folder
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.sqlite_connections import connect, copy_database, open_reader
from openbell.trading.ledger import GENESIS, Head, goes_beyond

_ROUNDS = 5
"""How often files are copied again before writers have to wait."""

Advance = Callable[[int], None]


def size_of(home: Path) -> int:
    """About how many bytes a backup will have."""
    files = contents.databases_of(home)
    files += [file for market in contents.markets_of(home) for each in market.bar_folders for file in _files(each)]
    total = 0
    for path in files:
        with suppress(OSError):
            total += path.stat().st_size
    return total


def make(home: Path, target: Path, advance: Advance = lambda _bytes: None) -> Manifest:
    """Copy a home into a new folder. It gets its name when it is complete. Raises `Refused` or `StoreError`."""
    if not home.is_dir():
        raise Refused(f"there is no home {home}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refused(f"{target} exists: give the name of a new folder")
    if target.resolve().is_relative_to(home.resolve()):
        raise Refused(f"{target} is inside the home: a backup belongs on another disk or machine")
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(f"{target.name}.partial-*"):
            if not _is_running(left.name.rpartition("-")[2]):
                shutil.rmtree(left)
        partial.mkdir(mode=0o700)
        made = _Making(home, partial, advance).run()
        contents.write_manifest(partial, made)
        for folder, _, _ in os.walk(partial):
            sync_folder(Path(folder))
        if target.exists():
            target.rmdir()
        partial.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise StoreError(f"cannot write {error.filename or partial}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise StoreError(f"cannot read a database of {home}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return made


class _Making:
    def __init__(self, home: Path, folder: Path, advance: Advance) -> None:
        self._home = home
        self._folder = folder
        self._advance = advance
        self._files: dict[str, Copied] = {}
        self._heads: dict[str, str] = {}

    def run(self) -> Manifest:
        began = time.time()
        markets = contents.markets_of(self._home)
        for market in markets:
            self._copy_records(market)
        if (access := self._home / ACCESS).exists():
            self._copy_database(access)
        for market in markets:
            for folder in market.bar_folders:
                self._copy_bars(folder)
        for name in contents.PLAIN:
            with suppress(FileNotFoundError):
                self._copy_file(self._home / name)
        return Manifest(began, __version__, self._heads, dict(sorted(self._files.items())))

    # Records

    def _copy_records(self, market: Market) -> None:
        """Copy the records, and write a head file that fits them: the running one may be ahead of the copy."""
        for other in market.folder.glob("ledger-*.head"):  # of ledgers in PostgreSQL
            self._copy_file(other)
        head = HeadFile(market.folder / "ledger.head")
        if not market.records.exists():
            if (noted := head.read()) is not None and noted.seq:
                raise Refused(
                    f"{market.records} is missing, and its ledger had {noted.seq} entries: nothing was copied. Restore an "
                    "earlier backup, or accept the empty ledger with openbell verify --adopt"
                )
            return
        before = head.ends() or _first_head(market.records)
        self._copy_database(market.records, without=contents.WEBHOOKS)
        newest = _check_head(self._target(market.records), before, head.ends, market)
        copied = HeadFile(self._target(market.folder / "ledger.head"))
        copied.reset(newest)
        copied.close()
        self._note(market.folder / "ledger.head")
        self._heads[market.name] = f"{newest.seq}:{newest.hash}"

    # Bars

    def _copy_bars(self, folder: Path) -> None:
        """Copy buffer and files until they fit; in the last round writers wait."""
        done: dict[Path, tuple[int, int]] = {}
        buffer = folder / "buffer.sqlite"
        for _ in range(_ROUNDS):
            self._copy_round(folder, done)
            if _epochs(buffer) == _epochs(self._target(buffer)):
                return
        with closing(connect(buffer)) as lock:
            try:
                lock.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                raise StoreError(f"cannot lock {buffer}: {error}") from error
            self._copy_round(folder, done)

    def _copy_round(self, folder: Path, done: dict[Path, tuple[int, int]]) -> None:
        """Copy the buffer, then the files that have changed since the last round."""
        self._copy_database(folder / "buffer.sqlite")
        found = set()
        for path in contents.bar_files(folder):
            with suppress(FileNotFoundError):  # removed meanwhile
                stat = path.stat()
                version = (stat.st_ino, stat.st_mtime_ns)
                if done.get(path) != version:
                    self._copy_file(path)
                    done[path] = version
                found.add(path)
        for path in set(done) - found:
            del done[path], self._files[self._name(path)]
            self._target(path).unlink(missing_ok=True)

    # Files

    def _name(self, path: Path) -> str:
        return path.relative_to(self._home).as_posix()

    def _target(self, path: Path) -> Path:
        return self._folder / path.relative_to(self._home)

    def _copy_database(self, path: Path, *, without: tuple[str, ...] = ()) -> None:
        target = self._target(path)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.unlink(missing_ok=True)
        target.touch(0o600)
        copy_database(path, target, without=without)
        self._note(path)
        self._advance(self._files[self._name(path)].size)

    def _copy_file(self, path: Path) -> None:
        self._files[self._name(path)] = contents.copy_file(path, self._target(path), self._advance)

    def _note(self, path: Path) -> None:
        self._files[self._name(path)] = contents.describe(self._target(path))


def _files(folder: Path) -> list[Path]:
    return list(contents.bar_files(folder))


def _first_head(records: Path) -> tuple[Head, ...]:
    """The head of records without entries, which is noted together with their first entry."""
    with closing(open_reader(records)) as db:
        return () if _entry(db, "LIMIT 1") else (Head(0, GENESIS),)


def _check_head(copy: Path, before: tuple[Head, ...], ends: Callable[[], tuple[Head, ...]], market: Market) -> Head:
    """Returns the last entry of copied records. Raises `Refused` if the home's head says that they are not what was written.

    A copy with a head of its own would otherwise make a cut ledger look complete.
    """
    with closing(connect(copy)) as db:
        newest = _entry(db, "ORDER BY seq DESC LIMIT 1") or Head(0, GENESIS)
        noted = before[0] if before else newest
        found = noted.seq == 0 or _entry(db, f"WHERE seq = {int(noted.seq)}") == noted
    after = ends()
    if found and before and not (after and goes_beyond(newest, after)):
        return newest
    raise Refused(
        f"the ledger in {market.records} does not fit its head: nothing was copied. Check it with openbell verify; if it is "
        "correct, accept it with openbell verify --adopt"
    )


def _entry(db: sqlite3.Connection, which: str) -> Head | None:
    row = db.execute(f"SELECT seq, hash FROM ledger {which}").fetchone()
    return Head(int(row[0]), str(row[1])) if row else None


def _epochs(buffer: Path) -> list[tuple[int, int]]:
    """What has changed in a buffer besides new bars."""
    with closing(open_reader(buffer)) as db:
        found: list[tuple[int, int]] = db.execute("SELECT id, epoch FROM series ORDER BY id").fetchall()
        return found


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
