"""Questions about alerts, the inbox and subscriptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from openbell.stores.records.tables import alerts, inbox, pushes, subscriptions
from openbell.trading.alerts import Alert, AlertState
from openbell.trading.inbox import QUEUE_MOST, QUEUE_SECONDS, Filter
from openbell.trading.rows import from_row

_ACTIVE = alerts.c.state == AlertState.ACTIVE.value


@dataclass(frozen=True, slots=True)
class Notification:
    """One entry of the inbox."""

    cursor: int
    body: dict[str, Any]


def find(connection: Connection, alert_id: str) -> Alert | None:
    """The alert of an id."""
    row = connection.execute(select(alerts).where(alerts.c.id == alert_id)).first()
    return from_row(Alert, row._asdict()) if row else None


def active(connection: Connection, principal: str) -> list[Alert]:
    """A principal's active alerts, oldest first."""
    mine = _ACTIVE & (alerts.c.principal == principal)
    rows = connection.execute(select(alerts).where(mine).order_by(alerts.c.set_at, alerts.c.id))
    return [from_row(Alert, row._asdict()) for row in rows]


def active_count(connection: Connection, principal: str) -> int:
    """How many active alerts a principal has."""
    return int(connection.execute(select(func.count()).where(_ACTIVE & (alerts.c.principal == principal))).scalar_one())


def changed_after(connection: Connection, seq: int) -> list[tuple[int, Alert]]:
    """Every alert that was set or has changed since an entry of the ledger; from 0 on only those that are active."""
    query = select(alerts).where(alerts.c.seq > seq)
    if not seq:
        query = query.where(_ACTIVE)
    return [(row.seq, from_row(Alert, row._asdict())) for row in connection.execute(query.order_by(alerts.c.seq))]


def still_active(connection: Connection, ids: Iterable[str]) -> set[str]:
    """Which of some alerts are active."""
    wanted, found = list(ids), set[str]()
    for start in range(0, len(wanted), 500):
        chunk = wanted[start : start + 500]
        found |= set(connection.execute(select(alerts.c.id).where(_ACTIVE & alerts.c.id.in_(chunk))).scalars())
    return found


# The inbox


def deliver(connection: Connection, alert: Alert, cursor: int, body: dict[str, Any], at: float) -> None:
    """Put a notification into the inbox; that an alert fires twice is impossible: it is the key."""
    values = {"alert_id": alert.id, "principal": alert.principal, "cursor": cursor, "body": body}
    connection.execute(insert(inbox), {**values, "created_at": at, "seen": False})


def unseen(connection: Connection, principal: str, limit: int, until: float) -> list[Notification]:
    """What had fired by some time and nobody has taken out of a principal's inbox, oldest first."""
    query = select(inbox).where((inbox.c.principal == principal) & ~inbox.c.seen & (inbox.c.created_at <= until))
    return [
        Notification(row.cursor, row.body) for row in connection.execute(query.order_by(inbox.c.cursor).limit(limit))
    ]


def after(connection: Connection, principal: str, cursor: int, limit: int, until: float) -> list[Notification]:
    """What came after a cursor and had fired by some time, seen or not, oldest first."""
    mine = (inbox.c.principal == principal) & (inbox.c.cursor > cursor) & (inbox.c.created_at <= until)
    query = select(inbox).where(mine)
    return [
        Notification(row.cursor, row.body) for row in connection.execute(query.order_by(inbox.c.cursor).limit(limit))
    ]


def acknowledge(connection: Connection, principal: str, through: int, until: float) -> None:
    """Mark everything up to a cursor as seen that had fired by some time: no earlier clock sees the rest."""
    mine = (inbox.c.principal == principal) & (inbox.c.cursor <= through) & (inbox.c.created_at <= until)
    connection.execute(update(inbox).where(mine), {"seen": True})


def unseen_count(connection: Connection, principal: str, cursor: int, until: float) -> int:
    """How many after a cursor are unseen and had fired by some time."""
    mine = (inbox.c.principal == principal) & ~inbox.c.seen & (inbox.c.created_at <= until)
    query = select(func.count()).where(mine & (inbox.c.cursor > cursor))
    return int(connection.execute(query).scalar_one())


# Subscriptions


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a principal wants pushed."""

    filter: Filter
    created_at: float


def subscribe(connection: Connection, principal: str, wanted: Filter, at: float) -> None:
    """Set a principal's one subscription."""
    values = {"symbols": sorted(wanted.symbols), "alert_types": sorted(wanted.alert_types), "created_at": at}
    changed = connection.execute(update(subscriptions).where(subscriptions.c.principal == principal), values)
    if not changed.rowcount:
        connection.execute(insert(subscriptions), {"principal": principal, **values})


def unsubscribe(connection: Connection, principal: str) -> bool:
    """End it, and forget what was queued for it; whether there was one."""
    connection.execute(delete(pushes).where(pushes.c.principal == principal))
    return bool(connection.execute(delete(subscriptions).where(subscriptions.c.principal == principal)).rowcount)


def subscription(connection: Connection, principal: str) -> Subscription | None:
    """A principal's subscription."""
    row = connection.execute(select(subscriptions).where(subscriptions.c.principal == principal)).first()
    return Subscription(Filter(frozenset(row.symbols), frozenset(row.alert_types)), row.created_at) if row else None


def enqueue(connection: Connection, alert: Alert, cursor: int, body: dict[str, Any], now: float) -> None:
    """Queue a push; what is too old or too much leaves the queue."""
    values = {"alert_id": alert.id, "principal": alert.principal, "cursor": cursor, "body": body, "queued": now}
    connection.execute(insert(pushes), values)
    mine = pushes.c.principal == alert.principal
    newest = select(pushes.c.cursor).where(mine).order_by(pushes.c.cursor.desc()).offset(QUEUE_MOST).limit(1)
    too_many = connection.execute(newest).scalar()
    if too_many is not None:
        connection.execute(delete(pushes).where(mine & (pushes.c.cursor <= too_many)))


def queued(connection: Connection, principal: str, now: float) -> list[Notification]:
    """What waits to be pushed, oldest first."""
    mine = (pushes.c.principal == principal) & (pushes.c.queued > now - QUEUE_SECONDS)
    rows = connection.execute(select(pushes).where(mine).order_by(pushes.c.cursor))
    return [Notification(row.cursor, row.body) for row in rows]


def dequeue(connection: Connection, principal: str, through: int) -> None:
    """Take what was pushed out of the queue, and with it what was too old for that."""
    connection.execute(delete(pushes).where((pushes.c.principal == principal) & (pushes.c.cursor <= through)))
