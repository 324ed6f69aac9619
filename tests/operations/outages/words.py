"""Messages without paths, ports, times and numbers, which differ from run to run."""

from __future__ import annotations

import re
from pathlib import Path

_REPLACED = (
    (r"127\.0\.0\.1:\d+", "HOST:PORT"),
    (r"\('127\.0\.0\.1', \d+\)", "HOST:PORT"),
    (r"(/[\w.~-]+)*/(openbell-|pytest-|outages-)[\w./~-]*", "FOLDER"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"\b[0-9a-f]{16,}\b", "HASH"),
    (r"\b\d+(\.\d+)? s\b", "N s"),
    (r"\b(entry|entries|size|file) \d+", r"\1 N"),
    (r"\b\d+ (entry|entries|minutes? old)", r"N \1"),
    (r"\b(base|pg_tblspc)/[\w/.]*\d(_fsm|_vm)?", "FILE"),
)


def plain(text: str, home: Path) -> str:
    """A message as it is printed on the page."""
    text = text.replace(str(home), "HOME")
    for pattern, word in _REPLACED:
        text = re.sub(pattern, word, text)
    return " ".join(text.split())
