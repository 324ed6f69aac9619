"""The catalogue of specs: their ranking, their implementations, and new ones."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from openbell.desk.bars.watchlist import WatchlistFile
from openbell.desk.research.strategies.figures import FigureService, StrategyFigures, is_outdated
from openbell.desk.research.strategies.searching import SearchService
from openbell.desk.research.strategies.specs import KnownSpec, SpecOrigin, SpecService
from openbell.desk.research.strategies.strategy_advice import StrategyAdvice
from openbell.desk.settings.principals import OPERATOR
from openbell.market.instruments import Instrument
from openbell.market.provenance import BarFacts
from openbell.strategies.implementations import Implementation, ImplementationStatus

_PENDING = "figures of {:,} of {:,} implementations are ready, the others are being computed: ask again"
SOURCES = (*(each.value for each in SpecOrigin), "ALL")
STATUSES = (*(each.value for each in ImplementationStatus), "ALL")


@dataclass(frozen=True, slots=True)
class SpecStanding:
    """A spec and how its implementations do."""

    known: KnownSpec
    implementations: int
    """Those that are not retired."""
    average_sharpe: float | None
    """Mean of their Sharpe ratios since their parameters were chosen. None if there is none."""


@dataclass(frozen=True, slots=True)
class ImplementationList:
    """A page of a spec's implementations."""

    items: list[tuple[Implementation, StrategyFigures | None]]
    """Figures are None if the spec has changed since, or there are no bars."""
    total: int
    by_status: dict[str, int]
    """How many there are of each status, on this page or not."""
    outdated: int
    """How many of this page are being judged again, because their bars have changed."""
    facts: BarFacts
    pending: str | None
    """What is still being computed; None if it is complete."""


@dataclass(frozen=True, slots=True)
class SpecList:
    """The specs of a source, the best first."""

    items: list[SpecStanding]
    outdated: int
    """How many implementations are being judged again, because their bars have changed."""
    facts: BarFacts
    pending: str | None
    """What is still being computed; None if it is complete."""


@dataclass(frozen=True, slots=True)
class _Active:
    """The implementations that are not retired."""

    found: list[Implementation]
    figures: dict[str, StrategyFigures]
    pending: str | None


class Catalogue:
    """Specs and implementations of all symbols."""

    def __init__(
        self,
        specs: SpecService,
        searching: SearchService,
        figures: FigureService,
        advice: StrategyAdvice,
        watchlist: WatchlistFile,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        """`settle` brings the records of a scenario up to date before they are read or written."""
        self._specs = specs
        self._searching = searching
        self._figures = figures
        self._advice = advice
        self._watchlist = watchlist
        self._settle = settle

    async def specs(self, principal: str, source: str) -> SpecList:
        """Returns the specs of a source, the highest mean Sharpe ratio first; those without any last."""
        await self._settle()
        known = [each for each in await self._specs.all(principal) if source in {"ALL", each.origin.value}]
        active = await self._active(principal)
        found, figures = active.found, active.figures
        sharpes = {each: value.untrained.sharpe for each, value in figures.items()}
        by_spec: dict[str, list[Implementation]] = defaultdict(list)
        for each in found:
            by_spec[each.spec_id].append(each)
        standings = []
        for spec in known:
            made = by_spec[spec.id]
            values = [value for each in made if (value := sharpes.get(each.id)) is not None]
            standings.append(SpecStanding(spec, len(made), sum(values) / len(values) if values else None))
        ranked = sorted(standings, key=lambda each: (-_last(each.average_sharpe), each.known.id))
        facts = await self._facts([each for each in found if each.id in figures])
        return SpecList(ranked, len(_outdated(found, figures)), facts, active.pending)

    async def _facts(self, wanted: list[Implementation]) -> BarFacts:
        """Returns what bars are made of; nothing if that takes long and the call is answered early."""
        try:
            async with asyncio.timeout(self._shortly):
                return await self._advice.facts(wanted)
        except TimeoutError:
            return BarFacts()

    async def _active(self, principal: str) -> _Active:
        """Returns the implementations that are not retired, and their figures; those of a first symbol if there are none.

        Those whose bars have changed are judged again.
        """
        active = await self._standing(principal)
        if await self._advice.judge_again(principal, _outdated(active.found, active.figures)):
            active = await self._standing(principal)
        return active

    async def _standing(self, principal: str) -> _Active:
        found = await self._shown(principal)
        if not found and (first := await self._first()) is not None:
            await self._advice.on(principal, first)
            found = await self._shown(principal)
            if not found:
                return _Active([], {}, self._advice.pending(principal, first))
        found = [each for each in found if each.status is not ImplementationStatus.RETIRED]
        return _Active(found, *await self._ready(principal, found, self._advice.patience))

    async def _shown(self, principal: str, spec_id: str | None = None) -> list[Implementation]:
        """Returns the implementations that a principal may see.

        Those of the library are shared, but a symbol that is not watched names what another principal has asked for.
        """
        found = await self._searching.implementations(principal, spec_id=spec_id)
        if principal == OPERATOR:
            return found
        watched = {each.symbol for each in (await self._watchlist.current()).instruments}
        symbols = watched | self._advice.asked_for(principal)
        return [each for each in found if each.principal or each.symbol in symbols]

    async def _ready(
        self, principal: str, wanted: list[Implementation], seconds: float | None
    ) -> tuple[dict[str, StrategyFigures], str | None]:
        """Returns the figures that are ready within some seconds, and a note if these are not all."""
        figures, complete = await self._figures.ready(wanted, await self._advice.specs(principal), seconds)
        return figures, None if complete else _PENDING.format(len(figures), len(wanted))

    @property
    def _shortly(self) -> float | None:
        """The seconds of a further step of a call that is answered early."""
        return self._advice.patience and self._advice.patience / 4

    async def _first(self) -> Instrument | None:
        return next(iter((await self._watchlist.current()).instruments), None)

    async def implementations(
        self, principal: str, spec_id: str, status: str, limit: int, offset: int
    ) -> ImplementationList:
        """Returns a page of a spec's implementations, the highest Sharpe ratio first. Raises `UnknownSpec`."""
        await self._settle()
        known = await self._specs.find(principal, spec_id)
        active = await self._active(principal)
        found = await self._shown(principal, known.id)
        chosen = [each for each in found if status in {"ALL", each.status.value}]
        figures, pending = active.figures, active.pending
        if not pending:  # otherwise those of this spec are among what is being computed
            figures, pending = await self._ready(principal, chosen, self._shortly)
        chosen.sort(
            key=lambda each: (-_last(figures[each.id].untrained.sharpe if each.id in figures else None), each.id)
        )
        page = chosen[offset : offset + limit]
        counts = Counter(each.status.value for each in found)
        items = [(each, figures.get(each.id)) for each in page]
        outdated = len(_outdated(page, figures))
        return ImplementationList(items, len(chosen), dict(counts), outdated, await self._facts(page), pending)

    async def submit(self, principal: str, raw: Mapping[str, Any], reasoning: str) -> KnownSpec:
        """Record a spec. Raises as `SpecService.submit` does."""
        await self._settle()
        return await self._specs.submit(principal, raw, reasoning)


def _outdated(found: Iterable[Implementation], figures: Mapping[str, StrategyFigures]) -> list[Implementation]:
    return [each for each in found if each.id in figures and is_outdated(each, figures[each.id])]


def _last(value: float | None) -> float:
    """Returns a number that sorts after all others if it is None."""
    return -1e300 if value is None else value
