"""Placing and cancelling orders.

An order is judged and recorded in one transaction; only then is it sent to its venue. A second request with the same
client_order_id returns the first answer; without one, the same order within ten seconds is refused.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from openbell.desk.orders.accounts import AccountService
from openbell.desk.orders.gate import NO_DATA, TRIES, Gate, GatheredPrices, PricesMissing, refusal, verdict_row
from openbell.desk.orders.prices import Price
from openbell.desk.orders.venue import Venue
from openbell.market.clock import iso
from openbell.market.errors import (
    DuplicateOrder,
    InvalidParameter,
    NoSuchOrder,
    RiskRefused,
    StoreError,
    TooManyOrders,
)
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.orders import OrderPage, last_fill_times
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading import amounts
from openbell.trading.accounts import Account, slug
from openbell.trading.broker import BrokerUnavailable, OutcomeUnknown
from openbell.trading.fills import FillTime
from openbell.trading.orders import FINAL, Force, Order, OrderKind, OrderState, Role, exits_of
from openbell.trading.request import OrderRequest, too_small
from openbell.trading.risk import Proposal, Verdict
from openbell.trading.waiting import day_end

log = logging.getLogger(__name__)
T = TypeVar("T")

TWIN_SECONDS = 10.0
MOST_PER_SECOND = 100


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What the transaction of a new order has recorded."""

    order: Order
    verdict: Verdict | None
    """None: the order is the one of an earlier request with the same client_order_id."""


def _no_consensus(_view: View, _symbol: str, _principal: str) -> int | None:
    """For desks without strategies."""
    return None


async def _nothing_to_settle(_account: str) -> None:
    """For accounts that bars do not change."""


class OrderService:
    """Orders of principals."""

    def __init__(
        self,
        records: Records,
        accounts: AccountService,
        gate: Gate,
        venue: Venue,
        settle: Callable[[str], Awaitable[None]] = _nothing_to_settle,
        *,
        consensus: Callable[[View, str, str], int | None] = _no_consensus,
        new_id: Callable[[], str] = lambda: f"{time.time_ns():016x}{secrets.token_hex(4)}",
        received: Callable[[], float] = time.time,
    ) -> None:
        """`settle` applies the bars that have closed to an account before it is read or changed.

        `consensus` returns the ledger entry of the strategies' consensus about a symbol that a principal sees. `received`
        is the machine's time: with a fixed clock, every repeated order would look like a duplicate.
        """
        self._records = records
        self._accounts = accounts
        self._gate = gate
        self._venue = venue
        self._settle = settle
        self._consensus = consensus
        self._new_id = new_id
        self._received = received
        self._unfinished: set[asyncio.Task[Any]] = set()

    async def place(self, principal: str, asked: OrderRequest) -> Order:
        """Judge, record and send an order. Raises `RiskRefused`, `DuplicateOrder`, `TooManyOrders`, `BrokerRefused`.

        It is finished even if the caller is cancelled.
        """
        return await self._finish(self._place(principal, asked))

    async def cancel(self, principal: str, order_id: str) -> Order:
        """Cancel an order of this principal. Raises `NoSuchOrder`, or `InvalidParameter` if it has ended already."""
        return await self._finish(self._cancel(principal, order_id))

    async def listing(
        self, principal: str, *, open_only: bool, limit: int, offset: int = 0, cursor: str | None = None
    ) -> OrderPage:
        """Returns a page of a principal's orders, newest first; `cursor` is the id of the last order of the page before.

        Raises `InvalidParameter` if the cursor is not the id of an order.
        """
        await self._settle((await self._accounts.admit(principal)).name)

        def work(view: View) -> OrderPage:
            account = self._accounts.open(view, principal)
            before = None if cursor is None else self._order_at(view, account, principal, cursor)
            return queries.listing(view, account.name, principal, limit, offset, open_only=open_only, before=before)

        return await self._records.read(work)

    @staticmethod
    def _order_at(view: View, account: Account, principal: str, cursor: str) -> Order:
        """Returns the order of a cursor. Raises `InvalidParameter` if it is not one of this principal's orders."""
        found = queries.order(view, cursor) if cursor.isprintable() else None
        if found is None or (found.account, found.principal) != (account.name, principal):
            raise InvalidParameter(
                f"cursor {cursor[:80]!r} is not one that get_orders has returned; "
                "call it without a cursor to start again"
            )
        return found

    async def last_fills(self, orders: Iterable[Order]) -> dict[str, FillTime]:
        """Returns by order id when each order was filled last; orders without a fill are left out."""
        filled = [order.id for order in orders if order.filled]
        return await self._records.read(last_fill_times, filled) if filled else {}

    async def close(self) -> None:
        """Wait until every order that is being placed or cancelled is done."""
        if self._unfinished:
            await asyncio.gather(*self._unfinished, return_exceptions=True)

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_failure)
            raise

    # Placing

    async def _place(self, principal: str, asked: OrderRequest) -> Order:
        received = self._received()
        account = await self._accounts.admit(principal)
        await self._settle(account.name)
        recorded = await self._record(account, principal, asked, received)
        order, verdict = recorded.order, recorded.verdict
        if verdict is None:
            return _first_answer(order)
        if not verdict.valid:
            raise refusal(verdict, order.id)
        return await self._venue.send(order)

    async def _record(self, account: Account, principal: str, asked: OrderRequest, received: float) -> _Recorded:
        """Gather prices, then judge and record the order in one transaction."""
        for _ in range(TRIES):
            sheet = await self._gate.gather(account, asked.instrument)
            try:
                return await self._records.write(self._judge, principal, asked, sheet, received)
            except PricesMissing:
                continue  # the account has changed since the prices were gathered
        raise StoreError(f"the account {account.name} changes too fast to be valued; try again")

    def _judge(
        self, journal: Journal, principal: str, asked: OrderRequest, sheet: GatheredPrices, received: float
    ) -> _Recorded:
        """Everything before an order is sent, in one transaction. Raises `PricesMissing`."""
        account = self._accounts.ensure(journal, principal)
        if earlier := self._same_key(journal.view, account, principal, asked):
            return _Recorded(earlier, None)
        self._refuse_twin(journal.view, account, principal, asked, received)
        if queries.count_requests(journal.view, account.name, received - 1.0) >= MOST_PER_SECOND:
            raise TooManyOrders(f"more than {MOST_PER_SECOND} orders in a second; wait a second", retry_after_s=1)
        # Not before the id was looked up: the price may have moved since the first request.
        _check_against(asked, sheet.proposed)
        verdict = self._gate.judge(journal.view, account, proposal_of(asked), sheet)
        if verdict.rule == NO_DATA:
            raise refusal(verdict)  # not recorded: the same id may be judged again when there is data
        order = self._order(journal.at, account, principal, asked, verdict)
        consensus = self._consensus(journal.view, order.symbol, principal)
        journal.note("verdict", order.id, verdict_row(order, verdict, sheet.proposed, consensus))
        journal.put("order", order, new=True)
        queries.add_request(journal.view, order, asked.digest(), received)
        for each in exits_of(order) if verdict.valid else ():
            journal.put("order", each, new=True)
        return _Recorded(order, verdict)

    @staticmethod
    def _same_key(view: View, account: Account, principal: str, asked: OrderRequest) -> Order | None:
        """Returns the order with the same client_order_id. Raises `DuplicateOrder` if it is a different order."""
        key = asked.client_order_id
        earlier = None if key is None else queries.by_client_id(view, account.name, principal, key)
        if earlier is not None and queries.request_digest(view, earlier.id) != asked.digest():
            raise DuplicateOrder(
                f"client_order_id {key} was used for another order ({earlier.id}); use a new one", order_id=earlier.id
            )
        return earlier

    @staticmethod
    def _refuse_twin(view: View, account: Account, principal: str, asked: OrderRequest, received: float) -> None:
        """Raise `DuplicateOrder` for an identical recent order without an id: most likely a retry."""
        if asked.client_order_id is not None:
            return
        twin = queries.recent_duplicate(view, account.name, principal, asked.digest(), received - TWIN_SECONDS)
        if twin is not None:
            raise DuplicateOrder(
                f"the same order was placed less than {TWIN_SECONDS:g} s ago as {twin.id} ({twin.state}); if it is meant "
                "twice, give each a client_order_id",
                order_id=twin.id,
            )

    def _order(self, at: float, account: Account, principal: str, asked: OrderRequest, verdict: Verdict) -> Order:
        order = Order(
            id=f"{slug(principal)}-{self._new_id()}",
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
            updated_at=at,
        )
        if verdict.valid:
            return self._venue.accept(order)
        return replace(order, state=OrderState.REJECTED, reason=refusal(verdict).message)

    # Cancelling

    async def _cancel(self, principal: str, order_id: str) -> Order:
        await self._settle((await self._accounts.admit(principal)).name)
        order = await self._records.write(self._record_cancel, principal, order_id)
        if order.final:
            return order
        try:
            await self._venue.send_cancellation(order)
            return await self._venue.refresh(order)
        except (OutcomeUnknown, BrokerUnavailable) as error:
            if order.state is OrderState.HELD:
                raise  # nothing is recorded that the engine could retry
            log.warning("cancelling %s: %s; the engine will retry", order.id, error)
            return order

    def _record_cancel(self, journal: Journal, principal: str, order_id: str) -> Order:
        account = self._accounts.open(journal.view, principal)
        order = queries.order(journal.view, order_id)
        if order is None or order.principal != principal or order.account != account.name:
            raise NoSuchOrder(f"no order {order_id[:80]!r}", order_id=order_id[:80])
        if order.state in FINAL:
            raise InvalidParameter(f"order {order.id} is {order.state} already", order_id=order.id)
        if order.state in {OrderState.PENDING, OrderState.UNKNOWN, OrderState.LOST}:
            raise InvalidParameter(
                f"order {order.id} is {order.state}: the broker is being asked what became of it; try again in a moment",
                order_id=order.id,
            )
        return self._venue.cancel(journal, order)


def proposal_of(asked: OrderRequest) -> Proposal:
    """Returns what the gate judges of an order."""
    price = asked.limit_price or asked.stop_price
    limited = asked.limit_price is not None
    return Proposal(asked.instrument.symbol, asked.side, asked.quantity, price, limited, asked.reduce_only)


def _check_against(asked: OrderRequest, price: Price | None) -> None:
    """Raise `InvalidParameter` if the price is too small for fills, or a market order's exits are on its wrong side."""
    if price is not None and (objection := too_small(asked.instrument, price.value)):
        raise InvalidParameter(objection)
    if asked.kind is not OrderKind.MARKET or price is None:
        return
    sign = asked.side.sign
    for name, exit_price, way in (("stop_loss", asked.stop_loss, -1), ("take_profit", asked.take_profit, 1)):
        if exit_price is not None and (exit_price - price.value) * sign * way <= 0:
            side = "above" if sign * way > 0 else "below"
            raise InvalidParameter(f"{name} must be {side} the last price, {amounts.text(price.value)}")


def _log_failure(task: asyncio.Task[Any]) -> None:
    """Log why an order was not placed or cancelled if its caller was cancelled and does not learn it."""
    if not task.cancelled() and (error := task.exception()):
        log.warning("failed after its caller had stopped waiting: %s", error)


def _first_answer(order: Order) -> Order:
    """Returns the order of the first request, or raises the error that it got."""
    if order.state is OrderState.REJECTED:
        said = order.reason or "it was rejected"
        first = f"client_order_id {order.client_order_id} was refused at {iso(order.placed_at)}"
        raise RiskRefused(f"{said} ({first}; use a new one to try again)", order_id=order.id)
    return order
