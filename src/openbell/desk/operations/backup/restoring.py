"""Restores a backup: checks every file, builds the home beside the old one, checks ledgers and bars, then renames it.

A restore makes no user, token or consent valid that the operator has removed since.

A home that is a mount point cannot be renamed: its entries are replaced. While they are moved, the home has a file that
names the step. Every command refuses such a home; the next restore puts the old entries back before it begins.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from openbell.desk.operations.backup import contents
from openbell.desk.operations.backup.contents import Manifest, Market
from openbell.desk.orders.halt_file import HALT_FILE, HaltFile
from openbell.desk.settings import Settings
from openbell.desk.settings.access import FILE
from openbell.desk.settings.reading import RESTORING
from openbell.market.clock import SystemClock
from openbell.market.errors import Refused, StoreError
from openbell.stores.folders import sync_folder
from openbell.stores.port import Loss
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.registry import all_backends
from openbell.stores.sqlite_connections import copy_database, is_in_use, open_reader
from openbell.trading.ledger import Head

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class AccessCopy:
    """What is valid in a database of users and tokens: names by a key that differs after every change."""

    users: dict[str, str]
    tokens: dict[str, str]
    consents: dict[str, str]
    """Users by the id of what they have granted to a client."""

    def besides(self, other: AccessCopy) -> AccessCopy:
        """Returns what is valid here and not there."""
        return AccessCopy(
            _besides(self.users, other.users),
            _besides(self.tokens, other.tokens),
            _besides(self.consents, other.consents),
        )

    def __bool__(self) -> bool:
        """Returns True if anything is valid."""
        return bool(self.users or self.tokens or self.consents)


NOTHING = AccessCopy({}, {}, {})


@dataclass(slots=True)
class Restored:
    """What a restore has done."""

    manifest: Manifest
    aside: Path | None = None
    """Where the old home is now."""
    bars: int = 0
    """How many series were compared with the numbers of their bars."""
    losses: list[Loss] = field(default_factory=list)
    """Bars that the home had lost when it was copied; they are gaps now."""
    halted: str | None = None
    """Why the old home was halted, which the restored one still is; None if it was not."""
    later: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Ledgers of which the old home knows a later end: their last entry in the copy and in the old home, by market."""
    access: RestoredAccess = field(default_factory=lambda: RestoredAccess(False, NOTHING))


def restore(
    settings: Settings,
    folder: Path,
    *,
    replaces: bool,
    keep_tokens: bool = False,
    advance: Advance = lambda _bytes: None,
) -> Restored:
    """Put the home of a backup in place, `alone`. Raises `Refused` or `StoreError`; the home is unchanged then."""
    home = settings.home
    found = contents.read_manifest(folder)
    _check_files(folder, found)
    _refuse(home, folder, replaces=replaces)
    building = _building(home)
    done = Restored(found)
    try:
        for left in (*home.parent.glob(f"{home.name}.restoring-*"), *home.glob(BUILDING)):
            shutil.rmtree(left)
        building.mkdir(mode=0o700)
        _copy(folder, building, found, advance)
        _check(replace(settings, home=building), found, done)
        old = _old_home(home)
        _keep_later_heads(old, building, done)
        _keep_halt(old, building, done)
        done.access = put_access(old, building, keep_tokens=keep_tokens)
        for each, _, _ in os.walk(building):
            sync_folder(Path(each))
        _put_in_place(home, building, done)
    except OSError as error:
        raise StoreError(f"cannot write {error.filename or building}: {error.strerror}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return done


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Hold the lock of restores, which ends with this process. Raises `Refused` if another process has it.

    It is on the folder above the home, because the home itself is replaced.
    """
    above = home.absolute().parent
    try:
        above.mkdir(parents=True, exist_ok=True)
        number = os.open(above, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"cannot open {above}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another restore is under way in {above}: nothing was changed") from None
        yield
    finally:
        os.close(number)


def _refuse(home: Path, folder: Path, *, replaces: bool) -> None:
    """Raise `Refused` if the home must not be replaced."""
    if folder.resolve().is_relative_to(home.resolve()):
        raise Refused(f"{folder} is inside the home {home}: move it elsewhere first")
    if not home.exists():
        return
    if not home.is_dir():
        raise Refused(f"{home} is not a folder")
    if (entries(home) if is_mount(home) else any(home.iterdir())) and not replaces:
        raise Refused(f"the home {home} is not empty: --replace keeps it aside, or set OPENBELL_HOME to a new folder")
    for database in contents.databases_of(home):
        if is_in_use(database):
            raise Refused(f"{database} is in use: stop every Openbell process of this home first")


def _check_files(folder: Path, found: Manifest) -> None:
    """Raise `StoreError` unless a backup has exactly the files of its manifest, all of them plain files of a home.

    A link would copy a file of this machine into the home, and nothing has checked a file that the manifest does not name.
    """
    for path in found.files:
        if not contents.belongs_to_home(path):
            raise StoreError(f"the manifest names {path!r:.100}, which is no file of a home: nothing was restored")
    for above, folders, files in os.walk(folder):
        for each in map(Path(above).joinpath, (*folders, *files)):
            name = each.relative_to(folder).as_posix()
            kind = each.lstat().st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise StoreError(f"the backup has {name!r:.100}, which is a link or no file: nothing was restored")
            if stat.S_ISREG(kind) and name not in found.files and name != contents.MANIFEST:
                raise StoreError(
                    f"the backup has {name!r:.100}, which its manifest does not name: remove it; nothing was restored"
                )


def _building(home: Path) -> Path:
    """The folder in which the new home is built: on the same disk, so that it can be renamed."""
    if is_mount(home):
        return home / BUILDING
    return home.with_name(f"{home.name}.restoring-{os.getpid()}")


def _old_home(home: Path) -> Path:
    """The home that is replaced; if a restore was killed between its two renames, the one that it has set aside."""
    asides = sorted(home.parent.glob(f"{home.name}.before-restore-*"))
    return asides[-1] if asides and not home.exists() else home


def _copy(folder: Path, building: Path, found: Manifest, advance: Advance) -> None:
    """Copy the files of a backup, and compare each with the manifest."""
    for path, expected in found.files.items():
        try:
            copied = contents.copy_file(folder / path, building / path, advance)
        except FileNotFoundError:
            raise StoreError(f"the backup is damaged: {path} is missing; nothing was restored") from None
        if copied != expected:
            raise StoreError(f"the backup is damaged: {path} is not what was copied; nothing was restored")


def _check(settings: Settings, found: Manifest, done: Restored) -> None:
    """Check the ledgers and the bars of a home. Raises `StoreError` for a ledger that is not correct."""
    for market in contents.markets_of(settings.home):
        if market.records.exists():
            asyncio.run(_check_ledger(market, found))
    for market in contents.markets_of(settings.home):
        for folder, backend in ((folder, each) for each in all_backends() for folder in market.folders_of(each)):
            if (restored := backend.restored(folder)) is not None:
                with closing(restored) as store:
                    for series in store.audit.to_check():
                        done.bars += 1
                        done.losses += store.audit.mend_losses(series)


async def _check_ledger(market: Market, found: Manifest) -> None:
    from openbell.stores.records.records import Records
    from openbell.stores.records.sqlite import SqliteDatabase
    from openbell.stores.records.verify import faults

    head = HeadFile(market.folder / "ledger.head")
    records = Records(SqliteDatabase(market.records), head, SystemClock())
    try:
        ends = head.ends()
        wrong = await records.read(lambda view: next(iter(faults(view.connection, (), ends)), None), check_head=False)
    finally:
        await records.close()
    if wrong is None and ends and found.heads.get(market.name) != f"{ends[0].seq}:{ends[0].hash}":
        raise StoreError(f"the backup is damaged: the head of {market.name} is not the one in its manifest")
    if wrong is not None:
        raise StoreError(
            f"the ledger of this backup is not correct ({market.name}): {wrong.reason}; nothing was restored"
        )


def _keep_later_heads(home: Path, building: Path, done: Restored) -> None:
    """Keep the head of a ledger of which the old home knows a later end.

    The restored ledger lacks entries that were acknowledged. It is not used until the operator has accepted it.
    """
    for market in contents.markets_of(building):
        known = _head_of(home / market.folder.relative_to(building) / "ledger.head")
        copied = _head_of(market.folder / "ledger.head")
        if known and copied and known.seq > copied.seq:
            done.later[market.name] = (copied.seq, known.seq)
            kept = HeadFile(market.folder / "ledger.head")
            kept.reset(known)
            kept.close()


def _keep_halt(home: Path, building: Path, done: Restored) -> None:
    """Keep the halt of the old home, which only a resume ends, without the numbers of ledger entries that the copy lacks."""
    old = HaltFile(home / HALT_FILE)
    if (halt := old.read()) is not None:
        done.halted = str(halt)
        HaltFile(building / HALT_FILE).set(done.halted, old.since() or time.time())


def _head_of(path: Path) -> Head | None:
    try:
        return HeadFile(path).read()
    except StoreError:
        return None  # damaged: nothing is known


def _put_in_place(home: Path, building: Path, done: Restored) -> None:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    if building.parent == home:
        aside = _unused(home / f"{ASIDE}{stamp}")
        done.aside = replace_entries(home, building, aside)
        return
    if home.exists() and any(home.iterdir()):
        done.aside = _unused(home.with_name(f"{home.name}.before-restore-{stamp}"))
        home.rename(done.aside)
    elif home.exists():
        home.rmdir()
    building.rename(home)
    sync_folder(home.parent)


def _unused(path: Path) -> Path:
    """The path, or one with a number after it: there may have been another restore in the same second."""
    names = (path if not number else path.with_name(f"{path.name}-{number}") for number in count())
    return next(each for each in names if not each.exists())


@dataclass(frozen=True, slots=True)
class RestoredAccess:
    """What a restore has done with users and tokens."""

    from_backup: bool
    """Whether those of the backup are valid, as they were when it was made."""
    differs: AccessCopy
    """What is valid in the backup alone: it is valid again, or not used."""
    unreadable: str | None = None
    """Why those of the old home could not be kept."""


def put_access(old_home: Path, building: Path, *, keep_tokens: bool) -> RestoredAccess:
    """Choose the database of users and tokens for a home that is being restored. Raises `OSError`.

    Those of the old home stay valid. Without them nothing is valid, unless the operator keeps the tokens of the backup.
    """
    target, old = building / FILE, old_home / FILE
    copied, known = _read(target), _read(old)
    if keep_tokens:
        return RestoredAccess(True, copied.besides(known))
    target.unlink(missing_ok=True)
    unreadable = None
    if old.exists():
        try:
            target.touch(0o600)
            copy_database(old, target)
        except StoreError as error:
            target.unlink(missing_ok=True)
            unreadable = error.message
    return RestoredAccess(False, copied.besides(known), unreadable)


def _read(path: Path) -> AccessCopy:
    """Returns what is valid in a database; nothing if it does not exist or cannot be read."""
    if not path.exists():
        return NOTHING
    now = time.time()
    try:
        with closing(open_reader(path)) as db:
            users = dict(db.execute("SELECT salt || hash, name FROM users"))
            tokens = dict(
                db.execute("SELECT hash, name FROM static_tokens WHERE expires_at IS NULL OR expires_at > ?", (now,))
            )
            granted = "SELECT id, subject FROM grants WHERE revoked_at IS NULL AND expires_at > ?"
            consents = dict(db.execute(granted, (now,)))
    except sqlite3.Error:
        return NOTHING
    return AccessCopy(users, tokens, consents)


def _besides(mine: dict[str, str], others: dict[str, str]) -> dict[str, str]:
    return {key: name for key, name in mine.items() if key not in others}


BUILDING = ".restoring"
"""The folder in which the new home is built."""
ASIDE = "before-restore-"
"""How the folder of the old entries begins."""
_SYSTEM = "lost+found"
_OUT, _IN = "out", "in"


def is_mount(home: Path) -> bool:
    """Returns True if a file system is mounted at the home, or a folder of the same file system (a bind mount)."""
    if home.is_mount():
        return True
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not on every system
        return False
    escaped = "".join(f"\\{ord(each):03o}" if each in " \t\n\\" else each for each in str(home.resolve()))
    return any(line.split(" ")[4] == escaped for line in lines)


def entries(home: Path) -> list[Path]:
    """The entries of a home, without those of the disk and of earlier restores."""
    others = {RESTORING, BUILDING, _SYSTEM}
    return sorted(each for each in home.iterdir() if each.name not in others and not each.name.startswith(ASIDE))


def replace_entries(home: Path, building: Path, aside: Path) -> Path | None:
    """Put the entries of a complete folder in place of those of the home, which go into the new folder `aside`.

    Returns that folder; None if there were none.

    Raises `OSError`; the old entries are in place then.
    """
    aside.mkdir(mode=0o700)
    try:
        _note(home, _OUT, aside)
        _move(home, entries(home), aside)
        _note(home, _IN, aside)
        _move(building, sorted(building.iterdir()), home)
    except OSError:
        take_back(home)
        raise
    (home / RESTORING).unlink()
    sync_folder(home)
    if any(aside.iterdir()):
        return aside
    aside.rmdir()
    return None


def take_back(home: Path) -> bool:
    """Put the old entries back if a restore was killed while it moved them. Returns True then. Raises `OSError`."""
    try:
        step, _, name = (home / RESTORING).read_text(encoding="utf-8").strip().partition(" ")
    except FileNotFoundError:
        return False
    aside = home / name
    if step == _IN:
        for each in entries(home):
            # A halt that was set meanwhile stays.
            if each.name == HALT_FILE and not (aside / HALT_FILE).exists():
                continue
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        _note(home, _OUT, aside)  # what is in the home from now on is old
    _move(aside, sorted(aside.iterdir()), home)
    aside.rmdir()
    shutil.rmtree(home / BUILDING, ignore_errors=True)
    (home / RESTORING).unlink()
    sync_folder(home)
    return True


def _note(home: Path, step: str, aside: Path) -> None:
    """Store durably which step has begun."""
    partial = home / BUILDING / RESTORING
    partial.parent.mkdir(exist_ok=True, mode=0o700)
    with partial.open("w", encoding="utf-8") as file:
        file.write(f"{step} {aside.name}\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(home / RESTORING)
    sync_folder(home)


def _move(source: Path, found: list[Path], target: Path) -> None:
    for each in found:
        each.rename(target / each.name)
    for folder in (target, source):
        sync_folder(folder)
