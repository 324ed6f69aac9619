"""The trading desk, composed from the settings. Each part is made on first use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from openbell.brokers.registry import all_brokers
from openbell.desk.alerts.inbox import Inbox, Send
from openbell.desk.events.supervision import FailingUnits
from openbell.desk.orders.accounts import AccountService, OperatorAccount
from openbell.desk.orders.books import Books
from openbell.desk.orders.broker_venue import BrokerVenue, Reconciling, make_broker
from openbell.desk.orders.catch_up import CatchUp, CatchUpParts
from openbell.desk.orders.decisions import DecisionService
from openbell.desk.orders.gate import Gate, costs_of, limits_of
from openbell.desk.orders.halt_file import HALT_FILE, HaltFile
from openbell.desk.orders.halts import Halts
from openbell.desk.orders.matching import PaperMatching
from openbell.desk.orders.order_wait_reasons import Reasons
from openbell.desk.orders.paper_venue import PaperVenue
from openbell.desk.orders.portfolio import PortfolioService
from openbell.desk.orders.prices import Prices, TradedMinutes
from openbell.desk.orders.service import OrderService
from openbell.desk.orders.venue import Venue
from openbell.desk.settings import DEFAULT_SCENARIO
from openbell.desk.settings.open_records import make_records
from openbell.desk.settings.principals import Quota
from openbell.market.errors import LeaseLost, Refused, SettingsError, StoreError
from openbell.stores.port import Lease
from openbell.stores.records import switches
from openbell.stores.records.records import RecordAccess, Records
from openbell.stores.records.snapshot import View
from openbell.stores.records.strategies import has_followed, latest_consensus
from openbell.trading.advance import Rules
from openbell.trading.broker import Broker, BrokerError
from openbell.trading.halt import Halt

if TYPE_CHECKING:
    from openbell.desk.alerts.alert_engine import AlertEngine
    from openbell.desk.alerts.service import AlertService
    from openbell.desk.alerts.stored_subscriptions import StoredSubscriptions
    from openbell.desk.bars.service import BarService
    from openbell.desk.events.hub import Hub
    from openbell.desk.events.supervision import Supervisor
    from openbell.desk.orders.account_overlays import AccountOverlays
    from openbell.desk.orders.engine import Engine
    from openbell.desk.orders.halts import Halted
    from openbell.desk.pictures.indicators import IndicatorService
    from openbell.desk.quotes.signals import SignalService
    from openbell.desk.settings import Settings
    from openbell.market.clock import Clock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TradingParts:
    """What a trading desk uses of its desk. Parts that may not be made yet are functions."""

    settings: Settings
    clock: Clock
    hub: Hub
    supervisor: Supervisor
    truth_of_pushes: Mapping[str, Any]
    """`_meta` of notifications: which data they are based on."""
    bars: Callable[[], BarService]
    indicators: Callable[[], IndicatorService]
    signals: Callable[[], SignalService]
    follow: Callable[[Lease | None, int], Awaitable[int]]
    """The step of the engine that follows strategies."""


class TradingDesk:
    """Everything about orders, alerts and decisions."""

    def __init__(self, parts: TradingParts, scenario: str | None) -> None:
        """`scenario` is the one that this desk trades in; None: it uses the present's records."""
        self._parts = parts
        self._settings = parts.settings
        self._scenario = scenario
        self._running: asyncio.Task[None] | None = None
        self._pushing: dict[object, asyncio.Task[None]] = {}
        self.failing = FailingUnits()
        """The accounts, orders, alerts and symbols that the engine cannot bring up to date now."""

    # Records

    @cached_property
    def records(self) -> Records:
        """The records of the present, or of the scenario that this desk trades in."""
        records = make_records(self._settings, self._parts.clock, self._scenario)
        records.on_commit = self._parts.hub.poke
        return records

    @property
    def has_records(self) -> bool:
        """Whether the records were used: they are opened on first use."""
        return "records" in vars(self)

    @property
    def writes(self) -> bool:
        """Whether this desk may change its records."""
        return not self._settings.read_only and self.records.access is not RecordAccess.PAST

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
        return PaperVenue(self.matching, self.halts, self._parts.bars().closed_until, cash=self._settings.paper_cash)

    def _broker_venue(self, broker: Broker) -> BrokerVenue:
        name = self._settings.account or self._settings.broker
        kind = all_brokers()[self._settings.broker]
        every, most = kind.look_up_every, kind.look_up_most
        reconciling = Reconciling(self.records, name, broker, every=every, most=most, failing=self.failing)

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
        return PaperMatching(
            self.records, self._parts.bars(), self.books, self.prices, rules, halted, failing=self.failing
        )

    # Services

    @cached_property
    def prices(self) -> Prices:
        """Current prices."""
        minutes = TradedMinutes(self._parts.bars(), present=self._scenario is None)
        return Prices(self._parts.bars(), self._settings.stale_after, minutes)

    @cached_property
    def gate(self) -> Gate:
        """The risk gate."""
        limits, cuts = limits_of(self._settings), not self.venue.remote
        return Gate(
            self.records, self.prices, self.books, limits, self._parts.clock, self._halted, fills_cut_to_position=cuts
        )

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
    def overlays(self) -> AccountOverlays:
        """Accounts on charts."""
        from openbell.desk.orders.account_overlays import AccountOverlays

        settings = self._settings
        return AccountOverlays(
            self.records,
            self.accounts,
            self.books,
            self.settle,
            kind=settings.account_kind,
            read_only=settings.read_only,
        )

    @cached_property
    def reasons(self) -> Reasons:
        """What working orders wait for."""
        fills = not self._settings.read_only
        return Reasons(self.records, self._parts.bars(), self.books, self._halted_then, self.venue.costs, fills=fills)

    @cached_property
    def decisions(self) -> DecisionService:
        """The journal of decisions."""
        if self.records.access is not RecordAccess.PAST:
            return DecisionService(self.records, self.settle_scenario, self._settings)
        # Decisions made at another time than the present are kept in a scenario, and listed beside those of that time.
        other = self._default_scenario
        return DecisionService(other.records, other.settle_scenario, self._settings, (self.records,))

    @cached_property
    def _default_scenario(self) -> TradingDesk:
        """The scenario that keeps the decisions of a desk which reads the past."""
        return TradingDesk(self._parts, DEFAULT_SCENARIO)

    @cached_property
    def inbox(self) -> Inbox:
        """Notifications."""
        return Inbox(self.records, self.settle_scenario, self._parts.hub, self._parts.truth_of_pushes)

    @cached_property
    def alerts(self) -> AlertService:
        """Setting alerts."""
        from openbell.desk.alerts.service import AlertService

        return AlertService(
            self.records,
            self._parts.bars(),
            self.prices,
            self.settle_scenario,
            Quota.of(self._settings, "quota_alerts"),
        )

    @cached_property
    def alert_engine(self) -> AlertEngine:
        """Fires alerts."""
        from openbell.desk.alerts.alert_engine import AlertEngine

        return AlertEngine(
            self.records, self._parts.bars(), self.prices.minutes, self._parts.indicators(), self.inbox, self.failing
        )

    @cached_property
    def subscriptions(self) -> StoredSubscriptions:
        """Stored subscriptions to crossings."""
        from openbell.desk.alerts.stored_subscriptions import StoredSubscriptions

        return StoredSubscriptions(
            self.records,
            self._parts.bars(),
            self._parts.signals(),
            self._parts.hub,
            Quota.of(self._settings, "quota_subscriptions"),
            self.failing,
        )

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
        if self.records.access is RecordAccess.PAST:
            return switches.halted

        def halted(view: View) -> Halt | None:
            halt = self.halt_file.read()
            recorded = switches.halted(view) if halt is None or not halt.known else None
            return recorded or halt

        return halted

    @property
    def _halted_then(self) -> Halted:
        """Whether trading was halted at the time of these records.

        The file in the home is about the present. It keeps new orders out of a scenario and does nothing to those that rest
        there: their fills must not depend on when they are computed.
        """
        return self._halted if self.records.access is RecordAccess.PRESENT else switches.halted

    # Bringing accounts up to date

    @cached_property
    def settling(self) -> CatchUp:
        """Applies closed bars to accounts before they are read or changed."""
        parts = CatchUpParts(
            self.records,
            self.writes,
            self._parts.bars(),
            self._scenario,
            settle=self._settle_at_venue,
            unread=self._unread,
            step_scenario=self._step_scenario,
        )
        return CatchUp(parts)

    async def _settle_at_venue(self, account: str) -> None:
        await self.venue.settle(account)

    def _unread(self, account: str) -> str | None:
        return self.matching.unread(account)

    async def _step_scenario(self, until: int) -> bool:
        """Apply the bars that closed before a time to a scenario; returns False if some of them could not be read."""
        await self.matching.step(None, until)
        await self.alert_engine.step(None, until)
        await self._follow(None, until)
        return not self.matching.troubled

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
        from openbell.desk.orders.engine import Engine, checkpoint_step

        steps = {
            **{f"orders at {venue.name}": venue.step for venue in self.venues},
            "alerts": self.alert_engine.step,
            "subscriptions": self.subscriptions.step,
            "strategies": self._follow,
            "checkpoints": checkpoint_step(self.records),
        }
        # A broker sends no events: it is polled once a second.
        every = 1.0 if self.venue.remote else None
        parts = self._parts
        return Engine(self.records, parts.clock, parts.bars().closed_until, steps, parts.hub, every, self.failing)

    async def _follow(self, lease: Lease | None, until: int) -> int:
        """Follow strategies, if there are any to follow: nothing of them is loaded otherwise. They are not counted."""
        if await self.records.read(has_followed):
            await self._parts.follow(lease, until)
        return 0

    def start(self) -> None:
        """Run the engine in the background, while no other process holds its lease."""
        if self._running is None and self.writes:
            self._running = self._parts.supervisor.background("engine", self.engine.run, self.engine.status)

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
            self._pushing[connection] = self._parts.supervisor.background(
                "pushes", partial(self.inbox.push, principal, send), context=copy_context()
            )

    async def close(self) -> None:
        """Stop the engine and the pushes, finish orders on their way, then close all connections."""
        tasks = [*self._pushing.values(), *([self._running] if self._running else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for name in ("orders", "venue", "records", "_default_scenario"):
            if name in self.__dict__:
                await self.__dict__[name].close()
