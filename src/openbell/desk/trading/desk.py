"""The trading desk, put together from the settings. Parts are made on first use."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

from openbell.brokers.declaration import BrokerParts
from openbell.brokers.registry import all_brokers
from openbell.desk.principals import OPERATOR
from openbell.desk.settings import DEFAULT_SCENARIO
from openbell.desk.trading.accounts import AccountService
from openbell.desk.trading.books import Books
from openbell.desk.trading.decisions import DecisionService
from openbell.desk.trading.gate import Gate
from openbell.desk.trading.halts import HaltFile, Halts
from openbell.desk.trading.inbox import Inbox, Send
from openbell.desk.trading.keeping import make_records
from openbell.desk.trading.matching import PaperMatching
from openbell.desk.trading.orders import OrderService
from openbell.desk.trading.portfolio import PortfolioService
from openbell.desk.trading.prices import Prices
from openbell.desk.trading.reasons import Reasons
from openbell.market.errors import (
    DataError,
    LeaseLost,
    OpenbellError,
    Refused,
    SettingsError,
    StoreError,
    UnknownSymbol,
)
from openbell.market.instruments import parse
from openbell.stores.port import Lease
from openbell.stores.records import checkpoints, marks
from openbell.stores.records.records import Access, Records
from openbell.trading.accounts import AccountNotFound
from openbell.trading.advance import Rules
from openbell.trading.broker import Broker, BrokerError
from openbell.trading.costs import Costs
from openbell.trading.risk import Limits

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.desk.settings import Settings
    from openbell.desk.trading.alert_engine import AlertEngine
    from openbell.desk.trading.alerts import AlertService
    from openbell.desk.trading.engine import Engine
    from openbell.desk.trading.halts import Halted

log = logging.getLogger(__name__)


class TradingDesk:
    """Everything about orders, alerts and decisions."""

    def __init__(self, desk: Desk, scenario: str | None) -> None:
        """`scenario` is the one that it acts in; None: it is about the present's records."""
        self._desk = desk
        self._settings = desk.settings
        self._scenario = scenario
        self._running: asyncio.Task[None] | None = None
        self._pushing: dict[object, asyncio.Task[None]] = {}

    @cached_property
    def records(self) -> Records:
        """Where it is all kept: of the present, or of the scenario that this desk acts in."""
        return make_records(self._settings, self._desk.clock, self._scenario)

    @property
    def writes(self) -> bool:
        """Whether this desk may change its records."""
        return not self._settings.read_only and self.records.access is not Access.PAST

    @cached_property
    def broker(self) -> Broker:
        """Who carries orders out."""
        return make_broker(self._settings)

    @cached_property
    def accounts(self) -> AccountService:
        """The account that the settings name; a scenario has one, of its own name."""
        settings = self._settings
        if self._scenario is not None:
            return AccountService(self.records, self._scenario, settings.broker, self._opening_cash, "", default=True)
        return AccountService(
            self.records,
            settings.account or settings.broker,
            settings.broker,
            self._opening_cash,
            settings.account_token,
            default=settings.account in {"", settings.broker},
        )

    async def _opening_cash(self) -> Decimal:
        """What a new account begins with: on paper the setting, at a broker what it says."""
        return self._settings.paper_cash if self.broker.fills_locally else await self.broker.cash()

    @cached_property
    def books(self) -> Books:
        """Books of accounts."""
        return Books()

    @cached_property
    def prices(self) -> Prices:
        """What things cost."""
        return Prices(self._desk.bars, self._settings.stale_after)

    @cached_property
    def gate(self) -> Gate:
        """The risk gate."""
        limits = limits_of(self._settings)
        return Gate(self.prices, self.books, limits, self._desk.clock, self._halted, cut=self.broker.fills_locally)

    @cached_property
    def matching(self) -> PaperMatching:
        """Fills of paper orders."""
        rules = Rules(self._costs, limits_of(self._settings))
        return PaperMatching(self.records, self._desk.bars, self.books, self.prices, rules, self._halted_then)

    @property
    def _costs(self) -> Costs:
        settings = self._settings
        return Costs(settings.paper_fee, settings.paper_slippage, settings.paper_volume_share)

    @cached_property
    def reasons(self) -> Reasons:
        """What orders wait for."""
        costs = self._costs if self.broker.fills_locally else None
        fills = not self._settings.read_only
        return Reasons(self.records, self._desk.bars, self._halted_then, costs, fills=fills)

    async def settle_all(self) -> None:
        """Fill what bars that have closed fill on every paper account, as if nothing were halted; failures are logged."""
        matching = PaperMatching(
            self.records, self._desk.bars, self.books, self.prices, self.matching.rules, lambda _view: None
        )
        try:
            await matching.step(None, self._desk.bars.closed_until())
        except OpenbellError as error:
            log.warning("accounts could not be brought up to date: %s", error)

    async def settle(self) -> None:
        """Do what bars that have closed do to this desk's account, whoever runs the engine: before it is read or changed."""
        if self._scenario is not None:
            await self.go_on()
        elif self.broker.fills_locally and self.writes:
            with self._logged():
                await self.matching.account(self.accounts.name, self._desk.bars.closed_until())

    async def go_on(self) -> None:
        """In a scenario, do what bars that have closed do to its account and alerts: before anything is written.

        What is written next moves the scenario's time on to this clock. What was due before could not be written any more by
        a desk whose clock stands earlier, and that desk would show as open what should have filled.
        """
        if self._scenario is None or not self.writes or not await self.records.begun():
            return
        until = self._desk.bars.closed_until()
        with self._logged():
            await self.matching.step(None, until)
            await self.alert_engine.step(None, until)

    @contextmanager
    def _logged(self) -> Iterator[None]:
        try:
            yield
        except (DataError, UnknownSymbol, StoreError, Refused) as error:
            log.warning("the account could not be brought up to date: %s", error)

    @cached_property
    def orders(self) -> OrderService:
        """Placing and cancelling."""
        return OrderService(self.records, self.accounts, self.gate, self.broker, self.settle)

    @cached_property
    def portfolio(self) -> PortfolioService:
        """Positions, balance, validation."""
        return PortfolioService(self.records, self.accounts, self.gate, self.settle)

    @cached_property
    def decisions(self) -> DecisionService:
        """The journal of decisions."""
        if self.records.access is not Access.PAST:
            return DecisionService(self.records, self.go_on)
        # What is decided at another time than the present's is kept in a scenario, and shown beside what was decided then.
        return DecisionService(self._what_if.records, self._what_if.go_on, (self.records,))

    @cached_property
    def _what_if(self) -> TradingDesk:
        """The scenario in which a desk that only looks at the past keeps its decisions."""
        return TradingDesk(self._desk, DEFAULT_SCENARIO)

    @cached_property
    def halts(self) -> Halts:
        """The kill switch in the records."""
        return Halts(self.records, self._halted_then)

    @property
    def _halted(self) -> Halted:
        """The file in the home stops every desk that acts; a look at the past shows what had been halted then."""
        return marks.halted if self.records.access is Access.PAST else self.halt_file.halted

    @property
    def _halted_then(self) -> Halted:
        """Whether trading was halted in the time of these records.

        The file in the home is about now. It keeps new orders out of a scenario and does nothing to those that rest there:
        what becomes of them must not depend on when somebody looks.
        """
        return self._halted if self.records.access is Access.PRESENT else marks.halted

    @cached_property
    def halt_file(self) -> HaltFile:
        """The kill switch in the home."""
        return HaltFile(self._settings.home / "halted")

    @cached_property
    def inbox(self) -> Inbox:
        """Notifications."""
        return Inbox(self.records, self.go_on)

    @cached_property
    def alerts(self) -> AlertService:
        """Setting alerts."""
        from openbell.desk.trading.alerts import AlertService

        return AlertService(self.records, self._desk.bars, self.go_on)

    @cached_property
    def alert_engine(self) -> AlertEngine:
        """What fires alerts."""
        from openbell.desk.trading.alert_engine import AlertEngine

        return AlertEngine(self.records, self._desk.bars, self._desk.indicators, self.inbox)

    @cached_property
    def engine(self) -> Engine:
        """What goes on by itself: the kill switch first, then fills, then alerts."""
        from openbell.desk.trading.engine import Engine
        from openbell.desk.trading.reconcile import Reconciling

        # Alpaca lets two hundred questions a minute through, and an order may take two.
        reconciling = Reconciling(self.records, self.accounts.name, self.broker, every=3.0, most=2)
        # Without --trade nothing is sent to a broker; paper orders are filled all the same.
        sends = self.broker.fills_locally or self._settings.trade

        async def halting(lease: Lease | None, _until: int) -> int:
            ended = await self.halts.enforce(self.broker, lease) if sends else 0
            if sends and not self.broker.fills_locally and (reason := await self._lost_too_much()):
                ended += await self.halts.stop(self.broker, self.accounts.name, reason, lease)
            return ended

        async def asking(lease: Lease | None, _until: int) -> int:
            return await reconciling.step(lease) if sends and not self.broker.fills_locally else 0

        async def remembering(lease: Lease | None, _until: int) -> int:
            if await self.records.read(checkpoints.due):
                await self.records.write(lambda journal: checkpoints.step(journal.view), lease)
            return 0

        steps = (halting, self.matching.step, asking, self.alert_engine.step, remembering)
        return Engine(self.records, self._desk.clock, self._desk.bars.closed_until, steps)

    async def _lost_too_much(self) -> str | None:
        """Why nothing may be opened today, if the account is there and can be valued."""
        try:
            return await self.portfolio.lost_too_much(OPERATOR)
        except (AccountNotFound, Refused, BrokerError) as error:
            log.debug("%s", error)
            return None

    def start(self) -> None:
        """Run the engine beside whatever this process does; it works when nobody else's does."""
        if self._running is None and self.writes:
            self._running = asyncio.create_task(self.engine.run(), name="engine")

    async def catch_up(self) -> None:
        """Do once what the engine does, if nobody else is it; what fails will be said by whoever asks next."""
        _ = self.broker
        if not self.writes:
            return
        try:
            await self.engine.once()
        except SettingsError:
            raise
        except (StoreError, LeaseLost, Refused) as error:
            log.warning("%s", error)

    def push_to(self, connection: object, principal: str, send: Send) -> None:
        """From now on, send one connection the notifications that its principal has subscribed to."""
        if connection not in self._pushing and self.writes:
            self._pushing[connection] = asyncio.create_task(self.inbox.push(principal, send), name="push")

    async def close(self) -> None:
        """End what was begun: orders on their way come to their end first."""
        tasks = [*self._pushing.values(), *([self._running] if self._running else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if "orders" in self.__dict__:
            await self.orders.close()
        if "broker" in self.__dict__:
            await self.broker.close()
        for name in ("records", "_what_if"):
            if name in self.__dict__:
                await self.__dict__[name].close()


def make_broker(settings: Settings) -> Broker:
    """The broker that the settings name. Raises `SettingsError`."""
    return all_brokers()[settings.broker].make(BrokerParts(settings.by_name, os.environ))


def limits_of(settings: Settings) -> Limits:
    """The gate's rules."""
    symbols = frozenset(parse(each).symbol for each in settings.risk_symbols.split(",") if each.strip())
    return Limits(
        settings.risk_order_share,
        settings.risk_symbol_share,
        settings.risk_order_notional,
        settings.risk_symbol_notional,
        settings.risk_positions,
        settings.risk_daily_loss,
        settings.risk_leverage,
        settings.risk_collar,
        symbols,
        (1 + settings.paper_fee) * (1 + settings.paper_slippage) - 1 if settings.broker == "paper" else Limits().fee,
        settings.risk_short,
    )
