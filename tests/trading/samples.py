"""Orders, fills and bars for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from openbell.market.bars import Bars, make
from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.trading.amounts import ZERO
from openbell.trading.fills import Fill
from openbell.trading.orders import Force, Order, OrderKind, OrderState, Role, Side

D = Decimal
BUY, SELL = Side.BUY, Side.SELL
START = int(parse_time("2025-09-01"))


def order(order_id: str = "a", side: Side = BUY, quantity: str | Decimal = "10", **changes: Any) -> Order:
    """Returns a resting market order whose whole quantity may open a position."""
    amount = D(quantity)
    wanted: dict[str, Any] = {
        "opening": amount,
        "kind": OrderKind.MARKET,
        "time_in_force": Force.GTC,
        "placed_at": float(START),
        "symbol": "BTC/USD",
        "state": OrderState.OPEN,
        "role": Role.SINGLE,
    } | changes
    for name in ("opening", "limit_price", "stop_price", "take_profit", "stop_loss", "filled"):
        if wanted.get(name) is not None:
            wanted[name] = D(wanted[name])
    return Order(order_id, "paper", "me", side=side, quantity=amount, **wanted)


def limit(order_id: str, side: Side, quantity: str, price: str, **changes: Any) -> Order:
    """Returns a resting limit order."""
    return order(order_id, side, quantity, kind=OrderKind.LIMIT, limit_price=price, **changes)


def stop(order_id: str, side: Side, quantity: str, price: str, **changes: Any) -> Order:
    """Returns a resting stop order."""
    return order(order_id, side, quantity, kind=OrderKind.STOP, stop_price=price, **changes)


def fill(side: Side, quantity: str | Decimal, price: str | Decimal, fee: str | Decimal = ZERO, **changes: Any) -> Fill:
    """Returns a fill."""
    wanted: dict[str, Any] = {"id": "a-1", "symbol": "BTC/USD", "at": float(START)} | changes
    return Fill(
        order_id="a",
        account="paper",
        principal="me",
        side=side,
        quantity=D(quantity),
        price=D(price),
        fee=D(fee),
        **wanted,
    )


Row = tuple[float, float, float, float]
"""Open, high, low and volume."""


def minutes(
    rows: Sequence[Row], symbol: str = "BTC/USD", start: int = START, times: Iterable[int] | None = None
) -> Bars:
    """Returns minute bars; each closes halfway between its low and high."""
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    opens, highs, lows, volumes = columns
    closes = [(high + low) / 2 for high, low in zip(highs, lows, strict=True)]
    when = list(times) if times is not None else [start + 60 * number for number in range(len(rows))]
    return make(parse(symbol), Timeframe.M1, when, opens, highs, lows, closes, volumes)


def look(thing: object, names: str) -> tuple[Any, ...]:
    """Returns some attributes of an object."""
    return tuple(getattr(thing, name) for name in names.split())
