"""What a chart shows of an account: executions at their bars, levels, and a line for the legend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openbell.charts.account.executions import Execution, place
from openbell.charts.account.levels import Level, Purpose, alert_level, order_level, position_level, purpose_of
from openbell.charts.account.records import SymbolRecords
from openbell.market.bars import Bars
from openbell.market.clock import iso
from openbell.market.digits import average
from openbell.trading import amounts
from openbell.trading.alerts import Alert
from openbell.trading.amounts import ZERO
from openbell.trading.book import Position
from openbell.trading.orders import Order

MOST_EXECUTIONS = 100
"""The newest are drawn; more cannot be told apart."""
MOST_LEVELS = 12
"""Those nearest to the last price are drawn."""
_LISTED = 20
"""Executions in a payload."""


@dataclass(frozen=True, slots=True)
class AccountOverlay:
    """What is drawn of an account."""

    account: str
    """`paper` or `live`."""
    bars: Bars
    executions: tuple[Execution, ...] = ()
    """Oldest first."""
    levels: tuple[Level, ...] = ()
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

    def _execution(self, execution: Execution) -> dict[str, Any]:
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


def _nearest(levels: list[Level], bars: Bars) -> tuple[list[Level], int]:
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
