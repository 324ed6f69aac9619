"""The trading desk, put together from the settings. Parts are made on first use."""

from __future__ import annotations

import asyncio
import logging
import os
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING
from zlib import crc32

from openbell.desk.trading.accounts import OPERATOR, AccountService
from openbell.desk.trading.books import Books
from openbell.desk.trading.decisions import DecisionService
from openbell.desk.trading.gate import Gate
from openbell.desk.trading.halts import HaltFile, Halts
from openbell.desk.trading.inbox import Inbox, Send
from openbell.desk.trading.orders import OrderService
from openbell.desk.trading.portfolio import PortfolioService
from openbell.desk.trading.prices import Prices
from openbell.market.errors import LeaseLost, Refused, SettingsError, StoreError
from openbell.market.instruments import parse
from openbell.stores.port import Lease
from openbell.stores.records.head import HeadFile
from openbell.stores.records.records import Database, Records
from openbell.trading.accounts import AccountNotFound
from openbell.trading.broker import Broker, BrokerError, PaperBroker
from openbell.trading.risk import Limits

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.desk.settings import Settings
    from openbell.desk.trading.alarms import AlertService
    from openbell.desk.trading.engine import Engine

log = logging.getLogger(__name__)


class TradingDesk:
    """Everything about orders, alerts and decisions."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._settings = desk.settings
        self._running: asyncio.Task[None] | None = None
        self._pushing: dict[str, asyncio.Task[None]] = {}

    @cached_property
    def records(self) -> Records:
        """Where it is all kept."""
        return make_records(self._settings, self._desk)

    @cached_property
    def broker(self) -> Broker:
        """Who carries orders out."""
        return make_broker(self._settings)

    @cached_property
    def accounts(self) -> AccountService:
        """The account that the settings name."""
        settings = self._settings
        default = "replay" if settings.feed == "replay" else settings.broker
        return AccountService(
            self.records,
            settings.account or default,
            settings.broker,
            self._opening_cash,
            settings.account_token,
            default=settings.account in {"", default},
        )

    async def _opening_cash(self) -> Decimal:
        """What a new account begins with: on paper the setting, at a broker what it says."""
        return self._settings.paper_cash if self.broker.inside else await self.broker.cash()

    @cached_property
    def books(self) -> Books:
        """Books of accounts."""
        return Books(self._desk.clock, now=not self._settings.as_of)

    @cached_property
    def gate(self) -> Gate:
        """The risk gate."""
        prices = Prices(self._desk.bars, self._settings.stale_after)
        return Gate(prices, self.books, limits_of(self._settings), self.halt_file.halted, cut=self.broker.inside)

    @cached_property
    def orders(self) -> OrderService:
        """Placing and cancelling."""
        now = not self._settings.as_of
        return OrderService(self.records, self.accounts, self.gate, self.broker, self._desk.clock, now=now)

    @cached_property
    def portfolio(self) -> PortfolioService:
        """Positions, balance, validation."""
        return PortfolioService(self.records, self.accounts, self.gate, self._desk.clock)

    @cached_property
    def decisions(self) -> DecisionService:
        """The journal of decisions."""
        return DecisionService(self.records, self._desk.clock)

    @cached_property
    def halts(self) -> Halts:
        """The kill switch in the records."""
        return Halts(self.records, self.halt_file.halted)

    @cached_property
    def halt_file(self) -> HaltFile:
        """The kill switch in the home."""
        return HaltFile(self._settings.home / "halted")

    @cached_property
    def inbox(self) -> Inbox:
        """Notifications."""
        return Inbox(self.records, self._desk.clock)

    @cached_property
    def alerts(self) -> AlertService:
        """Setting alerts."""
        from openbell.desk.trading.alarms import AlertService

        return AlertService(self.records, self._desk.bars, now=not self._settings.as_of)

    @cached_property
    def engine(self) -> Engine:
        """What goes on by itself: the kill switch first, then fills, then alerts."""
        from openbell.desk.trading.alarms import Alarms
        from openbell.desk.trading.engine import LEASE, Engine
        from openbell.desk.trading.matching import PaperMatching
        from openbell.desk.trading.reconcile import Reconciling
        from openbell.trading.paper import Costs

        settings, bars = self._settings, self._desk.bars
        costs = Costs(settings.paper_fee, settings.paper_slippage, settings.paper_volume_share)
        matching = PaperMatching(self.records, bars, self.books, costs, self.halt_file.halted)
        other = " as of" if settings.as_of else ""
        alarms = Alarms(self.records, bars, self._desk.charts, self.inbox, f"alerts{other}")
        # Alpaca lets two hundred questions a minute through, and an order may take two.
        reconciling = Reconciling(self.records, self.accounts.name, self.broker, every=3.0, most=2)

        async def halting(lease: Lease | None, _until: int) -> int:
            ended = await self.halts.enforce(self.broker, lease)
            if reason := await self._lost_too_much():
                ended += await self.halts.stop(self.broker, self.accounts.name, reason, lease)
            return ended

        async def asking(lease: Lease | None, _until: int) -> int:
            return 0 if self.broker.inside else await reconciling.step(lease)

        steps = (halting, matching.step, asking, alarms.step)
        return Engine(self.records, self._desk.clock, bars.closed_until, steps, lease=f"{LEASE}{other}")

    async def _lost_too_much(self) -> str | None:
        """Why nothing may be opened today, if the account is there and can be valued."""
        try:
            return await self.portfolio.lost_too_much(OPERATOR)
        except (AccountNotFound, Refused, BrokerError) as error:
            log.debug("%s", error)
            return None

    def start(self) -> None:
        """Run the engine beside whatever this process does; it works when nobody else's does."""
        if self._running is None and not self._settings.read_only:
            self._running = asyncio.create_task(self.engine.run(), name="engine")

    async def catch_up(self) -> None:
        """Do once what the engine does, if nobody else is it; what fails will be said by whoever asks next."""
        _ = self.broker
        try:
            await self.engine.once()
        except (StoreError, LeaseLost) as error:
            log.warning("%s", error)

    def push_to(self, principal: str, send: Send) -> None:
        """From now on, send a principal the notifications that it has subscribed to."""
        task = self._pushing.get(principal)
        if task is None or task.done():
            self._pushing[principal] = asyncio.create_task(self.inbox.push(principal, send), name="push")

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
        if "records" in self.__dict__:
            await self.records.close()


def make_records(settings: Settings, desk: Desk) -> Records:
    """The records of the market that the settings are about: what is simulated never meets what is real."""
    database: Database
    folder = settings.market_folder
    if settings.database_url:
        from openbell.stores.records.postgres import Pool, PostgresDatabase

        schema = f"openbell_simulated_{settings.sim_seed}".replace("-", "m") if settings.simulated else "openbell"
        pool = Pool(
            settings.pool_postgres_min,
            settings.pool_postgres_max,
            settings.pool_postgres_idle,
            settings.pool_postgres_connect,
            settings.pool_postgres_timeout,
        )
        database = PostgresDatabase(settings.database_url, schema, pool)
        head = folder / f"ledger-{crc32(f'{database.where}'.encode()):08x}.head"
    else:
        from openbell.stores.records.sqlite import SqliteDatabase

        database = SqliteDatabase(folder / "records.sqlite")
        head = folder / "ledger.head"
    return Records(database, HeadFile(head), desk.clock)


def make_broker(settings: Settings) -> Broker:
    """The broker that the settings name. Raises `SettingsError`."""
    if settings.broker == "paper":
        return PaperBroker()
    key, secret = os.environ.get("ALPACA_API_KEY", ""), os.environ.get("ALPACA_SECRET_KEY", "")
    if not key or not secret:
        raise SettingsError("the broker alpaca needs ALPACA_API_KEY and ALPACA_SECRET_KEY")
    from openbell.brokers.alpaca import AlpacaBroker

    url = os.environ.get("ALPACA_TRADING_URL") or None
    broker: Broker = AlpacaBroker(key, secret, live=settings.alpaca_live, trading_url=url)
    return broker


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
    )
