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


@dataclass(frozen=True, slots=True)
class BarFacts:
    """The facts about the bars of a result."""

    made_of: str | None = None
    """The timeframes of the stored bars that they are made of: `1d`, or `1d+1m`."""
    sources: frozenset[Source] = frozenset()
    """The sources of those bars."""
    failure: str | None = None
    """Why the feed did not deliver what is missing; the bars are those that were stored."""
