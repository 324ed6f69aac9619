"""Parses the times and numbers in cells of a file."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from openbell.desk.importing.columns import shown
from openbell.market.bars import Values
from openbell.market.session_table import Times

_MILLISECONDS = 1e11
_FARTHEST = 60e14
"""Seconds. Larger values are clipped so that they fit into 64 bits; they are refused as future times."""
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
OFF_MINUTE = "time not on the minute"
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
ISO = re.compile(
    r"(?:\d{4}-\d\d-\d\d|\d{8}(?=T))"
    r"(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:[.,](?P<fraction>\d+))?)?)?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII | re.IGNORECASE,
)


def from_epochs(epochs: Values) -> tuple[Times, npt.NDArray[np.bool_]]:
    """Whole seconds, and a mask of the values without a fraction. Values of 1e11 and more are milliseconds."""
    seconds = np.where(np.abs(epochs) >= _MILLISECONDS, epochs / 1000, epochs)
    seconds = np.clip(seconds, -_FARTHEST, _FARTHEST)
    whole = np.floor(seconds)
    return whole.astype(np.int64), seconds == whole


def from_ticks(ticks: Times, per_second: int) -> tuple[Times, npt.NDArray[np.bool_]]:
    """Whole seconds of timestamps in a smaller unit, and a mask of the values without a fraction."""
    seconds, rest = np.divmod(ticks, per_second)
    return seconds, rest == 0


class BadCell(Exception):
    """A cell that cannot be read. Its arguments are the kind of fault and the message."""


def time_of(text: str) -> int:
    """Epoch seconds of a time in a file, either an epoch or ISO 8601. Raises `BadCell`."""
    if _NUMBER.fullmatch(text):
        seconds, whole = from_epochs(np.array([float(text)]))
        if not whole[0]:
            raise BadCell(OFF_MINUTE, OFF_MINUTE)
        return int(seconds[0])
    match = ISO.fullmatch(text)
    try:
        moment = datetime.fromisoformat(text.upper()) if match else None
    except ValueError:
        moment = None
    if match is None or moment is None:
        raise BadCell("unreadable time", f"unreadable time {shown(text)}")
    if (match["fraction"] or "").strip("0"):
        raise BadCell(OFF_MINUTE, OFF_MINUTE)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def number_of(text: str, name: str) -> float:
    """A number in a file. Raises `BadCell`, also for 1_000 and non-ASCII digits, which `float` would accept."""
    try:
        if text.isascii() and "_" not in text:
            return float(text)
    except ValueError:
        pass
    raise BadCell("unreadable number", f"unreadable number in {name}: {shown(text)}")
