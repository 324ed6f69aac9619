"""The cause of a failed connection, file or SQLite database in words, without the insides of libraries."""

from __future__ import annotations

import errno
import os
import socket
import sqlite3
import ssl
from pathlib import Path

LOST = "the connection was lost"
_CERTIFICATES = {
    10: "the certificate of the server has expired: check it, and the clock of this machine",
    62: "the certificate of the server is for another host name: use the name in it, or sslmode=verify-ca",
    64: "the certificate of the server is for another address: use the name in it, or sslmode=verify-ca",
}
"""By OpenSSL's code."""
_LEAST = 64 * 1024
"""Free bytes below which a database cannot be opened: each needs an index of 32 KB for its log."""
_MAYBE_FULL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""What SQLite says on a full disk if it cannot create or extend a file beside the database."""
_WORDS = {
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_PERM: "it may not be opened",
}


def system_words(error: OSError) -> str:
    """Returns the cause of an error of the system in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = "the certificate of the server is not signed by an authority that is trusted here: check sslrootcert"
        return _CERTIFICATES.get(error.verify_code, unknown)
    if isinstance(error, ssl.SSLError):
        return "TLS failed: check sslmode, and the files of sslrootcert, sslcert and sslkey"
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if error.errno == errno.ECONNREFUSED:
        return "nothing listens there (connection refused)"
    if error.errno in {errno.ECONNRESET, errno.EPIPE}:
        return LOST
    if error.errno:
        return os.strerror(error.errno) + (f": {error.filename}" if error.filename else "")
    if "SSL upgrade" in str(error):
        return "it offers no TLS, and sslmode requires it"
    return LOST if isinstance(error, ConnectionError) else "it cannot be reached"


def cause_of(error: BaseException | None) -> str:
    """Returns the cause of a library's error: that of the error of the system from which it was raised."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return LOST if error is None else system_words(error)


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
