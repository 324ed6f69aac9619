"""Paper trading: no broker at all, the desk fills orders from its own bars (`desk/orders/paper_venue.py`)."""

from __future__ import annotations

from openbell.brokers.registry import BrokerKind
from openbell.trading.accounts import PAPER

BROKER = BrokerKind(PAPER, "filled from bars, no money", make=None)
