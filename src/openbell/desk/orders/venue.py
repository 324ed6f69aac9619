"""The port between orders and the place where they are carried out.

There are two venues. On paper (`paper_venue.py`) this desk fills orders from its own bars. At a broker (`broker_venue.py`)
orders are sent, and the broker's reports are recorded. Placing, cancelling, halts and the engine use only this port.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Protocol

from openbell.stores.port import Lease
from openbell.stores.records.journal import Journal
from openbell.trading.costs import Costs
from openbell.trading.orders import Order


class Venue(Protocol):
    """Where the orders of accounts are carried out."""

    name: str
    """The broker that its accounts name, as in OPENBELL_BROKER."""
    remote: bool
    """Whether orders and cancellations are sent to another system, which has an account of its own."""

    @property
    def costs(self) -> Costs | None:
        """The costs of fills from bars; None if a broker fills the orders."""

    async def opening_cash(self) -> Decimal:
        """Returns the cash that a new account begins with. Raises `BrokerUnavailable`."""

    def accept(self, order: Order) -> Order:
        """Returns an order that passed the risk gate, in the state in which it is recorded before it is sent."""

    async def send(self, order: Order) -> Order:
        """Carry out a recorded order once; returns the order as it is recorded afterwards.

        Raises `BrokerRefused` if the broker rejected it or could not be reached.
        """

    def cancel(self, journal: Journal, order: Order, reason: str | None = None) -> Order:
        """Record that a working order is to be cancelled; returns its new version."""

    async def send_cancellation(self, order: Order) -> None:
        """Send the cancellation that was recorded. Raises `BrokerError`."""

    async def refresh(self, order: Order) -> Order:
        """Record what became of an order and return it. Raises `BrokerError`."""

    async def settle(self, account: str) -> None:
        """Apply the bars that have closed to an account, before it is read or changed."""

    async def step(self, lease: Lease | None, until: int) -> int:
        """One step of the engine, over bars that closed by `until`; returns the number of changes."""

    async def close(self) -> None:
        """Close all connections."""
