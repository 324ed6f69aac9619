"""Notifications of fired alerts, and the filter that selects those that are pushed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openbell.market.digits import significant
from openbell.trading.alerts import Alert, Firing

METHOD = "notifications/alert_triggered"
QUEUE_SECONDS = 3600
"""How long a notification waits to be pushed."""
QUEUE_MOST = 1000
"""The most notifications that wait for one principal."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Selects the alerts that are pushed; an empty set selects all."""

    symbols: frozenset[str] = frozenset()
    alert_types: frozenset[str] = frozenset()

    def takes(self, alert: Alert) -> bool:
        """Returns True if an alert passes the filter."""
        return (not self.symbols or alert.symbol in self.symbols) and (
            not self.alert_types or alert.type in self.alert_types
        )


def notification(firing: Firing, triggered_at: str) -> dict[str, Any]:
    """Returns the notification of a fired alert, as it is stored and pushed."""
    alert = firing.alert
    return {
        "alert_id": alert.id,
        "symbol": alert.spelling,
        "interval": alert.interval,
        "condition": alert.condition,
        "value": firing.value if alert.type.of_price else significant(firing.value),
        "triggered_at": triggered_at,
    }
