"""The report on the health of a desk, with figures of the machine and the process. It loads nothing, so that `openbell
health` starts fast.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openbell import __version__

if TYPE_CHECKING:
    from openbell.trading.halt import Halt

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


WORKING, DEGRADED, DOWN = "working", "degraded", "down"
"""The states of a desk. Degraded: the process runs and a part of it fails. Down: no process answers."""
FAILING, OFF, UNKNOWN = "failing", "off", "unknown"
"""The states of a part besides working. Off: the settings do not use it."""
EXIT_CODES = {WORKING: 0, DEGRADED: 1, DOWN: 2}


@dataclass(frozen=True, slots=True)
class HealthPart:
    """The state of one part."""

    state: str
    text: str = ""
    """What it does now, or why it fails."""
    since: str | None = None
    """Since when it fails (ISO 8601)."""

    def __str__(self) -> str:
        return self.text + (f", since {self.since}" if self.since else "")


@dataclass(frozen=True, slots=True)
class HealthFigures:
    """Figures to watch. None: not known."""

    lag_seconds: float | None = None
    """By how much the newest complete minute is behind the last closed one; 0 while every watched market is closed."""
    through: str | None = None
    """All minutes before this time are stored (ISO 8601)."""
    markets: dict[str, str] = field(default_factory=dict)
    """The phase of each market."""
    buffered_bars: int | None = None
    """Bars that wait in the home for the bar database; 0 without one."""
    leases: dict[str, str | None] = field(default_factory=dict)
    """The process that holds each lease."""
    ledger_entries: int | None = None
    ledger_head: str | None = None
    """The hash of the last entry of the ledger."""
    webhooks_waiting: int | None = None
    webhooks_dead: int | None = None
    free_bytes: int | None = None
    """Free space on the disk of the home."""
    resident_bytes: int | None = None
    """Memory of the process."""
    halted: str | None = None
    """Why trading is halted; None if it is not."""
    halt_unknown: bool = False
    """True if nobody can tell whether trading is halted."""

    def with_halt(self, halt: Halt | None) -> HealthFigures:
        """Returns the figures with a halt."""
        return self if halt is None else replace(self, halted=str(halt), halt_unknown=not halt.known)


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """The health of a desk at one moment."""

    state: str
    text: str
    """One sentence on the state."""
    at: str
    home: str
    versions: dict[str, str]
    process: int | None
    """The id of the process that runs the desk."""
    parts: dict[str, HealthPart]
    figures: HealthFigures

    @property
    def failing(self) -> dict[str, HealthPart]:
        """The parts that fail."""
        return {name: part for name, part in self.parts.items() if part.state == FAILING}

    def payload(self) -> dict[str, Any]:
        """Returns the report as JSON values."""
        return asdict(self)


def read_payload(payload: dict[str, Any]) -> HealthSnapshot:
    """Returns the report of `Health.payload`. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
    parts = {str(name): HealthPart(**part) for name, part in payload["parts"].items()}
    found = HealthSnapshot(**{**payload, "parts": parts, "figures": HealthFigures(**payload["figures"])})
    if found.state not in EXIT_CODES:
        raise ValueError(found.state)
    return found
