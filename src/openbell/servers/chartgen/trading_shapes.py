"""The types of chartgen's trading results. Amounts are decimal strings, so that nothing is rounded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from openbell.market.digits import average, significant
from openbell.market.errors import InvalidSymbol
from openbell.market.foreign_text import without_invisible
from openbell.market.instruments import parse
from openbell.protocol.numbers import Exact
from openbell.protocol.result_fields import Foreign, From, Opened, Pagination, Precision, StatedOfAccount, mark, shaped
from openbell.trading.alerts import Alert, AlertProgress
from openbell.trading.fills import FillTime
from openbell.trading.orders import Order

_LEFT_OUT = {"time_in_force": "gtc", "filled_quantity": "0", "fees": "0", "role": "single"}
"""The values of fields that a list leaves out."""
_ONLY_IN_DETAIL = {"account", "updated_at", "filled_at", "filled_at_precision"}
"""Fields that a list leaves out whatever their value, so that 20 orders stay within 1,500 tokens."""
_ALWAYS = ("order_id", "symbol", "side", "type", "quantity", "status", "placed_at")
"""Fields that a list never leaves out."""
_IN_LIST = {
    "symbol": None,
    "requested_symbol": "symbol if left out",
    "time_in_force": "gtc if left out",
    "filled_quantity": "0 if left out",
    "fees": "0 if left out",
    "filled_at": "its last fill; on paper, the open of its minute",
    "role": "single if left out, entry, take_profit or stop_loss",
    "updated_at": None,
}
"""What a list says of these fields instead; None for nothing."""
_SYMBOLS = ("ticker", "symbol")
_PRICES = ("price", "close", "value")


class OrderShape(TypedDict):
    """One order."""

    order_id: Annotated[str, From("id")]
    client_order_id: str | None
    symbol: Annotated[str, Field(description="canonical, as in positions")]
    requested_symbol: Annotated[str, From("spelling"), Field(description="as the caller wrote it")]
    side: str
    type: Annotated[str, From("kind")]
    quantity: str
    price: Annotated[str | None, From("limit_price")]
    stop_price: str | None
    take_profit: str | None
    stop_loss: str | None
    time_in_force: str
    status: Annotated[str, From("state")]
    filled_quantity: Annotated[str, From("filled")]
    average_price: str | None
    fees: str
    filled_at: Annotated[
        str | None, Field(description="its last fill; on paper, the open of the minute that filled it")
    ]
    filled_at_precision: NotRequired[Precision]
    reason: str | None
    role: Annotated[str, Field(description="single, entry, take_profit or stop_loss")]
    parent_id: Annotated[str | None, From("parent")]
    placed_at: str
    updated_at: Annotated[str, Field(description="when its last change was recorded; on paper, when a minute closed")]
    account: Literal["paper", "live"]
    note: NotRequired[Annotated[str, Field(description="how the order differs from what was asked")]]


class _InList:
    """Makes the schema of an order that of an order in a list, where most fields may be left out."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        order = handler.resolve_ref_schema(handler(core))
        fields = {name: each for name, each in order["properties"].items() if name != "note"}
        for name, text in _IN_LIST.items():
            bare = {key: part for key, part in fields[name].items() if key != "description"}
            fields[name] = {**bare, "description": text} if text else bare
        return {**order, "properties": fields, "required": list(_ALWAYS)}


ListedOrder = Annotated[OrderShape, _InList()]
"""One order of a list. Fields that are null, 0 or the default are left out, unless detail is asked for."""


def listed_order(order: OrderShape) -> ListedOrder:
    """Returns an order as a list shows it: without what is null, 0 or the default, and without times of changes."""
    kept = {name: value for name, value in order.items() if value is not None and name not in _ONLY_IN_DETAIL}
    for name, value in {**_LEFT_OUT, "requested_symbol": order["symbol"]}.items():
        if kept[name] == value:
            del kept[name]
    return cast("OrderShape", kept)


class OrdersResponse(StatedOfAccount):
    """Orders, newest first."""

    orders: list[ListedOrder]
    pagination: Pagination
    cursor: Annotated[str | None, Field(description="pass it on for the next page; null after the last one")]
    account: Literal["paper", "live"]


class HeldPositionShape(Opened):
    """One open position."""

    symbol: Annotated[str, From("position.symbol")]
    side: Literal["long", "short"]
    quantity: Annotated[str, From("size")]
    entry_price: str
    current_price: Annotated[str | None, From("price.value"), Field(description="null if there is none; note says why")]
    price_time: Annotated[str | None, From("price.end"), Field(description="when the bar of that price ended")]
    session: Annotated[str, Field(description="of its market")]
    unrealized_pnl: Annotated[str | None, From("unrealised"), Field(description="null as current_price")]
    note: NotRequired[Annotated[str, From("note")]]


class PositionsResponse(StatedOfAccount):
    """Open positions."""

    positions: list[HeldPositionShape]
    account: Literal["paper", "live"]


class BalanceResponse(StatedOfAccount):
    """The account's money, in USD."""

    total_balance: Annotated[str | None, From("total"), Field(description="null if a position has no price")]
    available_balance: Annotated[str, From("available")]
    margin_used: str | None
    cash: str
    unrealized_pnl: Annotated[str | None, From("unrealised")]
    realized_pnl: Annotated[str, From("realised")]
    fees: str
    price_time: Annotated[str | None, From("end"), Field(description="when the bar of the oldest price ended")]
    account: Literal["paper", "live"]
    note: NotRequired[Annotated[str, From("note")]]


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

    alert_id: Annotated[str, From("id")]
    symbol: Annotated[str, From("spelling")]
    interval: str
    condition: ConditionShape
    status: Annotated[str, From("state")]
    set_at: str
    last_value: NotRequired[Annotated[Exact, Field(description="the last price")]]
    last_bar_at: NotRequired[Annotated[str, Field(description="when the bar of that price ended")]]
    distance: NotRequired[Annotated[Exact, Field(description="to the threshold: above 0 if the price must rise")]]
    reason: NotRequired[Annotated[str, Field(description="why it has not fired")]]
    fired_at: NotRequired[Annotated[str, From("fired_at"), Field(description="when the bar that fired it closed")]]
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


def order_shape(order: Order, account: str, reason: str | None, filled: FillTime | None) -> OrderShape:
    """Returns an order as the tools return it; `filled` is the time of its last fill."""
    return shaped(
        OrderShape,
        order,
        average_price=order.average_price and average(order.average_price),
        filled_at=filled and filled.at,
        filled_at_precision=filled and filled.precision,
        reason=reason,
        account=account,
    )


def alert_shape(alert: Alert, progress: AlertProgress | None = None) -> AlertShape:
    """Returns an alert as the tools return it; `progress` says why an active one has not fired."""
    price = progress and progress.price
    return shaped(
        AlertShape,
        alert,
        last_value=price and price.value,
        last_bar_at=price and price.end,
        distance=progress and progress.distance,
        reason=progress and progress.reason,
        value=alert.value if alert.value is None or alert.type.of_price else significant(alert.value),
    )


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
