"""Alpaca's JSON: the order that is sent, and the orders, fills and errors that come back.

Amounts are sent and received as decimal text. Reading JSON of another shape raises `MalformedReply`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from openbell.market.errors import InvalidParameter, InvalidSymbol
from openbell.market.foreign_text import one_visible_line
from openbell.market.instruments import AssetClass, parse
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.broker import BrokerExecution, BrokerRefused
from openbell.trading.orders import Force, Order, OrderKind, Role, Side

LONGEST_ID = 128
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_LONGEST_MESSAGE = 200
"""How many characters of Alpaca's messages are kept."""


class MalformedReply(Exception):
    """JSON that does not follow Alpaca's protocol; the text names the fault."""


@dataclass(frozen=True, slots=True)
class VendorOrder:
    """An order as Alpaca returns it."""

    id: str
    client_order_id: str
    status: str
    role: Role | None
    """Its role if it is a leg of a bracket: take profit for a limit order, stop loss for a stop order."""
    quantity: Decimal | None
    filled: Decimal
    replaced_by: str | None
    legs: tuple[VendorOrder, ...]


_LARGEST_FEE = Decimal("0.1")
"""The largest part of a position in coins that fees can have taken: 0.25 % of each purchase, also of what was sold since."""


def closes_coins(order: Order) -> bool:
    """Returns True if an order can only reduce a position in coins."""
    return order.side is Side.SELL and not order.opening and "/" in order.symbol


def sold_of(order: Order, available: Decimal | None) -> Decimal:
    """Returns the quantity to send for an order that closes coins, of which the account has `available`.

    Alpaca takes its fee in coins and does not report it in fills, so that the account has less than the books.
    """
    least = order.quantity * (1 - _LARGEST_FEE)
    return available if available is not None and least <= available < order.quantity else order.quantity


def body_of(order: Order, quantity: Decimal | None = None) -> dict[str, Any]:
    """The request body for an order, or for a smaller quantity of it. Raises `BrokerRefused` for an order that Alpaca
    does not support.
    """
    _check(order)
    body: dict[str, Any] = {
        "symbol": order.symbol,
        "qty": amounts.text(order.quantity if quantity is None else quantity),
        "side": str(order.side),
        "type": str(order.kind),
        "time_in_force": str(order.time_in_force),
        "client_order_id": order.id,
        "extended_hours": False,
    }
    if order.limit_price is not None:
        body["limit_price"] = amounts.text(order.limit_price)
    if order.stop_price is not None:
        body["stop_price"] = amounts.text(order.stop_price)
    if order.take_profit is not None:
        body["take_profit"] = {"limit_price": amounts.text(order.take_profit)}
    if order.stop_loss is not None:
        body["stop_loss"] = {"stop_price": amounts.text(order.stop_loss)}
    if bracket(order):
        # The class `bracket` needs both exits, `oto` one.
        body["order_class"] = "oto" if order.take_profit is None or order.stop_loss is None else "bracket"
    return body


def bracket(order: Order) -> bool:
    """Returns True if the order has exits."""
    return order.take_profit is not None or order.stop_loss is not None


def _check(order: Order) -> None:
    if order.role.exit:
        raise BrokerRefused("Alpaca accepts the exits of a bracket only together with their entry")
    if not 0 < len(order.id) <= LONGEST_ID:
        raise BrokerRefused(
            f"Alpaca accepts order ids of at most {LONGEST_ID} characters: this one has {len(order.id)}"
        )
    try:
        asset_class = parse(order.symbol).asset_class
    except InvalidSymbol as error:
        raise BrokerRefused(error.message) from None
    if asset_class is AssetClass.FOREX:
        raise BrokerRefused(f"Alpaca trades US stocks and crypto, not {order.symbol}")
    if asset_class is AssetClass.CRYPTO:
        _check_crypto(order)
    elif bracket(order) and order.time_in_force is Force.DAY:
        raise BrokerRefused(
            "At Alpaca the exits of a day order end with the day too, which would leave the position without exits: "
            "use time_in_force gtc"
        )


def _check_crypto(order: Order) -> None:
    if order.time_in_force is not Force.GTC:
        raise BrokerRefused(
            f"Alpaca accepts no {order.time_in_force} orders for crypto, which trades without a close: "
            "use time_in_force gtc"
        )
    if order.kind is OrderKind.STOP:
        raise BrokerRefused("Alpaca accepts no stop orders for crypto: use a stop_limit order")
    if bracket(order):
        raise BrokerRefused(
            "Alpaca accepts no take_profit and stop_loss with crypto orders: place the exits as separate orders"
        )


def decode(body: bytes) -> Any:
    """Parse JSON, with decimal numbers as `Decimal`. Raises `MalformedReply`."""
    try:
        return json.loads(body, parse_float=Decimal, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise MalformedReply("not JSON") from None


def read_order(raw: Any, *, leg: bool = False) -> VendorOrder:
    """Read one order. Raises `MalformedReply`."""
    if not isinstance(raw, dict):
        raise MalformedReply("not an order")
    legs = raw.get("legs")
    if not isinstance(legs, list | None) or (leg and legs):
        raise MalformedReply("an order with malformed legs")
    status, client_order_id = raw.get("status"), raw.get("client_order_id")
    if not isinstance(status, str) or not isinstance(client_order_id, str):
        raise MalformedReply("an order without status or client_order_id")
    replaced_by = raw.get("replaced_by")
    return VendorOrder(
        id=_id(raw.get("id")),
        client_order_id=client_order_id,
        status=status,
        role=_role(raw),
        quantity=None if raw.get("qty") is None else number(raw["qty"]),
        filled=ZERO if raw.get("filled_qty") is None else number(raw["filled_qty"]),
        replaced_by=None if replaced_by is None else _id(replaced_by),
        legs=tuple(read_order(each, leg=True) for each in legs or ()),
    )


def read_fill(raw: Any, order_id: str) -> BrokerExecution | None:
    """Read one activity of the account; None if it is not a fill of that order. Raises `MalformedReply`."""
    if not isinstance(raw, dict):
        raise MalformedReply("not an activity")
    if raw.get("order_id") != order_id or raw.get("activity_type", "FILL") != "FILL":
        return None
    quantity, price = number(raw.get("qty")), number(raw.get("price"))
    if quantity <= 0 or price <= 0:
        raise MalformedReply("a fill without quantity or price")
    return BrokerExecution(activity_id(raw), quantity, price, _time(raw.get("transaction_time")))


def activity_id(raw: Any) -> str:
    """The id of an activity, which is also the token of the next page. Raises `MalformedReply`."""
    found = raw.get("id") if isinstance(raw, dict) else None
    if not isinstance(found, str) or not 0 < len(found) <= LONGEST_ID:
        raise MalformedReply("an activity without id")
    return found


def number(value: Any) -> Decimal:
    """Read an amount exactly. Raises `MalformedReply`."""
    if not isinstance(value, str | int | Decimal) or isinstance(value, bool):
        raise MalformedReply("an amount is missing or not a number")
    try:
        return amounts.decimal(value, "amount")
    except InvalidParameter:
        raise MalformedReply("an amount is not a number") from None


@dataclass(frozen=True, slots=True)
class Complaint:
    """An error message of Alpaca."""

    code: int | None
    message: str


def read_complaint(body: bytes, secrets: tuple[str, ...]) -> Complaint | None:
    """Read an error: its message on one line, shortened and without keys; None if it is not in Alpaca's form."""
    try:
        raw = decode(body)
    except MalformedReply:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("message"), str):
        return None
    message = one_visible_line(raw["message"])  # first: invisible characters could divide a secret
    for secret in secrets:
        message = message.replace(secret, "…")
    message = one_visible_line(" ".join(message.split()), _LONGEST_MESSAGE)
    code = raw.get("code")
    return Complaint(code if type(code) is int else None, message)


def _role(raw: Mapping[str, Any]) -> Role | None:
    kind = raw.get("type") or raw.get("order_type")
    if kind in {"stop", "stop_limit", "trailing_stop"}:
        return Role.STOP_LOSS
    return Role.TAKE_PROFIT if kind == "limit" else None


def _id(value: Any) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):  # it becomes part of an address
        raise MalformedReply("an order without id")
    return value


def _time(value: Any) -> float:
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.timestamp()
    except (TypeError, ValueError, OverflowError):
        pass
    raise MalformedReply("a fill without time")


def _no_number(text: str) -> Any:
    raise ValueError(text)
