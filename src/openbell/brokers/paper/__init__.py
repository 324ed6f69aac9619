"""The paper broker: this desk fills orders from bars itself (`openbell.trading.broker`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.brokers.declaration import BrokerKind, BrokerParts

if TYPE_CHECKING:
    from openbell.trading.broker import Broker


def _make(_parts: BrokerParts) -> Broker:
    from openbell.trading.broker import PaperBroker

    return PaperBroker()


BROKER = BrokerKind("paper", "filled from bars, no money", _make, fills_locally=True)
