"""portfolio: positions, balance, and the check of a trade against the risk rules (TradeStream's portfolio-mcp)."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from openbell.market.digits import average
from openbell.market.errors import (
    CallTimeout,
    DataError,
    InputError,
    InsufficientFunds,
    InvalidParameter,
    InvalidSymbol,
    Refused,
    StoreError,
    StoreTimeout,
    UnknownSymbol,
)
from openbell.market.instruments import Instrument, parse
from openbell.market.nearest import check_one_of
from openbell.market.sessions import phase
from openbell.protocol.call import Basis, Call, Result, on_prices
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.numbers import Computed, Exact
from openbell.protocol.result_fields import (
    From,
    Opened,
    Pagination,
    Stated,
    StatedOfAccount,
    pagination,
    shaped,
    stated,
    stated_of_account,
)
from openbell.protocol.service import Service
from openbell.protocol.tool import Absent, Arguments, NoArguments, Reads, Tool, without_default
from openbell.trading import amounts
from openbell.trading.accounts import AccountNotFound
from openbell.trading.amounts import ZERO
from openbell.trading.broker import BrokerError
from openbell.trading.orders import Order, Side
from openbell.trading.request import InvalidSide, InvalidSize, refuse_foreign_money

if TYPE_CHECKING:
    from openbell.desk.orders.portfolio import ValuedHolding

_EXITS = 5
"""Working orders that a position lists."""
SIDES = {"BUY": Side.BUY, "SELL": Side.SELL}
_ANY = (Refused, AccountNotFound, StoreError, CallTimeout)


class ExitShape(TypedDict):
    """A working order that would reduce a position."""

    order_id: Annotated[str, From("id")]
    type: Annotated[str, From("kind")]
    price: Annotated[Exact | None, Field(description="its limit or stop; null at the market")]
    size: Annotated[Exact, From("remaining")]
    distance_pct: Annotated[Computed | None, Field(description="of its price from the current one")]
    pnl: Annotated[Exact | None, Field(description="profit or loss of its size at its price, before costs")]


class PositionShape(Opened):
    """One open position."""

    symbol: Annotated[str, From("position.symbol")]
    side: Literal["LONG", "SHORT"]
    size: Exact
    entry_price: Exact
    current_price: Annotated[
        Exact | None, From("price.value"), Field(description="null if there is none; note says why")
    ]
    price_time: Annotated[str | None, From("price.end"), Field(description="when the bar of that price ended")]
    session: Annotated[str, Field(description="of its market")]
    unrealized_pnl: Annotated[Exact | None, From("unrealised"), Field(description="null as current_price")]
    unrealized_pnl_pct: Annotated[Computed | None, From("return_pct"), Field(description="of what was paid")]
    market_value: Annotated[Exact | None, From("value"), Field(description="size times price, negative if short")]
    weight_pct: Annotated[Computed | None, Field(description="of the account's equity")]
    exits: Annotated[list[ExitShape], Field(description="stops, targets and other orders that reduce it, at most 5")]
    note: NotRequired[Annotated[str, From("note")]]


class PositionPage(StatedOfAccount):
    """Positions, the last opened first."""

    items: list[PositionShape]
    pagination: Pagination
    total_market_value: Annotated[Exact | None, Field(description="of all pages; null if a price is missing")]
    total_unrealized_pnl: Exact | None


class BalanceShape(StatedOfAccount):
    """The account's money."""

    total_balance: Annotated[
        Exact | None,
        From("total"),
        Field(description="cash and what the positions are worth; null if one has no price"),
    ]
    available_balance: Annotated[Exact, From("available"), Field(description="what new positions may still tie up")]
    margin_used: Annotated[Exact | None, Field(description="null as total_balance")]
    unrealized_pnl: Annotated[Exact | None, From("unrealised"), Field(description="null as total_balance")]
    cash: Exact
    started_with: Annotated[Exact, Field(description="cash when the account began")]
    total_return_pct: Annotated[Computed | None, Field(description="of the balance since then")]
    realized_pnl: Annotated[Exact, From("realised"), Field(description="of closed positions, before fees")]
    fees_paid: Annotated[Exact, From("fees")]
    day_pnl: Annotated[Exact | None, From("day_profit"), Field(description="change of the balance since 00:00 UTC")]
    day_pnl_pct: Annotated[Computed | None, From("day_return_pct")]
    daily_loss_left: Annotated[
        Exact | None,
        From("loss_left"),
        Field(description="what may still be lost today before nothing is opened; null without a limit"),
    ]
    open_positions: Annotated[int, From("positions")]
    working_orders: int
    halted: Annotated[str | None, Field(description="why nothing may be opened (openbell halt); null if not halted")]
    price_time: Annotated[str | None, From("end"), Field(description="when the bar of the oldest price ended")]
    note: NotRequired[Annotated[str, From("note")]]


class VerdictShape(Stated):
    """The verdict of the risk gate."""

    valid: Annotated[bool, From("verdict.valid")]
    reason: Annotated[str, Field(description="why not; empty if valid")]
    rule: NotRequired[Annotated[str, Field(description="the rule that refuses")]]
    value: NotRequired[Annotated[str, Field(description="what the trade would reach, of what the rule limits")]]
    limit: NotRequired[Annotated[str, Field(description="of the rule")]]
    setting: NotRequired[Annotated[str, Field(description="that holds the limit")]]
    max_size: Annotated[Exact, From("verdict.max_size"), Field(description="the largest size that would pass")]
    risk_score: Annotated[
        Computed, From("verdict.risk_score"), Field(description="0 to 1: how much of the tightest limit it uses")
    ]
    price: Annotated[Exact | None, Field(description="that it was judged at: the limit, or the last price")]
    trade_value: Annotated[Exact | None, From("value"), Field(description="size times price")]
    costs: Annotated[Exact | None, Field(description="fees and slippage that it would pay")]
    equity_pct: Annotated[Computed | None, Field(description="of the balance that its value is")]
    position_after: Annotated[Exact | None, Field(description="if it fills; negative if short")]


class PositionsInput(Arguments):
    """Input of get_positions."""

    symbol: Annotated[
        str | Absent, Field(description="Optional filter by symbol", json_schema_extra=without_default)
    ] = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    offset: Annotated[int, Field(ge=0, le=100_000_000)] = 0


class TradeInput(Arguments):
    """Input of validate_trade."""

    symbol: str
    side: Annotated[str, Field(json_schema_extra={"enum": list(SIDES)})]
    size: float
    price: Annotated[
        float | Absent, Field(description="a limit; the market's if left out", json_schema_extra=without_default)
    ] = None


async def get_positions(call: Call, given: PositionsInput) -> Result[PositionPage]:
    """Return the open positions, the last opened first."""
    wanted = None if given.symbol is None else parse(given.symbol).symbol
    holdings = await call.desk.trading.portfolio.holdings(call.principal)
    found = [each for each in holdings if wanted in {None, each.position.symbol}]
    items = [
        shaped(
            PositionShape,
            each,
            side="LONG" if each.position.quantity > 0 else "SHORT",
            session=phase(parse(each.position.symbol), call.at),
            weight_pct=each.weight and each.weight * 100,
            exits=[_exit(order, each) for order in each.exits[:_EXITS]],
        )
        for each in found[given.offset : given.offset + given.limit]
    ]
    page: PositionPage = {
        "items": items,
        "pagination": pagination(given.offset, given.limit, len(found)),
        "total_market_value": _total(each.value for each in found),
        "total_unrealized_pnl": _total(each.unrealised for each in found),
        **stated_of_account(call),
    }
    return Result(page, on_prices((each.price for each in holdings), next((h.note for h in holdings if h.note), None)))


def _exit(order: Order, holding: ValuedHolding) -> ExitShape:
    price, level = holding.price, order.limit_price if order.stop_price is None else order.stop_price
    paid, closed = holding.position.average_price, -order.side.sign * order.remaining
    away = None if level is None or price is None else amounts.share((level - price.value) * 100, price.value)
    pnl = None if level is None else average((level - paid) * closed)
    return shaped(ExitShape, order, price=level, distance_pct=away, pnl=pnl)


def _total(values: Iterable[Decimal | None]) -> float | None:
    """Returns the sum; None if a value is not known."""
    found = list(values)
    return None if None in found else amounts.number(sum((each for each in found if each is not None), ZERO))


async def get_balance(call: Call, _given: NoArguments) -> Result[BalanceShape]:
    """Return the account's money."""
    balance = await call.desk.trading.portfolio.balance(call.principal)
    halted = balance.halted and str(balance.halted)
    shown = shaped(BalanceShape, balance, halted=halted, **stated_of_account(call))
    return Result(shown, Basis(newest=balance.end, note=balance.note))


async def validate_trade(call: Call, given: TradeInput) -> Result[VerdictShape]:
    """Return the risk gate's verdict. Raises `InsufficientFunds` if the account cannot pay for the trade."""
    from openbell.desk.orders.gate import details_of, reason_of, refusal

    check_one_of("side", given.side.upper(), SIDES, InvalidSide)
    side = SIDES[given.side.upper()]
    try:
        size = amounts.quantity(given.size, "size")
    except InvalidParameter as error:
        raise InvalidSize(error.message, size=given.size) from None
    instrument = _tradable(given.symbol)
    price = None if given.price is None else amounts.price(given.price)
    checked = await call.desk.trading.portfolio.validate(call.principal, instrument, side, size, price)
    verdict = checked.verdict
    if verdict.rule == "balance":
        raise refusal(verdict)
    shown = shaped(VerdictShape, checked, reason=reason_of(verdict), **details_of(verdict), **stated(call, instrument))
    return Result(shown, Basis(note=amounts.rounding_note(given.size, size, "size")))


def _tradable(symbol: str) -> Instrument:
    """Returns the instrument. Raises `InvalidSymbol`, as the contract demands, if the account cannot hold it."""
    instrument = parse(symbol)
    try:
        refuse_foreign_money(instrument)
    except InvalidParameter as error:
        raise InvalidSymbol(symbol, error.message) from None
    return instrument


TOOLS = (
    Tool(
        name="get_positions",
        description="Get current open positions: value, unrealized profit, share of the account, stops and targets.",
        arguments=PositionsInput,
        returns=PositionPage,
        handler=get_positions,
        toolset="portfolio",
        reads=Reads.ACCOUNT,
        errors=(*_ANY, InvalidSymbol),
    ),
    Tool(
        name="get_balance",
        description=(
            "Get account balance and available margin: equity, cash, margin used, profit (unrealized, realized, of the day, "
            "since the start) and fees, in USD; whether trading is halted."
        ),
        arguments=NoArguments,
        returns=BalanceShape,
        handler=get_balance,
        toolset="portfolio",
        reads=Reads.ACCOUNT,
        errors=_ANY,
    ),
    Tool(
        name="validate_trade",
        description=(
            "Validate a proposed trade against risk rules: whether it would pass, why not, the largest size that would, "
            "and what it costs. Places nothing."
        ),
        arguments=TradeInput,
        returns=VerdictShape,
        handler=validate_trade,
        toolset="portfolio",
        reads=Reads.ACCOUNT,
        errors=(*_ANY, InvalidSymbol, InvalidSide, InvalidSize, InsufficientFunds),
    ),
)


SERVICE = Service(
    name="portfolio-mcp",
    command="portfolio",
    title="Openbell portfolio",
    instructions="Money is in USD. validate_trade asks the same risk gate as every order and changes nothing.",
    tools=TOOLS,
    opens_records=True,
    dialect=EnvelopeDialect(
        {
            InvalidSymbol: "INVALID_SYMBOL",
            UnknownSymbol: "INVALID_SYMBOL",
            InvalidSide: "INVALID_SIDE",
            InvalidSize: "INVALID_SIZE",
            InputError: "INVALID_PARAMETER",
            InsufficientFunds: "INSUFFICIENT_BALANCE",
            AccountNotFound: "ACCOUNT_NOT_FOUND",
            DataError: "NOT_FOUND",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            BrokerError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
        }
    ),
)
