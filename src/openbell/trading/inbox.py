"""What reaches a person or an agent: notifications in the inbox, and the filter of those that are also pushed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openbell.trading.alerts import Alert, Firing

METHOD = "notifications/alert_triggered"
QUEUE_SECONDS = 3600
QUEUE_MOST = 1000


@dataclass(frozen=True, slots=True)
class Filter:
    """Which alerts are pushed; empty means all."""

    symbols: frozenset[str] = frozenset()
    alert_types: frozenset[str] = frozenset()

    def takes(self, alert: Alert) -> bool:
        """Whether an alert passes."""
        return (not self.symbols or alert.symbol in self.symbols) and (
            not self.alert_types or alert.type in self.alert_types
        )


def notification(firing: Firing, triggered_at: str) -> dict[str, Any]:
    """What the inbox and a push say of a fired alert."""
    alert = firing.alert
    return {
        "alert_id": alert.id,
        "symbol": alert.spelling,
        "interval": alert.interval,
        "condition": alert.condition,
        "value": firing.value,
        "triggered_at": triggered_at,
    }
