"""The audit log: one JSON line for each tool call, in `audit.log` in the home. Never arguments, tokens or results.

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
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

NAME = "audit.log"
_MOST_BYTES = 16 * 2**20
_KEPT = 8
_MOST_QUEUED = 50_000
_COLLECT_SECONDS = 0.05
"""How long lines are collected before they are written together: a thread that wakes for each line slows the event loop."""
_LONGEST = 128
"""Characters of a text: clients choose the names of unknown tools."""


class Entry(NamedTuple):
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

    def line(self) -> str:
        """Returns the entry as a line of ASCII: no text can end it or change how a terminal shows it."""
        texts = (self.request, self.principal, self.server, self.tool, self.scope, self.outcome)
        request, principal, server, tool, scope, outcome = (_quoted(str(text)[:_LONGEST]) for text in texts)
        return (
            f'{{"time": "{_iso(self.time)}", "request": {request}, "principal": {principal}, "server": {server}, '
            f'"tool": {tool}, "scope": {scope}, "outcome": {outcome}, "ms": {self.ms:.2f}, '
            f'"address": {_quoted(self.address[:_LONGEST])}}}\n'
        )


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Audit:
    """Appends to the audit log. Call `close` before the process ends."""

    def __init__(
        self, folder: Path, *, most_bytes: int = _MOST_BYTES, kept: int = _KEPT, most_queued: int = _MOST_QUEUED
    ) -> None:
        """The log is rotated at `most_bytes`; `kept` rotated files (audit.log.1 is the newest) are kept."""
        self._file = _RotatedFile(folder / NAME, most_bytes, kept)
        self._most_queued = most_queued
        self._queue: deque[Entry] = deque()
        # Three counts of lines, each changed by one thread only.
        self._dropped = 0
        self._failed = 0
        self._reported = 0
        self._warned = False
        self._has_lines = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def record(self, entry: Entry) -> None:
        """Queue a line. Never blocks and never raises."""
        if len(self._queue) >= self._most_queued:
            self._dropped += 1
            return
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
            self._has_lines.wait()
            self._closing.wait(_COLLECT_SECONDS)
            self._has_lines.clear()
            self._write()
        self._write()  # lines that came while the last ones were written
        self._file.close()

    def _write(self) -> None:
        count = len(self._queue)
        entries = [self._queue.popleft() for _ in range(count)]
        lost = self.lost
        if not entries and not lost:
            return
        try:
            lines = [entry.line() for entry in entries]
            if lost:
                lines.append(json.dumps({"time": _iso(time.time()), "lost_lines": lost}) + "\n")
            self._file.append("".join(lines).encode())
        except Exception as error:  # noqa: BLE001 - this thread must outlive a line that cannot be written
            self._failed += count
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
