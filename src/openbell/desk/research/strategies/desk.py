"""The services of strategies, composed from the settings. Each part is made on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

from openbell.backtest.rules import Setup
from openbell.desk.bars.service import BarService
from openbell.desk.bars.watchlist import WatchlistFile
from openbell.desk.events.hub import Hub
from openbell.desk.events.supervision import FailingUnits, Supervisor
from openbell.desk.research.strategies.background_search import BackgroundSearch, SearchServices
from openbell.desk.research.strategies.catalogue import Catalogue
from openbell.desk.research.strategies.figures import FigureService
from openbell.desk.research.strategies.following import StrategyFollower
from openbell.desk.research.strategies.searching import SearchService
from openbell.desk.research.strategies.specs import SpecService, canonical_named
from openbell.desk.research.strategies.strategy_advice import AdviceServices, PerformanceService, StrategyAdvice
from openbell.desk.research.workers import Workers
from openbell.desk.settings import Settings
from openbell.desk.settings.principals import Quota
from openbell.market.bars import Bars
from openbell.market.clock import Clock, iso
from openbell.market.errors import StoreTimeout, StoreUnreachable
from openbell.market.instruments import Instrument
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.stores.records.records import Records
from openbell.strategies.spec import Number, Spec

_CASH = 10_000.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """A strategy to run on any symbol."""

    spec: Spec
    parameters: Mapping[str, Number]
    timeframe: Timeframe
    trained_until: int | None = None
    """The parameters were chosen on bars before this time; None for the defaults of a spec."""
    trained_on: str = ""
    """The symbol of those bars."""
    submitted_by: str = ""
    """The principal that has submitted the spec; empty for one of the library."""
    tries: int = 1
    """The strategies that were tried on the series when it was found; 1 for the defaults of a spec."""
    submitted_at: float | None = None
    """Earlier bars do not test it: its author may have seen them. None for the library, whose author has not."""

    @property
    def unseen_from(self) -> float:
        """The time from which bars test it."""
        return -inf if self.submitted_at is None else self.submitted_at

    @property
    def timeframe_name(self) -> str:
        """1d, 1h, …"""
        return name_of(self.timeframe, SHORT)

    def training_note(self, bars: Bars) -> str:
        """Returns on which bars the parameters were chosen, and how many of `bars` are among them; "" for defaults."""
        if self.trained_until is None:
            return ""
        if bars.instrument.symbol != self.trained_on:
            return chosen_before(self.trained_until, f" of {self.trained_on}")
        before = int(bars.time.searchsorted(self.trained_until))
        among = f" ({before:,} of these {len(bars):,})" if before else ""
        return f"{chosen_before(self.trained_until)}{among}"


def default_of(spec: Spec, submitted_by: str = "", submitted_at: float | None = None) -> Chosen:
    """Returns a spec with its default parameters, for daily bars."""
    return Chosen(spec, spec.defaults(), Timeframe.D1, submitted_by=submitted_by, submitted_at=submitted_at)


def chosen_before(trained_until: int, of: str = "") -> str:
    """Returns the note on bars that do not test the parameters of an implementation."""
    return f"its parameters were chosen on bars{of} before {iso(trained_until)}"


@dataclass(frozen=True, slots=True)
class StrategyParts:
    """What the services of strategies use of their desk. Parts that may not be made yet are functions."""

    settings: Settings
    clock: Clock
    hub: Hub
    supervisor: Supervisor
    watchlist: WatchlistFile
    records: Callable[[], Records]
    writes: Callable[[], bool]
    """Whether the desk may change its records."""
    settle_scenario: Callable[[], Awaitable[None]]
    """In a scenario, applies the bars that have closed, before anything is written."""
    failing: FailingUnits
    bars: Callable[[], BarService]
    answers_early: Callable[[], bool]


class StrategyDesk:
    """Specs, their implementations, and what they advise. Everything is kept in the records of a trading desk."""

    def __init__(self, parts: StrategyParts) -> None:
        self._parts = parts
        self._seeding: asyncio.Task[None] | None = None

    @cached_property
    def setup(self) -> Setup:
        """The costs of paper trading: strategies are judged by what they would have earned here."""
        return Setup(_CASH, *self._parts.settings.paper_costs)

    @cached_property
    def workers(self) -> Workers:
        """The process that computes what calls ask for."""
        return Workers()

    @cached_property
    def background(self) -> Workers:
        """The process that searches in the background."""
        return Workers(background=True)

    @cached_property
    def specs(self) -> SpecService:
        """Canonical and submitted specs."""
        return SpecService(self._parts.records(), Quota.of(self._parts.settings, "quota_specs"))

    @cached_property
    def searching(self) -> SearchService:
        """The search for implementations."""
        records, bars, writes = self._parts.records(), self._parts.bars(), self._parts.writes()
        return SearchService(records, bars, self.specs, self.workers, self.setup, writes=writes)

    @cached_property
    def figures(self) -> FigureService:
        """Figures and signals of implementations."""
        records, writes = self._parts.records(), self._parts.writes()
        return FigureService(records, self._parts.bars(), self.workers, self.setup, writes=writes)

    @cached_property
    def advice(self) -> StrategyAdvice:
        """Rankings, signals and consensus."""
        settle = self._parts.settle_scenario
        services = AdviceServices(self._parts.bars(), self.specs, self.searching, self.figures, settle)
        return StrategyAdvice(services, self._parts.answers_early, simulated=self._parts.settings.simulated)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Specs and implementations of all symbols."""
        watchlist, settle = self._parts.watchlist, self._parts.settle_scenario
        return Catalogue(self.specs, self.searching, self.figures, self.advice, watchlist, settle)

    @cached_property
    def performance(self) -> PerformanceService:
        """What strategies have earned in a period."""
        return PerformanceService(self._parts.bars(), self.workers, self.setup)

    async def choose(self, principal: str, strategy_id: str, instrument: Instrument | None) -> Chosen:
        """Returns what an id names: an implementation, or a spec with its default parameters on daily bars.

        A desk that may not write searches the instrument, if it is given, for an id that it does not know. Raises
        `UnknownStrategy`. The name of a canonical spec is found without the records, so that it can be tested while they
        cannot be read.
        """
        if (canonical := canonical_named(strategy_id)) is not None:
            return default_of(canonical)
        try:
            return await self._recorded(principal, strategy_id, instrument)
        except (StoreUnreachable, StoreTimeout) as error:
            wanted = f"{strategy_id.strip()[:80]} is no canonical strategy and is looked up in the records"
            raise type(error)(f"{wanted}: {error.message}") from None

    async def _recorded(self, principal: str, strategy_id: str, instrument: Instrument | None) -> Chosen:
        found = await self.advice.implementation(principal, strategy_id, instrument)
        if found is None:
            known = await self.advice.spec(principal, strategy_id)
            return default_of(known.spec, known.principal, known.submitted_at)
        known = (await self.advice.specs(principal))[found.spec_id]
        timeframe = SHORT[found.timeframe]
        return Chosen(
            known.spec,
            found.parameters,
            timeframe,
            found.trained_until,
            found.symbol,
            known.principal,
            found.tries,
            known.submitted_at,
        )

    @cached_property
    def follower(self) -> StrategyFollower:
        """The engine's step for strategies."""
        return StrategyFollower(
            self._parts.records(),
            self._parts.bars(),
            self.specs,
            self.figures,
            self.setup.costs,
            self._parts.failing,
        )

    @cached_property
    def seeding(self) -> BackgroundSearch:
        """The search in the background."""
        parts = self._parts
        services = SearchServices(self.specs, self.searching, self.figures, parts.bars(), self.background)
        return BackgroundSearch(parts.records(), services, parts.watchlist, parts.hub, self.setup.costs)

    def start(self) -> None:
        """Search the watched series in the background, if this desk may write to the present's records."""
        if self._seeding is None and self._parts.writes() and self._parts.clock.moving:
            self._seeding = self._parts.supervisor.background("search", self.seeding.run, self.seeding.status)

    @property
    def searches(self) -> bool:
        """Whether the search in the background was started."""
        return self._seeding is not None

    async def close(self) -> None:
        """Stop the search and the process that computes."""
        if self._seeding is not None:
            self._seeding.cancel()
            await asyncio.gather(self._seeding, return_exceptions=True)
        if "searching" in self.__dict__:
            await self.searching.close()
        if "figures" in self.__dict__:
            await self.figures.close()
        for name in ("workers", "background"):
            if name in self.__dict__:
                self.__dict__[name].close()
