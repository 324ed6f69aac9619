"""The port to brokers.

An order is sent to a broker once. If it is not known whether it arrived, `submit` raises `OutcomeUnknown`; the order is then
looked up by its id with `find`, and never sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from openbell.market.errors import OpenbellError
from openbell.trading.amounts import ZERO
from openbell.trading.orders import Order, State


class BrokerError(OpenbellError):
    """About what stands behind the port."""


class BrokerRefused(BrokerError):
    """The broker says no, and nothing was done: a bad order, not enough money, not allowed."""


class BrokerUnavailable(BrokerError):
    """The broker could not be asked; of a submission: it certainly did not arrive."""


class OutcomeUnknown(BrokerError):
    """It was sent, and no answer came: it may have arrived or not."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One fill as the broker tells it."""

    id: str
    quantity: Decimal
    price: Decimal
    at: float
    fee: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class Report:
    """What the broker knows of an order now."""

    broker_id: str
    state: State
    executions: tuple[Execution, ...] = ()
    """All of its fills so far."""
    reason: str | None = None
    exits: tuple[tuple[str, Report], ...] = ()
    """Of a bracket, what became of its exits: their role and their report."""


class Broker(Protocol):
    """Whoever carries orders out."""

    name: str
    """As in OPENBELL_BROKER."""
    account: str
    """What results call the account: `paper` or `live`."""

    async def submit(self, order: Order) -> Report:
        """Send an order, exits included. Raises `BrokerRefused`, `BrokerUnavailable` or `OutcomeUnknown`."""

    async def cancel(self, order: Order) -> None:
        """Ask for an order's end; what became of it is told by `find`. Raises as `submit` does."""

    async def find(self, order: Order) -> Report | None:
        """What became of an order, by our id; None if the broker has no record of it. Raises `BrokerUnavailable`."""

    async def cash(self) -> Decimal:
        """The money in the account, of a broker outside. Raises `BrokerUnavailable`."""

    async def close(self) -> None:
        """Let go of connections."""
