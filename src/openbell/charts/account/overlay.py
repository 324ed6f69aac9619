"""What a chart shows of an account: executions at their bars, the prices that it waits for, and a line for the legend.

The fills of one side in one bar are one execution. Prices that an account waits for are the average price, stops, targets,
orders and alerts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

import numpy as np

from openbell.charts.numbers import short
from openbell.market.bars import Bars, bucket_bounds, closed_at
from openbell.market.clock import iso
from openbell.market.digits import average
from openbell.trading import amounts
from openbell.trading.alerts import PRICE_CONDITIONS, Alert
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book, Position
from openbell.trading.fills import Fill
from openbell.trading.orders import RESTING, Order, OrderKind, OrderState, Side

MOST_EXECUTIONS = 100
"""The newest are drawn; more cannot be told apart."""
MOST_LEVELS = 12
"""Those nearest to the last price are drawn."""
_LISTED = 20
"""Executions in a payload."""
_EARLIER, _HIDDEN = -1, -2
_LONGEST = 9
"""Characters of a quantity that is written in full."""


@dataclass(frozen=True, slots=True)
class AccountOverlay:
    """What is drawn of an account."""

    account: str
    """`paper` or `live`."""
    bars: Bars
    executions: tuple[MarkedExecution, ...] = ()
    """Oldest first."""
    levels: tuple[AccountLevel, ...] = ()
    records: SymbolRecords | None = None
    """The records; None if they could not be read, and `note` says why."""
    not_drawn: tuple[str, ...] = ()
    """What the chart does not show, and why."""
    note: str | None = None
    """Why a part is missing."""

    @property
    def legend(self) -> str:
        """The line that the legend of the chart has."""
        if self.records is None:
            return f"{self.account} account not shown: {self.note}"
        alerts = sum(level.purpose is Purpose.ALERT for level in self.levels)
        orders = sum(bool(level.id) for level in self.levels) - alerts
        fills = sum(each.count for each in self.executions)
        counts = ((fills, "fill"), (orders, "order"), (alerts, "alert"))
        parts = [_counted(count, name) for count, name in counts if count]
        return " · ".join((f"{self.account} account", *(parts or ["no fills, orders or alerts here"])))

    @property
    def notice(self) -> str | None:
        """The note of a result that has no payload: why the account or a part of it is missing."""
        return self.legend if self.records is None else self.note

    @property
    def remarks(self) -> list[str]:
        """What the picture shows of the account, and what it does not."""
        notes = [self.note] if self.note and self.records else []
        return [self.legend, *(f"not drawn: {each}" for each in self.not_drawn), *notes]

    def payload(self) -> dict[str, Any]:
        """Returns what is drawn as numbers; amounts are decimal strings."""
        if self.records is None:
            return {"account": self.account, "note": self.note}
        shape: dict[str, Any] = {
            "account": self.account,
            "position": None if self.records.position is None else _position(self.records.position),
            "fills": [self._execution(each) for each in self.executions[: -_LISTED - 1 : -1]],
            "fills_drawn": len(self.executions),
        }
        drawn = {level.id for level in self.levels}
        if self.records.orders is not None:
            shape["orders"] = [_order(order) for order in self.records.orders if order.id in drawn]
        if self.records.alerts is not None:
            shape["alerts"] = [_alert(alert) for alert in self.records.alerts if alert.id in drawn]
        if self.not_drawn:
            shape["not_drawn"] = list(self.not_drawn)
        if self.note:
            shape["note"] = self.note
        return shape

    def _execution(self, execution: MarkedExecution) -> dict[str, Any]:
        index = execution.index
        return {
            "x": index,
            "time": None if index is None else iso(int(self.bars.time[index])),
            "filled_at": iso(execution.at),
            "recorded_at": iso(execution.recorded_at),
            "side": execution.side.value,
            "effect": execution.effect.value,
            "quantity": amounts.text(execution.quantity),
            "price": amounts.text(average(execution.price)),
        }


def missing_overlay(account: str, bars: Bars, reason: str) -> AccountOverlay:
    """Returns the overlay of an account that could not be read."""
    return AccountOverlay(account, bars, note=reason)


def overlay_of(records: SymbolRecords, account: str, bars: Bars, note: str | None = None) -> AccountOverlay:
    """Returns what a chart of these bars shows of an account."""
    placed = place(records.fills, bars)
    lines = [order_level(order) for order in records.orders or ()]
    lines += [alert_level(alert) for alert in records.alerts or ()]
    levels, far = _nearest([level for level in lines if level], bars)
    unpriced = sum(level is None for level in lines)
    executions = placed.executions[-MOST_EXECUTIONS:]
    average = [position_level(records.position)] if records.position else []
    counts = (
        (placed.earlier, "fill", "before the first bar"),
        (placed.hidden, "fill", "at times of which no bar is shown"),
        (sum(each.count for each in placed.executions[:-MOST_EXECUTIONS]), "fill", "older than those drawn"),
        (unpriced, "order or alert", "without a price"),
        (far, "order or alert", "further from the last price"),
    )
    not_drawn = tuple(f"{_counted(count, name)} {where}" for count, name, where in counts if count)
    return AccountOverlay(account, bars, executions, (*average, *levels), records, not_drawn, note)


def _counted(count: int, name: str) -> str:
    """Returns a count with its noun, such as `2 orders or alerts`."""
    return f"{count} {name if count == 1 else name.replace(' ', 's ', 1) + 's'}"


def _nearest(levels: list[AccountLevel], bars: Bars) -> tuple[list[AccountLevel], int]:
    """Returns the levels that are drawn, the highest first, and how many are not."""
    last = amounts.of_bar(bars.close[-1]) if len(bars) else ZERO
    chosen = sorted(levels, key=lambda level: (level.purpose is Purpose.ALERT, abs(level.price - last)))[:MOST_LEVELS]
    return sorted(chosen, key=lambda level: -level.price), len(levels) - len(chosen)


def _position(position: Position) -> dict[str, Any]:
    return {
        "side": "long" if position.quantity > 0 else "short",
        "quantity": amounts.text(abs(position.quantity)),
        "average_price": amounts.text(average(position.average_price)),
    }


def _order(order: Order) -> dict[str, Any]:
    prices = {"price": order.limit_price, "stop_price": order.stop_price}
    return {
        "order_id": order.id,
        "purpose": purpose_of(order).value,
        "side": order.side.value,
        "type": order.kind.value,
        "quantity": amounts.text(order.remaining),
        **{name: amounts.text(price) for name, price in prices.items() if price is not None},
        "status": order.state.value,
    }


def _alert(alert: Alert) -> dict[str, Any]:
    return {"alert_id": alert.id, "condition": {alert.type.value: amounts.text(alert.threshold or ZERO)}}


class PositionEffect(StrEnum):
    """What an execution did to the position."""

    ENTRY = "entry"
    """Opened or enlarged it."""
    EXIT = "exit"
    """Closed it or made it smaller."""
    REVERSAL = "reversal"
    """Closed it and opened one of the other side."""


@dataclass(slots=True)
class MarkedExecution:
    """The fills of one side in one bar."""

    index: int | None
    """The bar's position on the chart; None if the bar is under way."""
    side: Side
    at: float
    """When the first of the fills happened: on paper, the open of its minute."""
    recorded_at: float
    """When that fill was recorded."""
    count: int = 0
    """The number of fills."""
    quantity: Decimal = ZERO
    paid: Decimal = ZERO
    """Sum of price times quantity."""
    profit: Decimal = ZERO
    """The profit that it realised, before fees."""
    effects: set[PositionEffect] = field(default_factory=set)

    @property
    def price(self) -> Decimal:
        """The average price."""
        return amounts.share(self.paid, self.quantity)

    @property
    def effect(self) -> PositionEffect:
        """What it did to the position."""
        return PositionEffect.REVERSAL if len(self.effects) > 1 else next(iter(self.effects))


@dataclass(frozen=True, slots=True)
class MarkedExecutions:
    """The executions of a chart, oldest first, and how many fills it does not show."""

    executions: tuple[MarkedExecution, ...]
    earlier: int
    """The fills before the first bar."""
    hidden: int
    """The fills at times of which the chart shows no bar, such as extended hours."""


def place(fills: Sequence[Fill], bars: Bars) -> MarkedExecutions:
    """Returns the executions of an account's fills in the instrument of `bars`; `fills` begins with the first of all.

    A fill belongs to the bar that contains its time: on paper, the minute in which it was filled.
    """
    found: dict[tuple[int, Side], MarkedExecution] = {}
    indexes = _indexes(fills, bars)
    for index, (fill, effects, profit) in zip(indexes, _with_effects(fills), strict=True):
        if index < 0:
            continue
        first = MarkedExecution(index if index < len(bars) else None, fill.side, fill.filled_at, fill.at)
        shown = found.setdefault((index, fill.side), first)
        shown.count += 1
        with amounts.exact():
            shown.quantity += fill.quantity
            shown.paid += fill.quantity * fill.price
            shown.profit += profit
        shown.effects |= effects
    executions = tuple(found[key] for key in sorted(found, key=lambda key: key[0]))
    return MarkedExecutions(executions, indexes.count(_EARLIER), indexes.count(_HIDDEN))


def _indexes(fills: Sequence[Fill], bars: Bars) -> list[int]:
    """Returns the position of the bar that contains each fill; the number of bars if that bar has not closed."""
    if not len(bars):
        return [_EARLIER] * len(fills)
    at = np.array([int(fill.filled_at) for fill in fills], dtype=np.int64)
    times, back = np.unique(at, return_inverse=True)
    start = bucket_bounds(bars.instrument, bars.timeframe, times)[0][back]
    index = np.minimum(np.searchsorted(bars.time, start), len(bars) - 1)
    index = np.where(bars.time[index] == start, index, _HIDDEN)
    index = np.where(at >= closed_at(bars), len(bars), np.where(at < bars.time[0], _EARLIER, index))
    return [int(each) for each in index]


def _with_effects(fills: Iterable[Fill]) -> Iterator[tuple[Fill, set[PositionEffect], Decimal]]:
    """Yields each fill with what it did to the position and the profit that it realised."""
    book = Book(ZERO)
    for fill in fills:
        held, before = book.quantity(fill.symbol), book.realised
        book = book.after(fill)
        if held * fill.side.sign >= 0:
            effects = {PositionEffect.ENTRY}
        else:
            effects = (
                {PositionEffect.EXIT, PositionEffect.ENTRY} if fill.quantity > abs(held) else {PositionEffect.EXIT}
            )
        yield fill, effects, book.realised - before


class Purpose(StrEnum):
    """What a level is for."""

    AVERAGE = "average"
    STOP = "stop"
    TARGET = "target"
    ORDER = "order"
    ALERT = "alert"


@dataclass(frozen=True, slots=True)
class AccountLevel:
    """One horizontal line."""

    purpose: Purpose
    text: str
    price: Decimal
    id: str = ""
    """Of the order or alert."""
    waits: bool = False
    """True for the exits of an entry that has not filled."""


def position_level(position: Position) -> AccountLevel:
    """Returns the line of a position's average price."""
    side = "long" if position.quantity > 0 else "short"
    return AccountLevel(
        Purpose.AVERAGE, f"Avg · {side} {quantity_text(abs(position.quantity))}", position.average_price
    )


def order_level(order: Order) -> AccountLevel | None:
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
    if order.state is OrderState.HELD:
        text += " after entry"
    elif order.state not in RESTING or order.state is OrderState.CANCELLING:
        text += f" ({order.state})"
    return AccountLevel(purpose, text, price, order.id, order.state is OrderState.HELD)


def purpose_of(order: Order) -> Purpose:
    """Returns what an order is for: one that only reduces a position is a stop or a target."""
    if not order.role.exit and order.opening > ZERO:
        return Purpose.ORDER
    return Purpose.TARGET if order.kind is OrderKind.LIMIT else Purpose.STOP


def alert_level(alert: Alert) -> AccountLevel | None:
    """Returns the line of an alert; None if its condition is no price."""
    if alert.threshold is None:
        return None
    return AccountLevel(Purpose.ALERT, PRICE_CONDITIONS[alert.type].label, alert.threshold, alert.id)


def quantity_text(quantity: Decimal) -> str:
    """Returns a quantity in few characters."""
    text = amounts.text(quantity)
    return text if len(text) <= _LONGEST else short(float(quantity))


@dataclass(frozen=True, slots=True)
class SymbolRecords:
    """An account's fills and position in a symbol; its working orders and its owner's alerts, if they may be read."""

    fills: tuple[Fill, ...]
    """In the order in which they were recorded."""
    position: Position | None
    orders: tuple[Order, ...] | None = None
    """The orders that are not final; None if they were not read."""
    alerts: tuple[Alert, ...] | None = None
    """The active alerts; None if they were not read."""
