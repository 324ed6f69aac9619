"""The lines of the log, as text or as JSON, and standard error of a service whose log is JSON.

Whatever else is printed there becomes one JSON object for each line.
"""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TextIO

from openbell.market.foreign_text import UNSEEN

_SPACES = re.compile(r"[\t\n]")
_SHORTEST = 4
"""Characters of the shortest text that is replaced: a shorter one is part of too many words."""
_ERRORS = ("openbell: ", "Error: ")
"""How messages begin that end a command."""


def one_line(text: str) -> str:
    """Returns a text with the ends of lines and all characters that are not seen written as escapes."""
    return UNSEEN.sub(_escape, _SPACES.sub(_escape, text))


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found.group())[1:-1]


class LogLine(logging.Formatter):
    """Formats events as `TIME LEVEL LOGGER: MESSAGE`; a traceback follows the message in the same line."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are texts that no line may contain."""
        super().__init__()
        found = sorted({each for each in secrets if len(each) >= _SHORTEST}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, found))) if found else None

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of an event."""
        trace = self.trace(record)
        text = self.hide(record.getMessage()) + (f" | {trace}" if trace else "")
        return one_line(f"{time_of(record)} {record.levelname} {record.name}: {text}")

    def trace(self, record: logging.LogRecord) -> str:
        """Returns the traceback of an event; empty if it has none."""
        parts = [self.formatException(record.exc_info)] if record.exc_info and record.exc_info[0] else []
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return self.hide("\n".join(parts))

    def hide(self, text: str) -> str:
        """Returns a text without secrets."""
        return self._secrets.sub("***", text) if self._secrets else text


class JsonLine(LogLine):
    """Formats events as JSON objects with time, level, logger, message and, if there is one, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of an event."""
        line = {
            "time": time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.hide(record.getMessage()),
        }
        if trace := self.trace(record):
            line["traceback"] = trace
        return json.dumps(line)


def time_of(record: logging.LogRecord) -> str:
    """Returns the time of an event in UTC, to the millisecond."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
