"""The newest bars of a series, as the bar service keeps them in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from openbell.market.bars import Bars
from openbell.market.series import Series
from openbell.market.series_plan import PlanPart
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Version


@dataclass(frozen=True, slots=True)
class BarCache:
    """The newest `depth` bars before `end`, or all if there are fewer, as the store had them at `versions`."""

    bars: Bars
    parts: tuple[PlanPart, ...]
    """What the bars are made of, oldest first."""
    versions: Mapping[Series, Version]
    """Of every series that they are made of or could be."""
    end: int
    depth: int

    def current(self, depth: int, end: int) -> bool:
        """Returns True if it holds `depth` bars up to `end`, provided that the store has not changed since."""
        return self.end == end and self.depth >= depth

    def native_parts(self, since: int) -> list[PlanPart]:
        """Returns its parts after a time that are not made of minutes."""
        return native_parts(self.parts, since)


def native_parts(parts: Sequence[PlanPart], since: int) -> list[PlanPart]:
    """Returns the parts after a time that are not made of minutes."""
    return [part for part in parts if part.base is not Timeframe.M1 and part.end > since]
