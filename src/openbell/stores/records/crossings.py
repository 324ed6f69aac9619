"""Queries about stored subscriptions to crossings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, update

from openbell.market.instruments import parse
from openbell.market.timeframes import ALL_NAMES, parse_timeframe
from openbell.signals.crossing_alerts import METHOD, CrossingSubscription
from openbell.stores.records.alerts import Notification, enqueue
from openbell.stores.records.journal import Journal
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import crossing_subscriptions as table
from openbell.stores.records.tables import pushes

CHANGED = "crossing"
"""The kind of ledger entries about a subscription that was made or ended."""
FIRED = "crossing_alert"
"""The kind of ledger entries about an alert of a subscription."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A subscription, and how far its alerts have come."""

    subscription: CrossingSubscription
    seen: int
    """The open time of the bar of its last alert, or of the last bar before it was made; −1 if there was none."""
    sent_at: float | None = None
    """When its last alert was recorded, in epoch seconds of the machine's clock."""


def all_stored(view: View) -> list[Stored]:
    """All subscriptions."""
    return _read(view, select(table))


def of_principal(view: View, principal: str) -> list[Stored]:
    """A principal's subscriptions."""
    return _read(view, select(table).where(table.c.principal == principal))


def _read(view: View, query: Select[Any]) -> list[Stored]:
    return [_stored(row) for row in view.execute(query.order_by(table.c.created_at, table.c.id))]


def _stored(row: Row[Any]) -> Stored:
    subscription = CrossingSubscription(
        id=row.id,
        principal=row.principal,
        instrument=parse(row.symbol),
        timeframe=parse_timeframe(row.spelling, ALL_NAMES),
        spelling=row.spelling,
        crossings=tuple(row.crossings),
        throttle_ms=row.throttle_ms,
    )
    return Stored(subscription, row.seen, row.sent_at)


def add(journal: Journal, stored: Stored) -> None:
    """Store a subscription."""
    given = stored.subscription
    terms = {
        "principal": given.principal,
        "symbol": given.instrument.symbol,
        "spelling": given.spelling,
        "crossings": list(given.crossings),
        "throttle_ms": given.throttle_ms,
    }
    row = {**terms, "id": given.id, "created_at": journal.at, "seen": stored.seen, "sent_at": stored.sent_at}
    journal.view.execute(insert(table), row)
    journal.note(CHANGED, given.id, terms)


def remove(journal: Journal, principal: str, subscription_id: str) -> bool:
    """Remove a subscription and its queued alerts. Returns True if the principal had it."""
    mine = (table.c.id == subscription_id) & (table.c.principal == principal)
    if not journal.view.execute(delete(table).where(mine)).rowcount:
        return False
    queued = (pushes.c.principal == principal) & (pushes.c.method == METHOD)
    own = pushes.c.alert_id.startswith(f"{subscription_id}:", autoescape=True)
    journal.view.execute(delete(pushes).where(queued & own))
    journal.note(CHANGED, subscription_id, None)
    return True


def fire(
    journal: Journal, given: CrossingSubscription, body: dict[str, Any], seen: int, happened: float, now: float
) -> bool:
    """Record an alert and queue its push. Returns False if the subscription has ended.

    `seen` is the bar up to which the subscription was checked, `happened` the time of the alert, `now` the machine's time.
    """
    mine = table.c.id == given.id
    if not journal.view.execute(update(table).where(mine), {"seen": seen, "sent_at": now}).rowcount:
        return False
    cursor = journal.note(FIRED, given.id, {"principal": given.principal, **body}, happened)
    enqueue(journal.view, given.principal, f"{given.id}:{cursor}", Notification(cursor, body, METHOD), now)
    return True
