"""Files that only the owner of the home can read: folders have mode 0700 and files 0600, whatever the umask is.

A home that its owner shares with a group (mode 0750 or 0770: open to the group and closed to others) stays shared: new files
in it are open to the group too, except those that hold secrets or orders.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

_PRIVATE = 0o077
_GROUP_READS, _GROUP_WRITES = 0o027, 0o007
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MOST = 10_000
"""Files that are looked at."""
_users_mask: int | None = None
"""The umask with which the user has started the process; None before `begin`."""


def begin() -> None:
    """Let this process create private files from now on. To be called once, before any other thread runs."""
    global _users_mask  # noqa: PLW0603 - the umask is global too
    _users_mask = os.umask(_PRIVATE)


def share_as(home: Path) -> None:
    """Share new files with the group if the home is shared with it. Does nothing before `begin`."""
    if _users_mask is not None:
        os.umask(_mask_for(home))


@contextmanager
def as_user_wants() -> Iterator[None]:
    """Create files inside the block with the user's umask: those that a command writes for the user, outside the home."""
    if _users_mask is None:
        yield
        return
    mask = os.umask(_users_mask)
    try:
        yield
    finally:
        os.umask(mask)


def is_shared(home: Path) -> bool:
    """Returns True if the owner shares the home with a group: it is open to the group and closed to others."""
    return _mask_for(home) != _PRIVATE


def open_files(home: Path) -> list[Path]:
    """Returns the home and the files in it that the group or others can read, although the home is not shared.

    Files in a home that others cannot enter are left out: nobody reaches them.
    """
    if not home.is_dir() or is_shared(home) or not home.stat().st_mode & _OTHERS:
        return []
    return [home, *(each for each in islice(home.rglob("*"), _MOST) if _is_open(each))]


def _is_open(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & _OTHERS)


def _mask_for(home: Path) -> int:
    try:
        mode = home.stat().st_mode
    except OSError:
        return _PRIVATE
    if mode & stat.S_IRWXO or not mode & stat.S_IRGRP:
        return _PRIVATE
    return _GROUP_WRITES if mode & stat.S_IWGRP else _GROUP_READS


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that is never seen half written. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
