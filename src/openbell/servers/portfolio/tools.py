"""get_positions, get_balance and validate_trade."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from openbell.market.clock import iso
from openbell.market.digits import average
from openbell.market.errors import (
    CallTimeout,
    DataError,
    InsufficientFunds,
    InvalidParameter,
    InvalidSymbol,
    Refused,
    StoreError,
)
from openbell.market.instruments import Instrument, parse
from openbell.market.nearest import did_you_mean
from openbell.market.sessions import phase
from openbell.protocol.call import Basis, Call, Result, on_prices
from openbell.protocol.opened import opened
from openbell.protocol.pages import pagination
from openbell.protocol.stated import stated, stated_of_account
from openbell.protocol.tool import Absent, Arguments, NoArguments, Reads, Tool, without_default
from openbell.servers.portfolio import shapes
from openbell.trading import amounts
from openbell.trading.accounts import AccountNotFound
from openbell.trading.errors import InvalidSide, InvalidSize
from openbell.trading.orders import Side
from openbell.trading.request import refuse_foreign_money

SIDES = {"BUY": Side.BUY, "SELL": Side.SELL}


class PositionsInput(Arguments):
    """Input of get_positions."""

    symbol: Annotated[str | Absent, Field(description="only this one", json_schema_extra=without_default)] = None
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


async def get_positions(call: Call, given: PositionsInput) -> Result[shapes.PositionPage]:
    """Return the open positions, the last opened first."""
    wanted = None if given.symbol is None else parse(given.symbol).symbol
    holdings = await call.desk.trading.portfolio.holdings(call.principal)
    found = [each for each in holdings if wanted in {None, each.position.symbol}]
    items: list[shapes.PositionShape] = [
        {
            "symbol": each.position.symbol,
            "side": "LONG" if each.position.quantity > 0 else "SHORT",
            "size": amounts.number(abs(each.position.quantity)),
            "entry_price": amounts.number(average(each.position.average_price)),
            "current_price": None if each.price is None else amounts.number(each.price.value),
            "unrealized_pnl": _number(each.unrealised),
            **opened(each.opened),
            "price_time": None if each.price is None else iso(each.price.end),
            "session": str(phase(parse(each.position.symbol), call.at)),
            **each.doubt,  # type: ignore[typeddict-item]
        }
        for each in found[given.offset : given.offset + given.limit]
    ]
    page: shapes.PositionPage = {
        "items": items,
        "pagination": pagination(given.offset, given.limit, len(found)),
        **stated_of_account(call),
    }
    return Result(page, on_prices((each.price for each in holdings), next((h.note for h in holdings if h.note), None)))


async def get_balance(call: Call, _given: NoArguments) -> Result[shapes.BalanceShape]:
    """Return the account's money."""
    balance = await call.desk.trading.portfolio.balance(call.principal)
    shown: shapes.BalanceShape = {
        "total_balance": _number(balance.total),
        "available_balance": amounts.number(balance.available),
        "margin_used": _number(balance.margin_used),
        "unrealized_pnl": _number(balance.unrealised),
        "price_time": None if balance.end is None else iso(balance.end),
        **stated_of_account(call),  # type: ignore[typeddict-item]
    }
    if balance.note:
        shown["note"] = balance.note
    return Result(shown, Basis(newest=balance.end, note=balance.note))


def _number(value: Decimal | None) -> float | None:
    """Returns an amount as a number, None for None."""
    return None if value is None else amounts.number(value)


async def validate_trade(call: Call, given: TradeInput) -> Result[shapes.VerdictShape]:
    """Return the risk gate's verdict. Raises `InsufficientFunds` if the account cannot pay for the trade."""
    from openbell.desk.trading.verdicts import details_of, reason_of, refusal

    side = SIDES.get(given.side.upper())
    if side is None:
        raise InvalidSide(f"side must be BUY or SELL{did_you_mean(given.side, SIDES)}")
    try:
        size = amounts.quantity(given.size, "size")
    except InvalidParameter as error:
        raise InvalidSize(error.message) from None
    instrument = _tradable(given.symbol)
    price = None if given.price is None else amounts.price(given.price)
    verdict = await call.desk.trading.portfolio.validate(call.principal, instrument, side, size, price)
    if verdict.rule == "balance":
        raise refusal(verdict)
    shown: shapes.VerdictShape = {
        "valid": verdict.valid,
        "reason": reason_of(verdict),
        "max_size": amounts.number(verdict.max_size),
        "risk_score": amounts.number(verdict.risk_score),
        **details_of(verdict),  # type: ignore[typeddict-item]
        **stated(call, instrument),
    }
    return Result(shown)


def _tradable(symbol: str) -> Instrument:
    """Returns the instrument. Raises `InvalidSymbol`, as the contract demands, if the account cannot hold it."""
    instrument = parse(symbol)
    try:
        refuse_foreign_money(instrument)
    except InvalidParameter as error:
        raise InvalidSymbol(symbol, error.message) from None
    return instrument


_ANY = (Refused, AccountNotFound, StoreError, CallTimeout)

TOOLS = (
    Tool(
        name="get_positions",
        description="Open positions of the account with their unrealized profit.",
        arguments=PositionsInput,
        returns=shapes.PositionPage,
        handler=get_positions,
        toolset="portfolio",
        reads=Reads.ACCOUNT,
        errors=(*_ANY, InvalidSymbol),
    ),
    Tool(
        name="get_balance",
        description="Equity, available balance, margin used and unrealized profit of the account, in USD.",
        arguments=NoArguments,
        returns=shapes.BalanceShape,
        handler=get_balance,
        toolset="portfolio",
        reads=Reads.ACCOUNT,
        errors=_ANY,
    ),
    Tool(
        name="validate_trade",
        description="Whether a trade would pass the risk rules, why not, and the largest size that would. Places nothing.",
        arguments=TradeInput,
        returns=shapes.VerdictShape,
        handler=validate_trade,
        toolset="portfolio",
        reads=Reads.ACCOUNT,
        errors=(*_ANY, InvalidSymbol, DataError, InvalidSide, InvalidSize, InsufficientFunds),
    ),
)
