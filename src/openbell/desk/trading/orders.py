"""Placing and cancelling orders.

An order is judged and written down in one transaction; only then is it sent, and what came of that is written down in a
second. On paper there is nothing to send, and one transaction does both. Whoever asks again under the same client_order_id
gets the first answer; without one, the same order again within ten seconds is refused. If nobody knows whether an order
arrived, it is `unknown`, and the engine asks the broker until it knows: it is never sent again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from openbell.desk.trading import reports
from openbell.desk.trading.accounts import AccountService
from openbell.desk.trading.gate import NO_DATA, Gate, Known
from openbell.market.clock import iso
from openbell.market.errors import (
    CannotPay,
    DuplicateOrder,
    InvalidParameter,
    NoSuchOrder,
    RiskRefused,
    TooManyOrders,
)
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import eastern, next_open, session_on
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.view import View
from openbell.trading import amounts
from openbell.trading.accounts import Account
from openbell.trading.brackets import end_exits, exits_of
from openbell.trading.broker import Broker, BrokerRefused, BrokerUnavailable, OutcomeUnknown, Report
from openbell.trading.orders import FINAL, Force, Kind, Order, Role, State
from openbell.trading.request import Request
from openbell.trading.risk import Proposal, Verdict

log = logging.getLogger(__name__)
T = TypeVar("T")

TWIN_SECONDS = 10.0
MOST_PER_SECOND = 100
_DAY = 86400
_LEAST_PRICE = Decimal("1e-8")
"""Fills have twelve decimal places: four digits are left of such a price."""


@dataclass(frozen=True, slots=True)
class _Intent:
    """What the first transaction decided."""

    order: Order
    verdict: Verdict | None
    """None: the order is an earlier one, told again."""


async def _nothing_to_settle() -> None:
    """For an account whose fills do not come from bars."""


class OrderService:
    """Orders of principals on one account. The only one who sends anything to a broker."""

    def __init__(
        self,
        records: Records,
        accounts: AccountService,
        gate: Gate,
        broker: Broker,
        settle: Callable[[], Awaitable[None]] = _nothing_to_settle,
        *,
        new_id: Callable[[], str] = lambda: f"{time.time_ns():016x}{secrets.token_hex(4)}",
        received: Callable[[], float] = time.time,
    ) -> None:
        """`settle` fills what bars that have closed fill: every question and every order is about the account after that.

        `received` is the machine's own time: a clock that stands does not make every order a double.
        """
        self._records = records
        self._accounts = accounts
        self._gate = gate
        self.broker = broker
        self._settle_account = settle
        self._new_id = new_id
        self._received = received
        self._begun: set[asyncio.Task[Any]] = set()

    async def place(self, principal: str, asked: Request) -> Order:
        """Judge, write down, send. Raises `RiskRefused`, `DuplicateOrder`, `TooManyOrders`, `BrokerRefused`.

        What was begun is finished even if the caller goes away.
        """
        return await self._finish(self._place(principal, asked))

    async def cancel(self, principal: str, order_id: str) -> Order:
        """End an order of this principal. Raises `NoSuchOrder`, `InvalidParameter` if it has ended already."""
        return await self._finish(self._cancel(principal, order_id))

    async def listing(self, principal: str, *, open_only: bool, limit: int, offset: int = 0) -> tuple[list[Order], int]:
        """A page of a principal's orders, newest first, and how many there are in all."""
        await self._accounts.admit(principal)
        await self._settle_account()

        def work(view: View) -> tuple[list[Order], int]:
            account = self._accounts.open(view, principal)
            return queries.listing(view, account.name, principal, limit, offset, open_only=open_only)

        return await self._records.read(work)

    async def close(self) -> None:
        """Let what was begun come to its end."""
        if self._begun:
            await asyncio.gather(*self._begun, return_exceptions=True)

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return await asyncio.shield(task)

    # Placing

    async def _place(self, principal: str, asked: Request) -> Order:
        received = self._received()
        await self._accounts.admit(principal)
        await self._settle_account()
        known = await self._gate.known(asked.instrument)
        intent = await self._gate.asking(
            known,
            lambda: self._records.write(lambda journal: self._intend(journal, principal, asked, known, received)),
            writes=True,
        )
        order = intent.order
        if intent.verdict is None:
            return _told_again(order)
        if not intent.verdict.valid:
            raise refusal(intent.verdict, order.id)
        if self.broker.fills_locally:
            return order
        return await self._send(order)

    def _intend(self, journal: Journal, principal: str, asked: Request, known: Known, received: float) -> _Intent:
        """Everything before an order is sent, in one transaction."""
        account = self._accounts.ensure(journal, principal)
        if earlier := self._same_key(journal.view, account, principal, asked):
            return _Intent(earlier, None)
        self._refuse_twin(journal.view, account, principal, asked, received)
        if queries.asked_since(journal.view, account.name, received - 1.0) >= MOST_PER_SECOND:
            raise TooManyOrders(f"more than {MOST_PER_SECOND} orders in a second; wait a second", retry_after_s=1)
        _check_against(asked, known)  # not before the id was looked for: the price may have moved since the first call
        proposal = proposal_of(asked)
        verdict = self._gate.judge(journal.view, account, proposal, known)
        if verdict.rule == NO_DATA:
            raise refusal(verdict)  # no answer to keep: the same id may be judged again when there is data
        order = self._order(journal.at, account, principal, asked, verdict)
        journal.note("verdict", order.id, _verdict_row(order, verdict, known))
        journal.put("order", order, new=True)
        queries.remember(journal.view, order, asked.digest(), received)
        if verdict.valid:
            for each in exits_of(order):
                journal.put("order", each, new=True)
        return _Intent(order, verdict)

    @staticmethod
    def _same_key(view: View, account: Account, principal: str, asked: Request) -> Order | None:
        """The order under the same client_order_id. Raises `DuplicateOrder` if it is another order."""
        key = asked.client_order_id
        earlier = None if key is None else queries.by_client_id(view, account.name, principal, key)
        if earlier is not None and queries.digest_of(view, earlier.id) != asked.digest():
            raise DuplicateOrder(
                f"client_order_id {key} was used for another order ({earlier.id}); use a new one", order_id=earlier.id
            )
        return earlier

    @staticmethod
    def _refuse_twin(view: View, account: Account, principal: str, asked: Request, received: float) -> None:
        """Raise `DuplicateOrder` for the same order again without an id: most likely a retry."""
        if asked.client_order_id is not None:
            return
        twin = queries.twin(view, account.name, principal, asked.digest(), received - TWIN_SECONDS)
        if twin is not None:
            raise DuplicateOrder(
                f"the same order was placed less than {TWIN_SECONDS:g} s ago as {twin.id} ({twin.state}); if it is meant "
                "twice, give each a client_order_id",
                order_id=twin.id,
            )

    def _order(self, at: float, account: Account, principal: str, asked: Request, verdict: Verdict) -> Order:
        waiting = State.OPEN if self.broker.fills_locally else State.PENDING
        order_id = f"{slug(principal)}-{self._new_id()}"
        return Order(
            id=order_id,
            account=account.name,
            principal=principal,
            symbol=asked.instrument.symbol,
            side=asked.side,
            kind=asked.kind,
            quantity=asked.quantity,
            opening=verdict.opening,
            time_in_force=asked.time_in_force,
            placed_at=at,
            spelling=asked.spelling,
            limit_price=asked.limit_price,
            stop_price=asked.stop_price,
            take_profit=asked.take_profit,
            stop_loss=asked.stop_loss,
            role=Role.ENTRY if asked.bracket else Role.SINGLE,
            client_order_id=asked.client_order_id,
            expires_at=day_end(asked.instrument, at) if asked.time_in_force is Force.DAY else None,
            state=waiting if verdict.valid else State.REJECTED,
            broker_id=order_id if self.broker.fills_locally and verdict.valid else None,
            reason=None if verdict.valid else refusal(verdict).message,
            updated_at=at,
        )

    async def _send(self, order: Order) -> Order:
        """Send an order that is written down; the one place where that happens."""
        refused: BrokerRefused | None = None
        try:
            report = await self.broker.submit(order)
        except BrokerRefused as error:
            refused, report = error, Report("", State.REJECTED, reason=error.message)
        except BrokerUnavailable as error:
            refused = BrokerRefused(f"nothing was sent: {error.message}", **error.details)
            report = Report("", State.REJECTED, reason=refused.message)
        except OutcomeUnknown as error:
            log.warning("order %s: %s; it will be asked for", order.id, error)
            report = Report("", State.UNKNOWN, reason=error.message)
        order = await self._records.write(lambda journal: self._settle(journal, order.id, report))
        if refused is not None:
            raise refused
        return order

    @staticmethod
    def _settle(journal: Journal, order_id: str, report: Report) -> Order:
        """Write down what came of sending; by now the engine may know more."""
        order = queries.order(journal.view, order_id)
        assert order is not None
        if report.state is State.UNKNOWN or not report.broker_id:
            # Waiting for the answer may have taken so long that the engine has begun to ask; a refusal still ends it.
            in_doubt = report.state is State.REJECTED and order.state in {State.UNKNOWN, State.LOST}
            if order.state is State.PENDING or in_doubt:
                order = order.to(report.state, journal.at, report.reason)
                journal.put("order", order)
                for each in end_exits(order, queries.bracket(journal.view, order.id), journal.at):
                    if order.final:
                        journal.put("order", each)
            return order
        return reports.apply(journal, order, report)

    # Cancelling

    async def _cancel(self, principal: str, order_id: str) -> Order:
        await self._accounts.admit(principal)
        await self._settle_account()
        order = await self._records.write(lambda journal: self._begin_cancel(journal, principal, order_id))
        if self.broker.fills_locally or order.final:
            return order
        try:
            await self.broker.cancel(order)
            report = await self.broker.find(order)
        except (OutcomeUnknown, BrokerUnavailable) as error:
            if order.state is State.HELD:
                raise  # nothing is written down that the engine could go on with
            log.warning("cancelling %s: %s; it will be asked for", order.id, error)
            return order
        if report is None:
            return order
        return await self._records.write(lambda journal: self._settle(journal, order_id, report))

    def _begin_cancel(self, journal: Journal, principal: str, order_id: str) -> Order:
        account = self._accounts.open(journal.view, principal)
        order = queries.order(journal.view, order_id)
        if order is None or order.principal != principal or order.account != account.name:
            raise NoSuchOrder(f"no order {order_id[:80]!r}", order_id=order_id[:80])
        if order.state in FINAL:
            raise InvalidParameter(f"order {order.id} is {order.state} already", order_id=order.id)
        if order.state in {State.PENDING, State.UNKNOWN, State.LOST}:
            raise InvalidParameter(
                f"order {order.id} is {order.state}: the broker is being asked what became of it; try again in a moment",
                order_id=order.id,
            )
        if self.broker.fills_locally:
            return end(journal, order, State.CANCELLED, "cancelled by its owner")
        if order.state in {State.CANCELLING, State.HELD}:
            return order  # what is held here is held at the broker too, and ends when that says so
        order = order.to(State.CANCELLING, journal.at)
        journal.put("order", order)
        return order


def end(journal: Journal, order: Order, state: State, reason: str) -> Order:
    """Write down the end of an order, and of exits that make no sense without it."""
    order = order.to(state, journal.at, reason)
    journal.put("order", order)
    for each in end_exits(order, queries.bracket(journal.view, order.id), journal.at):
        journal.put("order", each)
    return order


def refusal(verdict: Verdict, order_id: str | None = None) -> RiskRefused:
    """A verdict as an error."""
    kind = CannotPay if verdict.rule == "balance" else RiskRefused
    details: dict[str, Any] = {"rule": verdict.rule, "max_size": amounts.number(verdict.max_size)}
    if order_id is not None:
        details["order_id"] = order_id
    largest = f"; at most {amounts.text(verdict.max_size)} would pass" if verdict.max_size else ""
    return kind(f"refused by the risk gate: {verdict.reason}{largest}", **details)


def proposal_of(asked: Request) -> Proposal:
    """What the gate must judge of an order."""
    price = asked.limit_price or asked.stop_price
    limited = asked.limit_price is not None
    return Proposal(asked.instrument.symbol, asked.side, asked.quantity, price, limited, asked.reduce_only)


def slug(principal: str) -> str:
    """A principal as the beginning of an id: short, plain, and its own."""
    plain = re.sub(r"[^a-z0-9]", "", principal.lower())[:16]
    return plain if plain == principal else f"{plain}{hashlib.sha256(principal.encode()).hexdigest()[:8]}"


def day_end(instrument: Instrument, at: float) -> float:
    """When an order for the day ends: with the session for stocks, with the UTC day for what never closes."""
    if instrument.asset_class is not AssetClass.STOCK:
        return float((at // _DAY + 1) * _DAY)
    session = session_on(eastern(at).date())
    if session is None or at >= session.close:
        session = next_open(at)
    return float(session.close) if session else float((at // _DAY + 1) * _DAY)


def _check_against(asked: Request, known: Known) -> None:
    """The price must be one that fills can have, and the exits of a market order must lie around it."""
    if known.price is not None and known.price.value < _LEAST_PRICE:
        raise InvalidParameter(
            f"the price of {asked.instrument} is {amounts.text(known.price.value)}: nothing below "
            f"{amounts.text(_LEAST_PRICE)} can be traded here"
        )
    if asked.kind is not Kind.MARKET or known.price is None:
        return
    sign = asked.side.sign
    for name, exit_price, way in (("stop_loss", asked.stop_loss, -1), ("take_profit", asked.take_profit, 1)):
        if exit_price is not None and (exit_price - known.price.value) * sign * way <= 0:
            side = "above" if sign * way > 0 else "below"
            raise InvalidParameter(f"{name} must be {side} the last price, {amounts.text(known.price.value)}")


def _told_again(order: Order) -> Order:
    """The first answer once more, be it an error."""
    if order.state is State.REJECTED:
        said = order.reason or "it was rejected"
        first = f"client_order_id {order.client_order_id} was refused at {iso(order.placed_at)}"
        raise RiskRefused(f"{said} ({first}; use a new one to try again)", order_id=order.id)
    return order


def _verdict_row(order: Order, verdict: Verdict, known: Known) -> dict[str, Any]:
    """What the ledger keeps of a judgement: on which bar it rests, and what it said."""
    price = known.price
    return {
        "order_id": order.id,
        "account": order.account,
        "symbol": order.symbol,
        "side": order.side.value,
        "quantity": amounts.text(order.quantity),
        "price": amounts.text(price.value) if price else None,
        "bar": price.bar if price else None,
        "bar_end": price.end if price else None,
        "valid": verdict.valid,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "max_size": amounts.text(verdict.max_size),
        "risk_score": amounts.text(verdict.risk_score),
        "opening": amounts.text(verdict.opening),
    }
