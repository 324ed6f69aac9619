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
from openbell.trading.orders import Order, OrderState


class BrokerError(OpenbellError):
    """The broker refused the request, could not be reached, or its answer was lost."""


class BrokerRefused(BrokerError):
    """The broker rejected the request and did nothing: a bad order, not enough money, not allowed."""


class BrokerUnavailable(BrokerError):
    """The broker could not be reached. If raised by `submit`, the order certainly did not arrive."""


class OutcomeUnknown(BrokerError):
    """The request was sent and no answer arrived; the broker may have received it or not."""


@dataclass(frozen=True, slots=True)
class BrokerExecution:
    """One fill as the broker reports it."""

    id: str
    quantity: Decimal
    price: Decimal
    at: float
    fee: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class OrderReport:
    """The current state of an order at the broker."""

    broker_id: str
    state: OrderState
    executions: tuple[BrokerExecution, ...] = ()
    """All of its fills so far."""
    reason: str | None = None
    exits: tuple[tuple[str, OrderReport], ...] = ()
    """The exits of a bracket: role and report of each."""


class Broker(Protocol):
    """A broker that carries out orders."""

    name: str
    """The name, as in OPENBELL_BROKER."""
    account: str
    """The kind of account that results show: `paper` or `live`."""

    async def submit(self, order: Order) -> OrderReport:
        """Send an order, exits included. Raises `BrokerRefused`, `BrokerUnavailable` or `OutcomeUnknown`."""

    async def cancel(self, order: Order) -> None:
        """Request the cancellation of an order; `find` returns whether it took effect. Raises the errors of `submit`."""

    async def find(self, order: Order) -> OrderReport | None:
        """Returns the report of an order by our id; None if the broker has no such order. Raises `BrokerUnavailable`."""

    async def cash(self) -> Decimal:
        """Returns the cash in the broker's account. Raises `BrokerUnavailable`."""

    async def close(self) -> None:
        """Close all connections."""
