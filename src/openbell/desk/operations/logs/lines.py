"""How an event becomes one line: as text or as JSON."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from openbell.market.foreign_text import UNSEEN

_SPACES = re.compile(r"[\t\n]")
_SHORTEST = 4
"""Characters of the shortest text that is replaced: a shorter one is part of too many words."""


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
