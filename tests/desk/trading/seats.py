"""A desk with one account and one clock: the real services on a simulated market and database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from openbell.desk.bars.service import BarService
from openbell.desk.events.hub import Hub
from openbell.desk.orders.accounts import AccountService, OperatorAccount
from openbell.desk.orders.books import Books
from openbell.desk.orders.broker_venue import BrokerVenue, Reconciling
from openbell.desk.orders.decisions import DecisionService
from openbell.desk.orders.engine import Engine
from openbell.desk.orders.gate import Gate, GatheredPrices
from openbell.desk.orders.halts import Halts
from openbell.desk.orders.matching import PaperMatching
from openbell.desk.orders.paper_venue import PaperVenue
from openbell.desk.orders.portfolio import PortfolioService
from openbell.desk.orders.prices import Prices, TradedMinutes
from openbell.desk.orders.service import OrderService
from openbell.desk.orders.venue import Venue
from openbell.desk.settings import Settings
from openbell.market.errors import DataError, Refused, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.stores.port import Lease
from openbell.stores.records import checkpoints
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.records import RecordAccess, Records
from openbell.stores.records.snapshot import View
from openbell.trading.accounts import Account
from openbell.trading.advance import Rules
from openbell.trading.broker import Broker
from openbell.trading.costs import Costs
from openbell.trading.risk import Proposal, RiskLimits, Verdict
from tests.desk.trading.market import STALE_AFTER, Clock, Market
from tests.desk.trading.memory_databases import Life, Line, NotedHead

CASH = {"main": Decimal(10_000), "second": Decimal(4_000), "one": Decimal(10_000), "two": Decimal(6_000)}
"""Starting cash of the accounts: two of the present, and one of each scenario."""
LIMITS = RiskLimits(
    order_share=Decimal("0.4"),
    symbol_share=Decimal("0.6"),
    positions=2,
    daily_loss=Decimal("0.015"),
    leverage=Decimal(1),
)
COSTS = Costs()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The prices that an order was judged with, and when their gathering began."""

    sheet: GatheredPrices
    since: float


class WatchedGate(Gate):
    """The gate; it keeps the prices of its judgements."""

    def __init__(self, records: Records, prices: Prices, books: Books, clock: Clock, *, cut: bool) -> None:
        super().__init__(records, prices, books, LIMITS, clock, fills_cut_to_position=cut)
        self._begun: dict[int, Judgement] = {}
        self.last: Judgement | None = None

    async def gather(self, account: Account, instrument: Instrument | None = None) -> GatheredPrices:
        since = self._clock.epoch()
        sheet = await super().gather(account, instrument)
        self._begun[id(sheet)] = Judgement(sheet, since)
        return sheet

    def judge(self, view: View, account: Account, proposal: Proposal, sheet: GatheredPrices) -> Verdict:
        verdict = super().judge(view, account, proposal, sheet)
        self.last = self._begun[id(sheet)]
        return verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """The process, clock, market and broker of a desk."""

    life: Life
    clock: Clock
    market: Market
    broker: Broker | None
    """None: paper."""
    access: RecordAccess = RecordAccess.PRESENT
    line: type[Line] = Line


class Seat:
    """One desk."""

    def __init__(self, setting: Setting, account: str, named: Callable[[WatchedGate], str]) -> None:
        """`named` returns the id of a new order that the gate has just judged."""
        life, clock = setting.life, setting.clock
        world, self.broker = life.world, setting.broker
        self.account = account
        self.clock = clock
        self.market = setting.market
        self.records = Records(
            setting.line(life), cast("HeadFile", NotedHead(life)), clock, setting.access, name=account
        )
        self.books = Books()
        bars = cast("BarService", setting.market)
        prices = Prices(bars, STALE_AFTER, TradedMinutes(bars, present=True))
        self.matching = PaperMatching(self.records, bars, self.books, prices, Rules(COSTS, LIMITS))
        self.halts = Halts(self.records)
        self.venue = self._venue(world.steady.epoch, world.every, world.most)
        self.gate = WatchedGate(self.records, prices, self.books, clock, cut=not self.venue.remote)
        self.accounts = AccountService(self.records, self.venue, OperatorAccount(account))
        self.orders: OrderService = OrderService(
            self.records,
            self.accounts,
            self.gate,
            self.venue,
            self.settle,
            new_id=lambda: named(self.gate),
            received=world.clock.epoch,
        )
        self.portfolio: PortfolioService = PortfolioService(self.records, self.accounts, self.gate, self.settle)
        self.decisions: DecisionService = DecisionService(self.records, self._settle_scenario, Settings())
        steps = {"orders": self.venue.step, "checkpoints": self._write_checkpoints}
        self.engine = Engine(self.records, clock, setting.market.closed_until, steps, Hub())
        self.stepping: asyncio.Task[Any] | None = None

    def _venue(self, now: Callable[[], float], every: float, most: int) -> Venue:
        cash = CASH[self.account]
        if self.broker is None:
            return PaperVenue(self.matching, self.halts, self.market.closed_until, cash)
        reconciling = Reconciling(self.records, self.account, self.broker, now, every=every, most=most)
        return BrokerVenue(self.records, self.broker, reconciling, self.halts, self._lost_too_much)

    async def _lost_too_much(self) -> str | None:
        return await self.portfolio.lost_too_much(self.account)

    async def settle(self, account: str) -> None:
        """As `TradingDesk.settle`: queries are answered even if the account could not be brought up to date."""
        if self.records.access is RecordAccess.PAST:
            return
        with suppress(DataError, UnknownSymbol, StoreError, Refused):
            await self.venue.settle(account)

    async def _settle_scenario(self) -> None:
        if self.records.access is RecordAccess.SCENARIO:
            await self.settle(self.account)

    async def _write_checkpoints(self, lease: Lease | None, _until: int) -> int:
        if await self.records.read(checkpoints.due):
            await self.records.write(lambda journal: checkpoints.write_due(journal.view), lease=lease)
        return 0
