"""When a fill happened, as results show it. The ledger keeps when it was recorded: on paper, at the end of its minute."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from openbell.trading.fills import Fill
from openbell.trading.orders import Kind


@dataclass(frozen=True, slots=True)
class FillTime:
    """The time of a fill and of its record."""

    at: float
    """At a broker, the time of the execution; on paper, the open of the minute that filled the order."""
    recorded_at: float
    exact: bool
    """False if the fill happened at an unknown time of the minute that begins at `at`."""


def fill_time(fill: Fill, kind: Kind, limit_price: Decimal | None) -> FillTime:
    """Returns the time of a fill of an order of this kind.

    Market orders fill at the open of a minute, and so do limit orders that get a better price than their limit. At its limit
    an order fills within the minute, and a stop may.
    """
    at_open = kind is Kind.MARKET or (kind is Kind.LIMIT and fill.price != limit_price)
    return FillTime(fill.filled_at, fill.at, fill.bar is None or at_open)
