"""The trading desk, composed from the settings. Each part is made on first use."""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING

from openbell.desk.settings import DEFAULT_SCENARIO
from openbell.desk.trading.accounts import AccountService, OperatorAccount
from openbell.desk.trading.books import Books
from openbell.desk.trading.broker_venue import BrokerVenue, make_broker
from openbell.desk.trading.decisions import DecisionService
from openbell.desk.trading.gate import Gate
from openbell.desk.trading.halt_file import HALT_FILE, HaltFile
from openbell.desk.trading.halts import Halts
from openbell.desk.trading.inbox import Inbox, Send
from openbell.desk.trading.limits import costs_of, limits_of
from openbell.desk.trading.matching import PaperMatching
from openbell.desk.trading.orders import OrderService
from openbell.desk.trading.paper_venue import PaperVenue
from openbell.desk.trading.portfolio import PortfolioService
from openbell.desk.trading.prices import Prices
from openbell.desk.trading.reasons import Reasons
from openbell.desk.trading.reconcile import Reconciling
from openbell.desk.trading.record_locations import make_records
from openbell.desk.trading.settling import Settling
from openbell.desk.trading.traded_minutes import TradedMinutes
from openbell.desk.trading.venue import Venue
from openbell.market.errors import (
    LeaseLost,
    Refused,
    SettingsError,
    StoreError,
)
from openbell.stores.port import Lease
from openbell.stores.records import switches
from openbell.stores.records.records import Access, Records
from openbell.stores.records.strategies import has_followed, latest_consensus
from openbell.trading.advance import Rules
from openbell.trading.broker import Broker, BrokerError

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.desk.trading.alert_engine import AlertEngine
    from openbell.desk.trading.alerts import AlertService
    from openbell.desk.trading.crossings import Crossings
    from openbell.desk.trading.engine import Engine
    from openbell.desk.trading.halts import Halted

log = logging.getLogger(__name__)


class TradingDesk:
    """Everything about orders, alerts and decisions."""

    def __init__(self, desk: Desk, scenario: str | None) -> None:
        """`scenario` is the one that this desk trades in; None: it uses the present's records."""
        self._desk = desk
        self._settings = desk.settings
        self._scenario = scenario
        self._running: asyncio.Task[None] | None = None
        self._pushing: dict[object, asyncio.Task[None]] = {}

    # Records

    @cached_property
    def records(self) -> Records:
        """The records of the present, or of the scenario that this desk trades in."""
        records = make_records(self._settings, self._desk.clock, self._scenario)
        records.on_commit = self._desk.hub.poke
        return records

    @property
    def writes(self) -> bool:
        """Whether this desk may change its records."""
        return not self._settings.read_only and self.records.access is not Access.PAST

    @cached_property
    def books(self) -> Books:
        """The books of accounts."""
        return Books(self.records.on_replaced)

    @cached_property
    def accounts(self) -> AccountService:
        """The accounts of principals."""
        settings = self._settings
        if self._scenario is not None:
            return AccountService(self.records, self.venue, OperatorAccount(self._scenario))
        name = settings.account or settings.broker
        operator = OperatorAccount(
            name=name,
            token=settings.account_token,
            implicit=settings.account in {"", settings.broker},
        )
        return AccountService(self.records, self.venue, operator)

    # Venues

    @cached_property
    def broker(self) -> Broker | None:
        """The broker that orders are sent to; None on paper."""
        return make_broker(self._settings)

    @cached_property
    def venue(self) -> Venue:
        """Where the orders of this desk are carried out."""
        return self._paper if self.broker is None else self._broker_venue(self.broker)

    @property
    def venues(self) -> tuple[Venue, ...]:
        """Every venue whose accounts this desk looks after: paper accounts are filled whatever OPENBELL_BROKER is."""
        return (self._paper, self.venue) if self.venue.remote else (self._paper,)

    @cached_property
    def _paper(self) -> PaperVenue:
        return PaperVenue(self.matching, self.halts, self._desk.bars.closed_until, cash=self._settings.paper_cash)

    def _broker_venue(self, broker: Broker) -> BrokerVenue:
        name = self._settings.account or self._settings.broker
        # Alpaca allows 200 requests a minute, and looking up one order may take two.
        reconciling = Reconciling(self.records, name, broker, every=3.0, most=2)

        async def lost_too_much() -> str | None:
            try:
                return await self.portfolio.lost_too_much(name)
            except (Refused, BrokerError) as error:
                log.debug("%s", error)
                return None

        # Without --trade the engine sends nothing to a broker.
        sends = self._settings.trade
        return BrokerVenue(self.records, broker, reconciling, self.halts, lost_too_much, sends=sends)

    @cached_property
    def matching(self) -> PaperMatching:
        """Fills of paper orders."""
        return self._matching(self._halted_then)

    def _matching(self, halted: Halted) -> PaperMatching:
        rules = Rules(costs_of(self._settings), limits_of(self._settings))
        return PaperMatching(self.records, self._desk.bars, self.books, self.prices, rules, halted)

    # Services

    @cached_property
    def prices(self) -> Prices:
        """Current prices."""
        minutes = TradedMinutes(self._desk.bars, present=self._scenario is None)
        return Prices(self._desk.bars, self._settings.stale_after, minutes)

    @cached_property
    def gate(self) -> Gate:
        """The risk gate."""
        limits, cut = limits_of(self._settings), not self.venue.remote
        return Gate(self.records, self.prices, self.books, limits, self._desk.clock, self._halted, cut=cut)

    @cached_property
    def orders(self) -> OrderService:
        """Placing and cancelling."""
        consensus = partial(latest_consensus, costs=self._settings.paper_costs)
        return OrderService(self.records, self.accounts, self.gate, self.venue, self.settle, consensus=consensus)

    @cached_property
    def portfolio(self) -> PortfolioService:
        """Positions, balance, validation."""
        return PortfolioService(self.records, self.accounts, self.gate, self.settle)

    @cached_property
    def reasons(self) -> Reasons:
        """What working orders wait for."""
        fills = not self._settings.read_only
        return Reasons(self.records, self._desk.bars, self.books, self._halted_then, self.venue.costs, fills=fills)

    @cached_property
    def decisions(self) -> DecisionService:
        """The journal of decisions."""
        if self.records.access is not Access.PAST:
            return DecisionService(self.records, self.settle_scenario)
        # Decisions made at another time than the present are kept in a scenario, and listed beside those of that time.
        return DecisionService(self._default_scenario.records, self._default_scenario.settle_scenario, (self.records,))

    @cached_property
    def _default_scenario(self) -> TradingDesk:
        """The scenario that keeps the decisions of a desk which reads the past."""
        return TradingDesk(self._desk, DEFAULT_SCENARIO)

    @cached_property
    def inbox(self) -> Inbox:
        """Notifications."""
        return Inbox(self.records, self.settle_scenario, self._desk.hub, self._desk.truth_of_pushes)

    @cached_property
    def alerts(self) -> AlertService:
        """Setting alerts."""
        from openbell.desk.trading.alerts import AlertService

        return AlertService(self.records, self._desk.bars, self.prices, self.settle_scenario)

    @cached_property
    def alert_engine(self) -> AlertEngine:
        """Fires alerts."""
        from openbell.desk.trading.alert_engine import AlertEngine

        return AlertEngine(self.records, self._desk.bars, self.prices.minutes, self._desk.indicators, self.inbox)

    @cached_property
    def crossings(self) -> Crossings:
        """Stored subscriptions to crossings."""
        from openbell.desk.trading.crossings import Crossings

        return Crossings(self.records, self._desk.bars, self._desk.signals, self._desk.hub)

    # The kill switch

    @cached_property
    def halts(self) -> Halts:
        """The kill switch in the records."""
        return Halts(self.records, self._halted_then)

    @cached_property
    def halt_file(self) -> HaltFile:
        """The kill switch in the home."""
        return HaltFile(self._settings.home / HALT_FILE)

    @property
    def _halted(self) -> Halted:
        """Whether new orders may open a position. The file in the home halts every desk that writes."""
        if self.records.access is Access.PAST:
            return switches.halted
        return lambda view: self.halt_file.read() or switches.halted(view)

    @property
    def _halted_then(self) -> Halted:
        """Whether trading was halted at the time of these records.

        The file in the home is about the present. It keeps new orders out of a scenario and does nothing to those that rest
        there: their fills must not depend on when they are computed.
        """
        return self._halted if self.records.access is Access.PRESENT else switches.halted

    # Bringing accounts up to date

    @cached_property
    def settling(self) -> Settling:
        """Applies closed bars to accounts before they are read or changed."""
        return Settling(self, self._desk.bars, self._scenario, self._follow)

    async def settle(self, account: str) -> None:
        """Apply the bars that have closed to an account, before it is read or changed."""
        await self.settling.account(account)

    async def settle_scenario(self) -> None:
        """In a scenario, apply the bars that have closed, before anything is written."""
        await self.settling.scenario()

    def behind(self, principal: str) -> str | None:
        """Returns why fills that are due may be missing from a principal's account; None if it is up to date."""
        return self.settling.behind(self.accounts.name_of(principal))

    async def settle_all(self, until: float) -> None:
        """Apply the bars that had closed by a time to every paper account, as if trading were not halted."""
        await self.settling.every_account(until, self._matching(lambda _view: None))

    # The engine

    @cached_property
    def engine(self) -> Engine:
        """Fills orders, enforces halts and limits, and fires alerts."""
        from openbell.desk.trading.engine import Engine, checkpoint_step

        venues = (venue.step for venue in self.venues)
        steps = (*venues, self.alert_engine.step, self.crossings.step, self._follow, checkpoint_step(self.records))
        # A broker sends no events: it is polled once a second.
        every = 1.0 if self.venue.remote else None
        return Engine(self.records, self._desk.clock, self._desk.bars.closed_until, steps, self._desk.hub, every)

    async def _follow(self, lease: Lease | None, until: int) -> int:
        """Follow strategies, if there are any to follow: nothing of them is loaded otherwise. They are not counted."""
        if await self.records.read(has_followed):
            await self._desk.strategies.follower.step(lease, until)
        return 0

    def start(self) -> None:
        """Run the engine in the background, while no other process holds its lease."""
        if self._running is None and self.writes:
            self._running = asyncio.create_task(self.engine.run(), name="engine")

    async def catch_up(self) -> None:
        """Run one step of the engine, if no other process holds its lease; failures are logged."""
        _ = self.venue
        if not self.writes:
            return
        try:
            await self.engine.once()
        except SettingsError:
            raise
        except (StoreError, LeaseLost, Refused) as error:
            log.warning("%s", error)

    def push_to(self, connection: object, principal: str, send: Send) -> None:
        """Send the notifications that a principal has subscribed to, from now on, to one connection."""
        if connection not in self._pushing and self.writes:
            self._pushing[connection] = asyncio.create_task(self.inbox.push(principal, send), name="push")

    async def close(self) -> None:
        """Stop the engine and the pushes, finish orders on their way, then close all connections."""
        tasks = [*self._pushing.values(), *([self._running] if self._running else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for name in ("orders", "venue", "records", "_default_scenario"):
            if name in self.__dict__:
                await self.__dict__[name].close()
