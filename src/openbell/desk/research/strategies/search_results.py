"""What is known of the strategies of a series for one principal, and the implementations that a search adds to it.

A search of a series whose bars have changed begins a new generation: the implementations before it are retired, and retired
rows never change again. The generation is part of an implementation's id, so that the same bars, spec and parameters have
another id if they are judged again. It is computed from what is known, in the transaction that records the search. A desk
that may not write, because it is read-only or looks at the past, keeps its results in memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from openbell.backtest.search import SearchedSpec, judged
from openbell.desk.research.strategies.series_bars import SeriesBars
from openbell.desk.research.strategies.specs import KnownSpec
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.stores.records import strategies as queries
from openbell.stores.records.snapshot import View
from openbell.stores.records.strategies import EVERYONE, Costs
from openbell.strategies.compiled import compiled, content_of
from openbell.strategies.implementations import Implementation, ImplementationStatus, implementation_id
from openbell.strategies.spec import Spec


@dataclass(frozen=True, slots=True)
class SearchKey:
    """A series, as the records name it, for one principal with some costs."""

    symbol: str
    timeframe: str
    principal: str
    costs: Costs

    @classmethod
    def of(cls, series: Series, principal: str, costs: Costs) -> SearchKey:
        """Returns the place of a series."""
        return cls(series.instrument.symbol, name_of(series.timeframe, SHORT), principal, tuple(costs))

    @property
    def shared(self) -> SearchKey:
        """The place of the canonical specs on the same series."""
        return SearchKey(self.symbol, self.timeframe, EVERYONE, self.costs)

    @property
    def key(self) -> str:
        """The key of its searches in the records."""
        return queries.search_id(self.symbol, self.timeframe, self.principal, self.costs)


@dataclass(frozen=True, slots=True)
class Known:
    """The last search of a place and all its implementations, retired ones too."""

    search: Mapping[str, Any] | None = None
    found: Sequence[Implementation] = field(default_factory=tuple)

    @property
    def generation(self) -> int:
        """The number of the current generation; 0 if nothing was found yet."""
        return max((each.generation for each in self.found), default=0)

    @property
    def current(self) -> list[Implementation]:
        """The implementations of the current generation, retired ones too: they were tried."""
        return [each for each in self.found if each.generation == self.generation]

    def untried(self, specs: Iterable[KnownSpec]) -> list[KnownSpec]:
        """Returns the specs that have no implementation of the current generation, or have changed since."""
        order = sorted(self.current, key=lambda each: (each.attempt, each.status is not ImplementationStatus.RETIRED))
        newest = {each.spec_id: each.fingerprint for each in order}
        return [each for each in specs if newest.get(each.id) != each.fingerprint]

    def unfollowed(self, specs: Iterable[KnownSpec]) -> list[KnownSpec]:
        """Returns the specs that have no active implementation: what is followed is judged by its forward performance."""
        followed = {(each.spec_id, each.fingerprint) for each in self.found if each.status.active}
        return [each for each in specs if (each.id, each.fingerprint) not in followed]

    def merged(self, other: Known) -> Known:
        """Returns this with what `other` has found or retired since, and the search of `other`."""
        found = {each.id: each for each in self.found}
        for each in other.found:
            if each.id not in found or each.status is ImplementationStatus.RETIRED:
                found[each.id] = each
        return Known(other.search, list(found.values()))


def tried_content(spec: Spec) -> str:
    """Returns what a search tries, apart from names: specs that differ in their spelling only are one try."""
    ranges = sorted((each.low, each.high) for each in spec.parameters)
    return f"{content_of(compiled(spec))} {ranges}"


def known_at(view: View, place: SearchKey) -> Known:
    """Returns what the records have of a place."""
    every = queries.series_of(view, place.symbol, place.timeframe, place.costs)
    mine = [each for each in every if each.principal == place.principal]
    return Known(queries.search(view, place.symbol, place.timeframe, place.principal, place.costs), mine)


@dataclass(frozen=True, slots=True)
class Searched:
    """The results of a search."""

    place: SearchKey
    stretch: SeriesBars
    covered: SeriesBars
    """All bars of its generation: also those of its searches before."""
    specs: Sequence[KnownSpec]
    """Those that were searched."""
    results: Sequence[SearchedSpec | None]
    fingerprint: str
    """Of all specs that the place is about."""
    outdated: str
    """Why the search before is no longer valid; empty if it is."""
    replaces: str = ""
    """Why candidates were searched again although they are valid; empty if they were not."""

    def row(self, at: float, tries: int) -> dict[str, Any]:
        """Returns the row of this search."""
        return {
            "id": self.place.key,
            "symbol": self.place.symbol,
            "timeframe": self.place.timeframe,
            "fingerprint": self.fingerprint,
            "tries": tries,
            "bars": len(self.covered.bars),
            "first": int(self.covered.bars.time[0]),
            "until": self.covered.until,
            "digest": self.covered.digest,
            "costs": list(self.place.costs),
            "at": at,
        }

    def judged(self, known: Known, shared: Known, at: float) -> tuple[list[Implementation], int]:
        """Returns the new implementations, each with the status that the rules give it, and the number of tries.

        The tries are the distinct specs, whatever their names and spellings, that have a result in the current generation:
        canonical ones (`shared`) and the principal's own (`known`). Two constants of one idea are two tries. What a later
        look finds has as many tries again for each look before, also of the same content under another name.
        """
        before = Known() if self.outdated else known
        both = {each.tried for some in (before, shared) for each in some.current}
        new = [(spec, found) for spec, found in zip(self.specs, self.results, strict=True) if found is not None]
        tries = len(both | {tried_content(spec.spec) for spec, _ in new})
        generation = known.generation + (not known.found or bool(self.outdated))
        # Each look at the bars is another chance to be lucky, under whatever name and whichever bars were corrected since.
        looks = Counter(each.tried for each in {each.id: each for each in (*known.found, *shared.found)}.values())
        made = [
            self._implementation(spec, found, before, tries * (1 + looks[tried_content(spec.spec)]), generation, at)
            for spec, found in new
        ]
        return made, tries

    def _implementation(
        self, spec: KnownSpec, found: SearchedSpec, before: Known, tries: int, generation: int, at: float
    ) -> Implementation:
        parameters, costs = dict(found.parameters), list(self.place.costs)
        # A spec is tried again when later bars have closed, or when it was changed and changed back.
        attempt = sum(each.spec_id == spec.id for each in before.current)
        step, edge = judged(found, tries)
        figures: dict[str, Any] = {
            "sharpe": found.sharpe,
            "in_sample_sharpe": found.in_sample_sharpe,
            "edge_vs_holding": edge.vs_holding,
            "edge_vs_random_timing": edge.vs_random_timing,
            "evidence": edge.trades,
            "trades": found.trades,
            "drawdown": found.drawdown,
            "content": content_of(compiled(spec.spec, parameters)),
            "tried": tried_content(spec.spec),
            "idea": content_of(compiled(spec.spec), constants=False),
            "bars": self.stretch.digest,
            "until": self.stretch.until,
            "costs": costs,
            "generation": generation,
            "attempt": attempt,
        }
        series = (self.place.symbol, self.place.timeframe)
        basis = [self.stretch.digest, costs, generation, attempt]
        return Implementation(
            implementation_id(spec.principal, spec.id, spec.fingerprint, series, parameters, basis),
            spec.principal,
            spec.id,
            spec.fingerprint,
            *series,
            parameters,
            step.status,
            step.reason,
            int(self.stretch.bars.time[0]),
            found.trained_until,
            at,
            at,
            tries,
            figures,
        )

    def retired(self, known: Known, made: Iterable[Implementation], at: float) -> list[Implementation]:
        """Returns the implementations that end with this search, each with the reason: all of them, or those whose spec
        has changed.
        """
        by_spec = {each.spec_id: each.id for each in made}
        ended = []
        for each in known.found:
            why = self.replaces or "the spec has changed"
            changed = f"{why}; {by_spec[each.spec_id]} begins again" if each.spec_id in by_spec else ""
            if each.status is not ImplementationStatus.RETIRED and (reason := self.outdated or changed):
                ended.append(replace(each, status=ImplementationStatus.RETIRED, reason=reason, changed_at=at))
        return ended


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
