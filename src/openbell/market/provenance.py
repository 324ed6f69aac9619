"""Where bars come from. Simulated and real ones never share a file, and every file says which it holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """What a result rests on, as the truth header says it."""

    SIMULATED = "simulated"
    IMPORTED = "imported"
    REPLAY = "replay"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Source:
    """The provenance that a stored month of bars carries; one month never mixes two."""

    origin: Origin
    feed: str
    adjustment: str = "raw"

    def __str__(self) -> str:
        return f"{self.origin}/{self.feed}/{self.adjustment}"
