"""The cause of SQLite's error in words: a full disk is named, whatever SQLite calls it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

_LEAST = 64 * 1024
"""Free bytes below which a database cannot be opened: each needs an index of 32 KB for its log."""
_MAYBE_FULL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""What SQLite says on a full disk if it cannot create or extend a file beside the database."""
_WORDS = {
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_PERM: "it may not be opened",
}


def code_of(error: BaseException) -> int:
    """Returns SQLite's primary code of an error; 0 if it has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def full_disk(error: BaseException, path: Path) -> str:
    """Returns a sentence that names the full disk of a database; empty if an error has another cause."""
    code = code_of(error)
    if code == sqlite3.SQLITE_FULL or (code in _MAYBE_FULL and _has_no_room(path.parent)):
        return f"the disk of {path.parent} is full"
    return ""


def sqlite_words(error: BaseException, path: Path) -> str:
    """Returns the cause in words; SQLite's own for causes that need no others."""
    return full_disk(error, path) or _WORDS.get(code_of(error)) or str(error)


def _has_no_room(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    # Some file systems have no table of files, and count none.
    return found.f_bavail * found.f_frsize < _LEAST or bool(found.f_files and not found.f_favail)
