"""The source of bars. Simulated and real bars are never in one file, and every file names its source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """The kind of data that a result is based on; the value in the truth header."""

    SIMULATED = "simulated"
    IMPORTED = "imported"
    REPLAY = "replay"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a stored month of bars; all bars of one month have the same source."""

    origin: Origin
    feed: str
    adjustment: str = "raw"

    def __str__(self) -> str:
        return f"{self.origin}/{self.feed}/{self.adjustment}"
