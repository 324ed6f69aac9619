"""Requests of inbound webhooks, as get_notifications returns them: apart from alerts, and marked as not trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from openbell.market.errors import InvalidSymbol
from openbell.market.foreign_text import without_invisible
from openbell.market.instruments import parse
from openbell.protocol.foreign import Foreign, mark
from openbell.protocol.numbers import Exact

_SYMBOLS = ("ticker", "symbol")
_PRICES = ("price", "close", "value")


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
