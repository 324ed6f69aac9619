"""What an account holds and may do: positions, balance, and the gate's opinion of a trade that is only thought of."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection

from openbell.desk.trading.accounts import AccountService
from openbell.desk.trading.gate import Gate, Known, Valued
from openbell.market.clock import Clock
from openbell.market.errors import DataError
from openbell.market.instruments import Instrument
from openbell.stores.records.records import Records
from openbell.trading import amounts
from openbell.trading.amounts import ONE, ZERO
from openbell.trading.book import Position, margin
from openbell.trading.orders import EXPOSED, Side
from openbell.trading.request import refuse_foreign_money
from openbell.trading.risk import Proposal, Verdict, lost_too_much, price_of

_DAY = 86400


@dataclass(frozen=True, slots=True)
class Holding:
    """A position and what it is worth."""

    position: Position
    price: Decimal
    unrealised: Decimal


@dataclass(frozen=True, slots=True)
class Balance:
    """An account's money. `total` is equity: cash and what the positions are worth."""

    total: Decimal
    available: Decimal
    """What may still be tied up by new positions, before fees."""
    margin_used: Decimal
    unrealised: Decimal
    cash: Decimal
    realised: Decimal
    fees: Decimal


class PortfolioService:
    """Questions about one account."""

    def __init__(self, records: Records, accounts: AccountService, gate: Gate, clock: Clock) -> None:
        self._records = records
        self._accounts = accounts
        self._gate = gate
        self._clock = clock

    async def holdings(self, principal: str) -> list[Holding]:
        """Open positions, those opened last first."""
        valued = await self._valued(principal)
        found = sorted(valued.book.positions.values(), key=lambda each: (-each.opened_at, each.symbol))
        return [Holding(each, valued.marks[each.symbol], each.unrealised(valued.marks[each.symbol])) for each in found]

    async def balance(self, principal: str) -> Balance:
        """The account's money now."""
        valued = await self._valued(principal)
        book, marks, leverage = valued.book, valued.marks, self._gate.limits.leverage
        with amounts.exact():
            equity = book.equity(marks)
            used = margin(book.exposure(marks), leverage)
            waiting = sum(
                (
                    order.remaining_opening * price_of(order, marks[order.symbol])
                    for order in valued.orders
                    if order.state in EXPOSED and not order.role.exit
                ),
                ZERO,
            )
            available = max(ZERO, equity - used - margin(waiting, leverage))
        return Balance(equity, available, used, book.unrealised(marks), book.cash, book.realised, book.fees)

    async def lost_too_much(self, principal: str) -> str | None:
        """Why nothing may be opened today; None if it may."""
        valued = await self._valued(principal)
        return lost_too_much(valued.day_start, valued.book.equity(valued.marks), self._gate.limits)

    async def validate(
        self, principal: str, instrument: Instrument, side: Side, size: Decimal, price: Decimal | None
    ) -> Verdict:
        """What the gate would say of an order now."""
        refuse_foreign_money(instrument)
        await self._accounts.prepare()
        known = await self._gate.known(instrument)
        proposal = Proposal(instrument.symbol, side, size, price)

        def work(connection: Connection) -> Verdict:
            account = self._accounts.open(connection, principal)
            return self._gate.judge(connection, account, proposal, known)

        try:
            return await self._gate.asking(known, lambda: self._records.read(work), self._midnight())
        except DataError as error:
            return Verdict(False, "no_price", error.message, ZERO, ONE, size)

    async def _valued(self, principal: str) -> Valued:
        await self._accounts.prepare()
        known = Known()

        def work(connection: Connection) -> Valued:
            return self._gate.value(connection, self._accounts.open(connection, principal), known)

        return await self._gate.asking(known, lambda: self._records.read(work), self._midnight())

    def _midnight(self) -> int:
        return int(self._clock.epoch() // _DAY * _DAY)
