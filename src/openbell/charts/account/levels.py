"""Prices that an account waits for, as a chart draws them: the average price, stops, targets, orders and alerts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from openbell.charts.numbers import short
from openbell.trading import amounts
from openbell.trading.alerts import PRICE_CONDITIONS, Alert
from openbell.trading.amounts import ZERO
from openbell.trading.book import Position
from openbell.trading.orders import RESTING, Kind, Order, State

_LONGEST = 9
"""Characters of a quantity that is written in full."""


class Purpose(StrEnum):
    """What a level is for."""

    AVERAGE = "average"
    STOP = "stop"
    TARGET = "target"
    ORDER = "order"
    ALERT = "alert"


@dataclass(frozen=True, slots=True)
class Level:
    """One horizontal line."""

    purpose: Purpose
    text: str
    price: Decimal
    id: str = ""
    """Of the order or alert."""
    waits: bool = False
    """True for the exits of an entry that has not filled."""


def position_level(position: Position) -> Level:
    """Returns the line of a position's average price."""
    side = "long" if position.quantity > 0 else "short"
    return Level(Purpose.AVERAGE, f"Avg · {side} {quantity_text(abs(position.quantity))}", position.average_price)


def order_level(order: Order) -> Level | None:
    """Returns the line of a working order; None if it has no price.

    A stop-limit order is drawn at its stop price until that is reached, then at its limit.
    """
    price = order.limit_price if order.triggered or order.stop_price is None else order.stop_price
    if price is None:
        return None
    purpose, size = purpose_of(order), f"{order.side} {quantity_text(order.remaining)}"
    if purpose is Purpose.ORDER:
        text = f"{order.side.capitalize()} {order.kind.replace('_', ' ')} {quantity_text(order.remaining)}"
    else:
        text = f"{purpose.capitalize()} · {size}"
    if order.state is State.HELD:
        text += " after entry"
    elif order.state not in RESTING or order.state is State.CANCELLING:
        text += f" ({order.state})"
    return Level(purpose, text, price, order.id, order.state is State.HELD)


def purpose_of(order: Order) -> Purpose:
    """Returns what an order is for: one that only reduces a position is a stop or a target."""
    if not order.role.exit and order.opening > ZERO:
        return Purpose.ORDER
    return Purpose.TARGET if order.kind is Kind.LIMIT else Purpose.STOP


def alert_level(alert: Alert) -> Level | None:
    """Returns the line of an alert; None if its condition is no price."""
    if alert.threshold is None:
        return None
    return Level(Purpose.ALERT, PRICE_CONDITIONS[alert.type].label, alert.threshold, alert.id)


def quantity_text(quantity: Decimal) -> str:
    """Returns a quantity in few characters."""
    text = amounts.text(quantity)
    return text if len(text) <= _LONGEST else short(float(quantity))
