"""The records of one account in one symbol: what a chart of the symbol can show."""

from __future__ import annotations

from dataclasses import dataclass

from openbell.trading.alerts import Alert
from openbell.trading.book import Position
from openbell.trading.fills import Fill
from openbell.trading.orders import Order


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
