"""The results of a desk that may not write: one that is read-only, or one that looks at the past."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from openbell.desk.research.strategies.search_results import Known, SearchKey
from openbell.stores.records.strategies import EVERYONE
from openbell.strategies.implementations import Implementation


@dataclass(frozen=True, slots=True)
class _Kept:
    """Results, and the recorded generation that they continue or replace."""

    known: Known
    base: int


class SearchMemory:
    """Searches and their implementations by place. They are valid until the records have a later generation."""

    def __init__(self) -> None:
        self._kept: dict[SearchKey, _Kept] = {}

    def keep(self, place: SearchKey, recorded: Known, known: Known) -> None:
        """Keep what is known of a place, recorded implementations among it or not."""
        self._kept[place] = _Kept(known, recorded.generation)

    def merged(self, place: SearchKey, recorded: Known) -> Known:
        """Returns what is recorded of a place and what is kept of it."""
        kept = self._kept.get(place)
        if kept is None or kept.base != recorded.generation:
            return recorded
        return recorded.merged(kept.known)

    def shown(self, recorded: Iterable[Implementation], principal: str) -> list[Implementation]:
        """Returns the implementations that a principal sees, of those that are recorded and those that are kept."""
        by_place: dict[tuple[str, str, str], list[Implementation]] = defaultdict(list)
        for each in recorded:
            by_place[each.symbol, each.timeframe, each.principal].append(each)
        for place in self._kept:
            if place.principal in {EVERYONE, principal}:
                key = (place.symbol, place.timeframe, place.principal)
                by_place[key] = list(self.merged(place, Known(None, by_place[key])).found)
        return [each for some in by_place.values() for each in some]

    def find(self, principal: str, wanted: str) -> Implementation | None:
        """Returns the kept implementation of an id, if the principal sees it."""
        owners = {EVERYONE, principal}
        kept = (each for some in self._kept.values() for each in some.known.found)
        return next((each for each in kept if each.id == wanted and each.principal in owners), None)
