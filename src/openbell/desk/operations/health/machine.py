"""Figures of the machine and the process. Nothing is created, and nothing is loaded that takes long."""

from __future__ import annotations

import os
import platform
import sqlite3
from pathlib import Path

from openbell import __version__

LOW_SPACE = 256 * 2**20
"""Bytes of free space below which the desk counts as degraded: the databases and the buffer need room to write."""
_STATM = Path("/proc/self/statm")


def free_bytes(folder: Path) -> int | None:
    """Returns the free space of the disk of a folder, or of the nearest folder above it that exists."""
    for each in (folder, *folder.parents):
        try:
            found = os.statvfs(each)
        except OSError:
            continue
        return found.f_bavail * found.f_frsize
    return None


def resident_bytes() -> int | None:
    """Returns the memory of this process; None where Linux's /proc is missing."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def versions() -> dict[str, str]:
    """Returns the versions of the software."""
    return {"openbell": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
