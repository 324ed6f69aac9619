"""Standard error of a service whose log is JSON: whatever else is printed there becomes one JSON object for each line."""

from __future__ import annotations

import io
import logging
import sys
import threading
from typing import TextIO

from openbell.desk.operations.logs.lines import JsonLine

_ERRORS = ("openbell: ", "Error: ")
"""How messages begin that end a command."""


class JsonStream(io.TextIOBase):
    """A stream that writes each line to another one as an event of the log."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.formatter = JsonLine()
        self._lock = threading.Lock()
        self._begun = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the other stream."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """That of the other stream."""
        return self.stream.errors

    def writable(self) -> bool:
        """Returns True."""
        return True

    def isatty(self) -> bool:
        """Returns False: what is meant for a terminal is no JSON."""
        return False

    def fileno(self) -> int:
        """Returns that of the other stream."""
        return self.stream.fileno()

    def write(self, text: str) -> int:
        """Write the lines that are complete."""
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
            for line in filter(str.strip, lines):
                self.stream.write(f"{self._event(line)}\n")
        return len(text)

    def flush(self) -> None:
        """Flush the other stream; a line that is not complete waits."""
        self.stream.flush()

    def _event(self, line: str) -> str:
        """Returns a line as an event."""
        level = logging.ERROR if line.startswith(_ERRORS) else logging.INFO
        values = {"name": "openbell", "levelno": level, "levelname": logging.getLevelName(level), "msg": line.rstrip()}
        return self.formatter.format(logging.makeLogRecord(values))


def only_json_lines() -> None:
    """Write everything that this process prints on standard error as JSON from now on, without the secrets of its log."""
    if isinstance(sys.stderr, JsonStream):
        return
    made = JsonStream(sys.stderr)
    for handler in logging.root.handlers:
        if isinstance(handler.formatter, JsonLine):
            made.formatter = handler.formatter
    sys.stderr = made
