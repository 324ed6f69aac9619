"""The audit log: one JSON line for each tool call, sign-in and consent, in `audit.log` in the home. Never arguments,
tokens or results.

Refusals cost a caller nothing: one could fill the log with them until every other line is rotated away. Of each caller 10,
then one every 10 s, are written; the others are counted, and the counts are written once a minute.

Lines are queued and written by a thread, so that a slow or full disk never delays a call. `close` writes all queued lines; a
killed process loses those of its last 50 ms. Lines that cannot be written are counted, and the count is written as a line
when the disk works again.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path
from typing import NamedTuple

from openbell.gateway.guard.limits import CallLimits, address_key
from openbell.net.rates import Rate

log = logging.getLogger(__name__)

NAME = "audit.log"
_MOST_BYTES = 16 * 2**20
_KEPT = 8
_MOST_QUEUED = 50_000
_COLLECT_SECONDS = 0.05
"""How long lines are collected before they are written together: a thread that wakes for each line slows the event loop."""
OAUTH = "oauth"
"""The server in lines about sign-ins, consents and tokens, whose callers are addresses: anybody can choose a name."""
REFUSED = "refused"
REFUSALS = Rate(per_minute=6, burst=10)
"""Refusals of one caller that are written."""
_MOST_CALLERS = 1_000
"""Callers whose refusals are counted apart."""
_OTHERS = "others"
"""The caller of refusals that are not counted apart."""
_COUNT_SECONDS = 60.0
_LONGEST = 128
"""Characters of a text: clients choose the names of unknown tools."""


class AuditEntry(NamedTuple):
    """One tool call."""

    time: float
    """Unix time at which the call ended."""
    request: str
    principal: str
    server: str
    tool: str
    scope: str
    """The class of the tool: `read`, `trade` or `admin`; empty for an unknown tool."""
    outcome: str
    """`ok`, `refused`, or the code of the error."""
    ms: float
    address: str
    client: str = ""
    """The id of the OAuth client; empty for a token of `openbell token`."""
    token: str = ""
    """The name of that token."""

    @property
    def caller(self) -> str:
        """Who is counted: the principal, or the address of somebody who may have signed in."""
        return f"address {address_key(self.address)}" if self.server == OAUTH else self.principal

    def line(self) -> str:
        """Returns the entry as a line of ASCII: no text can end it or change how a terminal shows it."""
        texts = (self.request, self.principal, self.server, self.tool, self.scope, self.outcome)
        request, principal, server, tool, scope, outcome = (_quoted(str(text)[:_LONGEST]) for text in texts)
        by = f', "client": {_quoted(self.client[:_LONGEST])}' if self.client else ""
        by += f', "token": {_quoted(self.token[:_LONGEST])}' if self.token else ""
        return (
            f'{{"time": "{_iso(self.time)}", "request": {request}, "principal": {principal}, "server": {server}, '
            f'"tool": {tool}, "scope": {scope}, "outcome": {outcome}, "ms": {self.ms:.2f}, '
            f'"address": {_quoted(self.address[:_LONGEST])}{by}}}\n'
        )


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _count_line(caller: str, number: int) -> str:
    """Returns the line of refusals that were not written one by one."""
    return f'{{"time": "{_iso(time.time())}", "principal": {_quoted(caller[:_LONGEST])}, "refused_more": {number}}}\n'


class AuditLog:
    """Appends to the audit log. Call `close` before the process ends."""

    def __init__(
        self,
        folder: Path,
        *,
        most_bytes: int = _MOST_BYTES,
        kept: int = _KEPT,
        most_queued: int = _MOST_QUEUED,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """The log is rotated at `most_bytes`; `kept` rotated files (audit.log.1 is the newest) are kept."""
        self._file = _RotatedFile(folder / NAME, most_bytes, kept)
        self._most_queued = most_queued
        self._queue: deque[AuditEntry] = deque()
        self._refusals = CallLimits({REFUSED: REFUSALS}, now=now)
        self._refused: deque[str] = deque()
        """The callers of refusals that are counted only, until the thread counts them."""
        self._unwritten: Counter[str] = Counter()
        """Refusals that were counted only, by caller. Only the thread uses it."""
        self._now = now
        self._counts_written = now()
        # Counts that are each changed by one thread only.
        self._uncounted = 0
        self._counted_late = 0
        self._dropped = 0
        self._failed = 0
        self._reported = 0
        self._warned = False
        self._has_lines = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def record(self, entry: AuditEntry) -> None:
        """Queue a line, or count a refusal of a caller that has many. Never blocks and never raises."""
        if entry.outcome == REFUSED and self._refusals.take(entry.caller, REFUSED) is not None:
            if len(self._refused) >= self._most_queued:
                self._uncounted += 1
                return
            self._refused.append(entry.caller)
        elif len(self._queue) >= self._most_queued:
            self._dropped += 1
            return
        else:
            self._queue.append(entry)
        if not self._has_lines.is_set():
            self._has_lines.set()

    @property
    def lost(self) -> int:
        """How many lines could not be written since the last report of them in the log."""
        return self._dropped + self._failed - self._reported

    def close(self) -> None:
        """Write all queued lines and close the file. Blocks: asynchronous code calls it in a thread."""
        self._closing.set()
        self._has_lines.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._has_lines.wait(_COUNT_SECONDS)
            self._closing.wait(_COLLECT_SECONDS)
            self._has_lines.clear()
            self._write()
        self._write()  # lines that came while the last ones were written
        self._file.close()

    def _count_refusals(self) -> None:
        """Count the refusals that were queued since the last call. The number of callers is bounded."""
        for _ in range(len(self._refused)):
            caller = self._refused.popleft()
            known = caller in self._unwritten or len(self._unwritten) < _MOST_CALLERS
            self._unwritten[caller if known else _OTHERS] += 1
        if late := self._uncounted - self._counted_late:
            self._counted_late += late
            self._unwritten[_OTHERS] += late

    def _due_counts(self) -> Counter[str]:
        """Returns the counts of refusals that are to be written now, which begin again at 0."""
        if not self._closing.is_set() and self._now() - self._counts_written < _COUNT_SECONDS:
            return Counter()
        self._counts_written = self._now()
        found, self._unwritten = self._unwritten, Counter()
        return found

    def _write(self) -> None:
        count = len(self._queue)
        entries = [self._queue.popleft() for _ in range(count)]
        self._count_refusals()
        lost, counts = self.lost, self._due_counts()
        if not entries and not lost and not counts:
            return
        try:
            lines = [entry.line() for entry in entries]
            lines += (_count_line(caller, number) for caller, number in counts.items())
            if lost:
                lines.append(json.dumps({"time": _iso(time.time()), "lost_lines": lost}) + "\n")
            self._file.append("".join(lines).encode())
        except Exception as error:  # noqa: BLE001 - this thread must outlive a line that cannot be written
            self._failed += count
            self._unwritten.update(counts)
            if not self._warned:
                log.warning("the audit log %s cannot be written: %s; calls are served", self._file.path, error)
            self._warned = True
            return
        self._reported += lost
        if self._warned:
            log.warning("the audit log %s is written again; %d lines are lost", self._file.path, lost)
        self._warned = False


class _RotatedFile:
    """A file that is only appended to, also by several processes, and is renamed when it is large."""

    def __init__(self, path: Path, most_bytes: int, kept: int) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._kept = kept
        self._fd: int | None = None
        self._torn = False
        """The last write ended in the middle of a line."""

    def append(self, data: bytes) -> None:
        """Append some lines. Raises `OSError`."""
        with self._locked() as fd:
            if self._torn:
                data = b"\n" + data
            done = 0
            try:
                while done < len(data):
                    done += os.write(fd, data[done:])
            finally:
                self._torn = 0 < done < len(data) or (self._torn and not done)
            if os.fstat(fd).st_size >= self._most_bytes:
                self._rotate()

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Locks the file that is at the path now: another process may have rotated it."""
        while True:
            fd = self._open()
            fcntl.flock(fd, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(self.path.stat(), os.fstat(fd)):
                    break
            self.close()
        try:
            yield fd
        finally:
            if self._fd is not None:
                fcntl.flock(fd, fcntl.LOCK_UN)

    def _open(self) -> int:
        if self._fd is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(self.path, flags, 0o600)
        return self._fd

    def _rotate(self) -> None:
        for number in range(self._kept, 0, -1):
            older = self.path.with_name(f"{NAME}.{number}")
            newer = self.path if number == 1 else self.path.with_name(f"{NAME}.{number - 1}")
            with suppress(FileNotFoundError):
                newer.replace(older)
        self.close()
