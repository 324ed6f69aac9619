"""The types of chartgen's trading results. Amounts are decimal strings, so that nothing is rounded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from openbell.market.clock import iso
from openbell.market.digits import average, significant
from openbell.market.errors import InvalidSymbol
from openbell.market.foreign_text import without_invisible
from openbell.market.instruments import parse
from openbell.protocol.numbers import Exact
from openbell.protocol.result_fields import Foreign, Opened, Pagination, Precision, StatedOfAccount, mark
from openbell.trading import amounts
from openbell.trading.alerts import Alert, AlertProgress
from openbell.trading.fills import FillTime
from openbell.trading.orders import Order

_LEFT_OUT = {"time_in_force": "gtc", "filled_quantity": "0", "fees": "0", "role": "single"}
"""The values of fields that a list leaves out."""
_ONLY_IN_DETAIL = {"account", "updated_at", "filled_at", "filled_at_precision"}
"""Fields that a list leaves out whatever their value, so that 20 orders stay within 1,500 tokens."""
_SYMBOLS = ("ticker", "symbol")
_PRICES = ("price", "close", "value")


class OrderShape(TypedDict):
    """One order."""

    order_id: str
    client_order_id: str | None
    symbol: Annotated[str, Field(description="canonical, as in positions")]
    requested_symbol: Annotated[str, Field(description="as the caller wrote it")]
    side: str
    type: str
    quantity: str
    price: str | None
    stop_price: str | None
    take_profit: str | None
    stop_loss: str | None
    time_in_force: str
    status: str
    filled_quantity: str
    average_price: str | None
    fees: str
    filled_at: Annotated[
        str | None, Field(description="its last fill; on paper, the open of the minute that filled it")
    ]
    filled_at_precision: NotRequired[Precision]
    reason: str | None
    role: Annotated[str, Field(description="single, entry, take_profit or stop_loss")]
    parent_id: str | None
    placed_at: str
    updated_at: Annotated[str, Field(description="when its last change was recorded; on paper, when a minute closed")]
    account: Literal["paper", "live"]
    note: NotRequired[Annotated[str, Field(description="how the order differs from what was asked")]]


class ListedOrder(TypedDict):
    """One order of a list. Fields that are null, 0 or the default are left out, unless detail is asked for."""

    order_id: str
    client_order_id: NotRequired[str | None]
    symbol: str
    requested_symbol: NotRequired[Annotated[str, Field(description="symbol if left out")]]
    side: str
    type: str
    quantity: str
    price: NotRequired[str | None]
    stop_price: NotRequired[str | None]
    take_profit: NotRequired[str | None]
    stop_loss: NotRequired[str | None]
    time_in_force: NotRequired[Annotated[str, Field(description="gtc if left out")]]
    status: str
    filled_quantity: NotRequired[Annotated[str, Field(description="0 if left out")]]
    average_price: NotRequired[str | None]
    fees: NotRequired[Annotated[str, Field(description="0 if left out")]]
    filled_at: NotRequired[Annotated[str | None, Field(description="its last fill; on paper, the open of its minute")]]
    filled_at_precision: NotRequired[Precision]
    reason: NotRequired[str | None]
    role: NotRequired[Annotated[str, Field(description="single if left out, entry, take_profit or stop_loss")]]
    parent_id: NotRequired[str | None]
    placed_at: str
    updated_at: NotRequired[str]
    account: NotRequired[Literal["paper", "live"]]


def listed_order(order: OrderShape) -> ListedOrder:
    """Returns an order as a list shows it: without what is null, 0 or the default, and without times of changes."""
    kept = {
        name: value
        for name, value in order.items()
        if value is not None and _LEFT_OUT.get(name) != value and name not in _ONLY_IN_DETAIL
    }
    if order["requested_symbol"] == order["symbol"]:
        del kept["requested_symbol"]
    return cast("ListedOrder", kept)


class OrdersResponse(StatedOfAccount):
    """Orders, newest first."""

    orders: list[ListedOrder]
    pagination: Pagination
    cursor: Annotated[str | None, Field(description="pass it on for the next page; null after the last one")]
    account: Literal["paper", "live"]


class HeldPositionShape(Opened):
    """One open position."""

    symbol: str
    side: Literal["long", "short"]
    quantity: str
    entry_price: str
    current_price: Annotated[str | None, Field(description="null if there is none; note says why")]
    price_time: Annotated[str | None, Field(description="when the bar of that price ended")]
    session: Annotated[str, Field(description="of its market")]
    unrealized_pnl: Annotated[str | None, Field(description="null as current_price")]
    note: NotRequired[str]


class PositionsResponse(StatedOfAccount):
    """Open positions."""

    positions: list[HeldPositionShape]
    account: Literal["paper", "live"]


class BalanceResponse(StatedOfAccount):
    """The account's money, in USD."""

    total_balance: Annotated[str | None, Field(description="null if a position has no price")]
    available_balance: str
    margin_used: str | None
    cash: str
    unrealized_pnl: str | None
    realized_pnl: str
    fees: str
    price_time: Annotated[str | None, Field(description="when the bar of the oldest price ended")]
    account: Literal["paper", "live"]
    note: NotRequired[str]


class ConditionShape(TypedDict):
    """The condition of an alert, as `Alert.condition` writes it in every result and push; set_alert reads it too."""

    type: str
    threshold: NotRequired[Annotated[Exact, Field(description="of price_above and price_below")]]
    indicator: NotRequired[str]
    signal: NotRequired[str]


class NotificationShape(TypedDict):
    """An alert that fired."""

    alert_id: str
    symbol: str
    interval: str
    condition: ConditionShape
    value: Exact
    triggered_at: str


class AlertShape(TypedDict):
    """One alert."""

    alert_id: str
    symbol: str
    interval: str
    condition: ConditionShape
    status: str
    set_at: str
    last_value: NotRequired[Annotated[Exact, Field(description="the last price")]]
    last_bar_at: NotRequired[Annotated[str, Field(description="when the bar of that price ended")]]
    distance: NotRequired[Annotated[Exact, Field(description="to the threshold: above 0 if the price must rise")]]
    reason: NotRequired[Annotated[str, Field(description="why it has not fired")]]
    fired_at: NotRequired[Annotated[str, Field(description="when the bar that fired it closed")]]
    value: NotRequired[Annotated[Exact, Field(description="the value at which it fired")]]


class AlertsResponse(TypedDict):
    """Active alerts, oldest first; then fired ones, the latest first."""

    alerts: list[AlertShape]
    fired_left_out: NotRequired[Annotated[int, Field(description="older fired ones that are not listed")]]


class NotificationsResponse(TypedDict):
    """Alerts that fired, oldest first."""

    notifications: list[NotificationShape]
    cursor: Annotated[int | None, Field(description="of the newest one here; pass it on to acknowledge it")]
    remaining: Annotated[int, Field(description="unseen ones after these")]
    received: NotRequired[Annotated[list[ReceivedShape], Field(description="requests of inbound webhooks")]]


class FilterShape(TypedDict):
    """The filter of a subscription."""

    symbols: list[str]
    alert_types: list[str]
    created_at: str


class SubscribedResponse(TypedDict):
    """The new subscription."""

    subscribed: bool
    subscription: FilterShape


class SubscriptionsResponse(TypedDict):
    """The subscription, if there is one, and the number of notifications in its queue."""

    subscriptions: list[FilterShape]
    queued: int


class UnsubscribedPushResponse(TypedDict):
    """Whether a subscription was ended."""

    unsubscribed: bool


def text(value: Decimal | None) -> str | None:
    """Returns an amount as decimal text, None for None."""
    return None if value is None else amounts.text(value)


def quotient(value: Decimal | None) -> str | None:
    """Returns an average or another quotient as decimal text, None for None."""
    return None if value is None else amounts.text(average(value))


def order_shape(order: Order, account: Any, reason: str | None, filled: FillTime | None) -> OrderShape:
    """Returns an order as the tools return it; `filled` is the time of its last fill."""
    shape: OrderShape = {
        "order_id": order.id,
        "client_order_id": order.client_order_id,
        "symbol": order.symbol,
        "requested_symbol": order.spelling,
        "side": order.side.value,
        "type": order.kind.value,
        "quantity": amounts.text(order.quantity),
        "price": text(order.limit_price),
        "stop_price": text(order.stop_price),
        "take_profit": text(order.take_profit),
        "stop_loss": text(order.stop_loss),
        "time_in_force": order.time_in_force.value,
        "status": order.state.value,
        "filled_quantity": amounts.text(order.filled),
        "average_price": quotient(order.average_price),
        "fees": amounts.text(order.fees),
        "filled_at": None if filled is None else iso(filled.at),
        "reason": reason,
        "role": order.role.value,
        "parent_id": order.parent,
        "placed_at": iso(order.placed_at),
        "updated_at": iso(order.updated_at),
        "account": account,
    }
    if filled is not None and not filled.exact:
        shape["filled_at_precision"] = "minute"
    return shape


def alert_shape(alert: Alert) -> AlertShape:
    """Returns an alert as the tools return it."""
    shape: AlertShape = {
        "alert_id": alert.id,
        "symbol": alert.spelling,
        "interval": alert.interval,
        "condition": cast("ConditionShape", alert.condition),
        "status": alert.state.value,
        "set_at": iso(alert.set_at),
    }
    if alert.fired_at is not None and alert.value is not None:
        shape["fired_at"] = iso(alert.fired_at)
        shape["value"] = alert.value if alert.type.of_price else significant(alert.value)
    return shape


def listed_alert(alert: Alert, progress: AlertProgress) -> AlertShape:
    """Returns an active alert with the reason why it has not fired."""
    shape = alert_shape(alert)
    if progress.price is not None:
        shape["last_value"] = amounts.number(progress.price.value)
        shape["last_bar_at"] = iso(progress.price.end)
    if progress.distance is not None:
        shape["distance"] = amounts.number(progress.distance)
    shape["reason"] = progress.reason
    return shape


class ReceivedField(TypedDict):
    """One field of a request, as its sender wrote it."""

    name: str
    value: str | bool | Exact | None


class ReceivedShape(Foreign):
    """What a sender outside this desk has sent to an inbound webhook."""

    id: str
    received_at: str
    symbol: NotRequired[Annotated[str, Field(description="that the sender names, if it is one")]]
    price: NotRequired[Annotated[Exact, Field(description="that the sender names")]]
    fields: list[ReceivedField]


def received_shape(entry: Mapping[str, Any]) -> ReceivedShape:
    """Returns an entry of the inbox that an inbound webhook has made."""
    fields: list[ReceivedField] = [
        {"name": without_invisible(each["name"]), "value": _value(each["value"])} for each in entry["fields"]
    ]
    said = {each["name"]: each["value"] for each in fields}
    shape: ReceivedShape = {
        "id": entry["alert_id"],
        "received_at": entry["triggered_at"],
        "fields": fields,
    }
    mark(shape, f"webhook {entry['webhook']}")
    if symbol := next((found for name in _SYMBOLS if (found := _symbol(said.get(name)))), None):
        shape["symbol"] = symbol
    price = next((number for name in _PRICES if (number := _number(said.get(name))) is not None), None)
    if price is not None:
        shape["price"] = price
    return shape


def _value(value: Any) -> Any:
    return without_invisible(value) if isinstance(value, str) else value


def _symbol(value: Any) -> str | None:
    """Returns the symbol that a text is; None if it is none: any other text stays in its field."""
    try:
        return parse(value).symbol if isinstance(value, str) else None
    except InvalidSymbol:
        return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
