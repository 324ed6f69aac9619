"""The services of strategies, composed from the settings. Each part is made on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from openbell.backtest.rules import Setup
from openbell.desk.strategies.catalogue import Catalogue
from openbell.desk.strategies.figures import FigureService
from openbell.desk.strategies.following import StrategyFollower
from openbell.desk.strategies.history import PerformanceService
from openbell.desk.strategies.opinions import OpinionService
from openbell.desk.strategies.searching import SearchService
from openbell.desk.strategies.seeding import Seeding, SeedingServices
from openbell.desk.strategies.specs import SpecService, canonical_named
from openbell.desk.workers import Workers
from openbell.market.bars import Bars
from openbell.market.clock import iso
from openbell.market.errors import StoreTimeout, StoreUnreachable
from openbell.market.instruments import Instrument
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.strategies.spec import Number, Spec

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.desk.trading.desk import TradingDesk

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


def default_of(spec: Spec) -> Chosen:
    """Returns a spec with its default parameters, for daily bars."""
    return Chosen(spec, spec.defaults(), Timeframe.D1)


def chosen_before(trained_until: int, of: str = "") -> str:
    """Returns the note on bars that do not test the parameters of an implementation."""
    return f"its parameters were chosen on bars{of} before {iso(trained_until)}"


class StrategyDesk:
    """Specs, their implementations, and what they advise. Everything is kept in the records of a trading desk."""

    def __init__(self, desk: Desk, trading: TradingDesk) -> None:
        self._desk = desk
        self._trading = trading
        self._seeding: asyncio.Task[None] | None = None

    @cached_property
    def setup(self) -> Setup:
        """The costs of paper trading: strategies are judged by what they would have earned here."""
        return Setup(_CASH, *self._desk.settings.paper_costs)

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
        return SpecService(self._trading.records)

    @cached_property
    def searching(self) -> SearchService:
        """The search for implementations."""
        records, bars, writes = self._trading.records, self._desk.bars, self._trading.writes
        return SearchService(records, bars, self.specs, self.workers, self.setup, writes=writes)

    @cached_property
    def figures(self) -> FigureService:
        """Figures and signals of implementations."""
        records, writes = self._trading.records, self._trading.writes
        return FigureService(records, self._desk.bars, self.workers, self.setup, writes=writes)

    @cached_property
    def opinions(self) -> OpinionService:
        """Rankings, signals and consensus."""
        settle = self._trading.settle_scenario
        return OpinionService(self._desk.bars, self.specs, self.searching, self.figures, settle)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Specs and implementations of all symbols."""
        watchlist, settle = self._desk.watchlist, self._trading.settle_scenario
        return Catalogue(self.specs, self.searching, self.figures, self.opinions, watchlist, settle)

    @cached_property
    def performance(self) -> PerformanceService:
        """What strategies have earned in a period."""
        return PerformanceService(self._desk.bars, self.workers, self.setup)

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
        found = await self.opinions.implementation(principal, strategy_id, instrument)
        if found is None:
            known = await self.opinions.spec(principal, strategy_id)
            return default_of(known.spec)
        specs = await self.opinions.specs(principal)
        spec, timeframe = specs[found.spec_id].spec, SHORT[found.timeframe]
        return Chosen(spec, found.parameters, timeframe, found.trained_until, found.symbol)

    @cached_property
    def follower(self) -> StrategyFollower:
        """The engine's step for strategies."""
        return StrategyFollower(self._trading.records, self._desk.bars, self.specs, self.figures, self.setup.costs)

    @cached_property
    def seeding(self) -> Seeding:
        """The search in the background."""
        desk = self._desk
        services = SeedingServices(self.specs, self.searching, self.figures, desk.bars, self.background)
        return Seeding(self._trading.records, services, desk.watchlist, desk.hub, self.setup.costs)

    def start(self) -> None:
        """Search the watched series in the background, if this desk may write to the present's records."""
        if self._seeding is None and self._trading.writes and self._desk.clock.moving:
            self._seeding = asyncio.create_task(self.seeding.run(), name="search")

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
        for name in ("workers", "background"):
            if name in self.__dict__:
                self.__dict__[name].close()
