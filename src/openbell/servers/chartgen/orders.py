"""place_order, cancel_order, get_orders, get_positions and get_balance."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from openbell.desk.bars.call_deadlines import BarDeadline, during
from openbell.market.errors import (
    DataError,
    InvalidParameter,
    InvalidSymbol,
    NoSuchOrder,
    OrderError,
    Refused,
    StoreError,
    UnknownSymbol,
)
from openbell.market.instruments import Instrument, parse
from openbell.market.nearest import check_one_of
from openbell.market.sessions import phase
from openbell.protocol.call import Basis, Call, Result, on_bars, on_prices
from openbell.protocol.result_fields import pagination, shaped, stated_of_account
from openbell.protocol.session import Scope
from openbell.protocol.tool import Arguments, Effect, NoArguments, Reads, Tool
from openbell.servers.chartgen import trading_shapes as shapes
from openbell.servers.chartgen.shapes import choice
from openbell.trading import amounts
from openbell.trading.accounts import AccountNotFound
from openbell.trading.broker import BrokerError
from openbell.trading.orders import Force, Order, OrderKind, Side
from openbell.trading.request import request

SIDES = [each.value for each in Side]
KINDS = [each.value for each in OrderKind]
FORCES = [each.value for each in Force]
FILTERS = ("open", "all")
Quantity = Annotated[float | str, Field(description="number or decimal text")]
Price = Annotated[float | str | None, Field(description="number or decimal text")]


class OrderInput(Arguments):
    """Input of place_order."""

    symbol: str
    side: Annotated[str, choice(SIDES)]
    type: Annotated[str, choice(KINDS)]
    quantity: Quantity
    price: Annotated[float | str | None, Field(description="limit; for limit and stop_limit")] = None
    stop_price: Annotated[float | str | None, Field(description="for stop and stop_limit")] = None
    take_profit: Annotated[float | str | None, Field(description="exit with a profit at this price")] = None
    stop_loss: Annotated[float | str | None, Field(description="exit with a loss at this price")] = None
    time_in_force: Annotated[str, choice(FORCES)] = "gtc"
    client_order_id: Annotated[
        str | None, Field(max_length=128, description="your own id: the same again returns the first order")
    ] = None
    reduce_only: Annotated[
        bool, Field(description="only make a position smaller; refused if there is less to reduce")
    ] = False


class CancelOrderInput(Arguments):
    """Input of cancel_order."""

    order_id: Annotated[str, Field(max_length=200)]


class OrdersInput(Arguments):
    """Input of get_orders."""

    filter: Annotated[str, choice(FILTERS)] = "all"
    limit: Annotated[int, Field(ge=1, le=1000)] = 20
    offset: Annotated[int, Field(ge=0, le=100_000_000, description="skip the newest so many")] = 0
    cursor: Annotated[
        Annotated[str, Field(max_length=200)] | SkipJsonSchema[int] | None,
        Field(description="of the page before; orders placed or closed meanwhile move no page"),
    ] = None
    detail: Annotated[bool, Field(description="all fields, also empty ones and when each was filled")] = False


async def place_order(call: Call, given: OrderInput) -> Result[shapes.OrderShape]:
    """Check an order against the risk rules, record it and send it to the venue."""
    side, kind, force = (each.lower() for each in (given.side, given.type, given.time_in_force))
    for name, value, names in (("side", side, SIDES), ("type", kind, KINDS), ("time_in_force", force, FORCES)):
        check_one_of(name, value, names)
    instrument = await _found(call, given.symbol)
    asked = request(
        instrument,
        Side(side),
        OrderKind(kind),
        given.quantity,
        time_in_force=Force(force),
        price=given.price,
        stop_price=given.stop_price,
        take_profit=given.take_profit,
        stop_loss=given.stop_loss,
        client_order_id=given.client_order_id,
        spelling=given.symbol,
        reduce_only=given.reduce_only,
    )
    order = await call.desk.trading.orders.place(call.principal, asked)
    (shown,) = await _shown(call, [order])
    if note := amounts.rounding_note(given.quantity, asked.quantity):
        shown["note"] = note
    return Result(shown)


async def _found(call: Call, symbol: str) -> Instrument:
    """Returns the instrument of a symbol. If bars cannot be read, the risk gate accepts only orders that reduce."""
    try:
        async with during(BarDeadline.FIND):
            return await call.desk.bars.find(symbol)
    except StoreError:
        return parse(symbol)


async def cancel_order(call: Call, given: CancelOrderInput) -> Result[shapes.OrderShape]:
    """Cancel one of the caller's orders."""
    if not given.order_id.isprintable():  # PostgreSQL refuses a query with the character 0
        raise NoSuchOrder(f"no order {given.order_id[:80]!r}")
    order = await call.desk.trading.orders.cancel(call.principal, given.order_id)
    return Result((await _shown(call, [order]))[0], on_bars(parse(order.symbol)))


async def _shown(call: Call, orders: list[Order]) -> list[shapes.OrderShape]:
    """Returns the orders, each with its last fill, and with the reason why it is not filled yet, if it waits."""
    reasons = await call.desk.trading.reasons.of(orders)
    fills = await call.desk.trading.orders.last_fills(orders)
    account = call.desk.account
    return [shapes.order_shape(each, account, reasons[each.id], fills.get(each.id)) for each in orders]


async def get_orders(call: Call, given: OrdersInput) -> Result[shapes.OrdersResponse]:
    """Return the caller's orders, newest first."""
    check_one_of("filter", given.filter, FILTERS)
    if given.cursor is not None and given.offset:
        raise InvalidParameter("give cursor or offset, not both")
    orders, open_only = call.desk.trading.orders, given.filter == "open"
    cursor = None if given.cursor is None else str(given.cursor)
    found = await orders.listing(
        call.principal, open_only=open_only, limit=given.limit, offset=given.offset, cursor=cursor
    )
    rows = await _shown(call, found.orders)
    page = pagination(found.offset, given.limit, found.total)
    shown: shapes.OrdersResponse = {
        "orders": [each if given.detail else shapes.listed_order(each) for each in rows],
        "pagination": page,
        "cursor": found.last if page["has_more"] else None,
        "account": call.desk.account,  # type: ignore[typeddict-item]
        **stated_of_account(call),
    }
    return Result(shown)


async def get_positions(call: Call, _given: NoArguments) -> Result[shapes.PositionsResponse]:
    """Return the open positions."""
    holdings = await call.desk.trading.portfolio.holdings(call.principal)
    positions = [
        shaped(
            shapes.HeldPositionShape,
            each,
            side="long" if each.position.quantity > 0 else "short",
            session=phase(parse(each.position.symbol), call.at),
        )
        for each in holdings
    ]
    shown: shapes.PositionsResponse = {
        "positions": positions,
        "account": call.desk.account,  # type: ignore[typeddict-item]
        **stated_of_account(call),
    }
    return Result(shown, on_prices((each.price for each in holdings), next((h.note for h in holdings if h.note), None)))


async def get_balance(call: Call, _given: NoArguments) -> Result[shapes.BalanceResponse]:
    """Return the account's money."""
    balance = await call.desk.trading.portfolio.balance(call.principal)
    shown = shaped(shapes.BalanceResponse, balance, account=call.desk.account, **stated_of_account(call))
    return Result(shown, Basis(newest=balance.end, note=balance.note))


_ANY = (Refused, AccountNotFound, StoreError)

TOOLS = (
    Tool(
        "place_order",
        "Place a market, limit, stop or stop_limit order; with take_profit and stop_loss, a bracket. Every order passes "
        "the risk rules. Give a client_order_id, so that a retry can never place it twice.",
        OrderInput,
        shapes.OrderShape,
        place_order,
        toolset="trading",
        reads=Reads.ACCOUNT,
        scope=Scope.TRADE,
        effect=Effect.DESTRUCTIVE,
        idempotent=False,
        open_world=True,
        errors=(*_ANY, InvalidSymbol, UnknownSymbol, DataError, OrderError, BrokerError),
    ),
    Tool(
        "cancel_order",
        "Cancel an open order.",
        CancelOrderInput,
        shapes.OrderShape,
        cancel_order,
        toolset="trading",
        reads=Reads.ACCOUNT,
        scope=Scope.TRADE,
        effect=Effect.DESTRUCTIVE,
        open_world=True,
        errors=(*_ANY, OrderError),
    ),
    Tool(
        "get_orders",
        "Your orders, newest first, 20 by default. Fields that are null, 0 or the default are left out without detail.",
        OrdersInput,
        shapes.OrdersResponse,
        get_orders,
        toolset="trading",
        reads=Reads.ACCOUNT,
        scope=Scope.TRADE,
        errors=_ANY,
    ),
    Tool(
        "get_positions",
        "Open positions with unrealized profit.",
        NoArguments,
        shapes.PositionsResponse,
        get_positions,
        toolset="trading",
        reads=Reads.ACCOUNT,
        scope=Scope.TRADE,
        errors=_ANY,
    ),
    Tool(
        "get_balance",
        "Equity, available balance, cash, profit and fees, in USD.",
        NoArguments,
        shapes.BalanceResponse,
        get_balance,
        toolset="trading",
        reads=Reads.ACCOUNT,
        scope=Scope.TRADE,
        errors=_ANY,
    ),
)
