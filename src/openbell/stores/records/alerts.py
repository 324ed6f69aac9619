"""Questions about alerts, the inbox and subscriptions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, select, update

from openbell.stores.records import past
from openbell.stores.records.journal import Journal
from openbell.stores.records.tables import alerts, cursors, inbox, ledger, pushes, subscriptions
from openbell.stores.records.view import View
from openbell.trading.alerts import Alert, AlertState
from openbell.trading.inbox import QUEUE_MOST, QUEUE_SECONDS, Filter
from openbell.trading.rows import from_row

_ACTIVE = alerts.c.state == AlertState.ACTIVE.value
_CURSORS = "cursors"
_SUBSCRIPTION = "subscription"
"""Kinds of ledger entries that are no rows of a journaled table: a desk of an earlier clock reads them."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One entry of the inbox."""

    cursor: int
    body: dict[str, Any]


def find(view: View, alert_id: str) -> Alert | None:
    """The alert of an id."""
    row = view.execute(select(alerts).where(alerts.c.id == alert_id)).first()
    return from_row(Alert, row._asdict()) if row else None


def active(view: View, principal: str) -> list[Alert]:
    """A principal's active alerts, oldest first."""
    if view.until is not None:
        return _active_then(view, principal)
    mine = _ACTIVE & (alerts.c.principal == principal)
    rows = view.execute(select(alerts).where(mine).order_by(alerts.c.set_at, alerts.c.id))
    return [from_row(Alert, row._asdict()) for row in rows]


def _active_then(view: View, principal: str) -> list[Alert]:
    """Those that are active still, and those that ended later."""
    ended_later = select(ledger.c.seq).where(ledger.c.at > view.until)
    mine = (alerts.c.principal == principal) & (alerts.c.set_at <= view.until)
    ids = select(alerts.c.id).where(mine & (_ACTIVE | alerts.c.seq.in_(ended_later)))
    found = past.versions(view, "alert", view.execute(ids).scalars())
    known = [from_row(Alert, row) for row in found.values() if row["state"] == AlertState.ACTIVE.value]
    return sorted(known, key=lambda alert: (alert.set_at, alert.id))


def active_count(view: View, principal: str) -> int:
    """How many active alerts a principal has."""
    return int(view.execute(select(func.count()).where(_ACTIVE & (alerts.c.principal == principal))).scalar_one())


def changed_after(view: View, seq: int) -> list[tuple[int, Alert]]:
    """Every alert that was set or has changed since an entry of the ledger; from 0 on only those that are active."""
    query = select(alerts).where(alerts.c.seq > seq)
    if not seq:
        query = query.where(_ACTIVE)
    return [(row.seq, from_row(Alert, row._asdict())) for row in view.execute(query.order_by(alerts.c.seq))]


def still_active(view: View, ids: Iterable[str]) -> set[str]:
    """Which of some alerts are active."""
    wanted, found = list(ids), set[str]()
    for start in range(0, len(wanted), 500):
        chunk = wanted[start : start + 500]
        found |= set(view.execute(select(alerts.c.id).where(_ACTIVE & alerts.c.id.in_(chunk))).scalars())
    return found


# The inbox


def deliver(view: View, alert: Alert, cursor: int, body: dict[str, Any], at: float) -> None:
    """Put a notification into the inbox; that an alert fires twice is impossible: it is the key."""
    values = {"alert_id": alert.id, "principal": alert.principal, "cursor": cursor, "body": body}
    view.execute(insert(inbox), {**values, "created_at": at})


def notifications(view: View, principal: str, after: int, limit: int) -> list[Notification]:
    """What came into a principal's inbox after a cursor, oldest first."""
    query = select(inbox.c.cursor, inbox.c.body).where(_mine_after(view, principal, after))
    rows = view.execute(query.order_by(inbox.c.cursor).limit(limit))
    return [Notification(row.cursor, row.body) for row in rows]


def count_after(view: View, principal: str, after: int) -> int:
    """How many came into a principal's inbox after a cursor."""
    query = select(func.count()).select_from(inbox).where(_mine_after(view, principal, after))
    return int(view.execute(query).scalar_one())


def _mine_after(view: View, principal: str, after: int) -> ColumnElement[bool]:
    mine = (inbox.c.principal == principal) & (inbox.c.cursor > after)
    if view.until is not None:
        mine &= inbox.c.cursor.in_(select(ledger.c.seq).where(ledger.c.at <= view.until))
    return mine


@dataclass(frozen=True, slots=True)
class Cursors:
    """How far a principal has read its inbox, and how far its pushes were sent."""

    seen: int = 0
    pushed: int = 0


def cursors_of(view: View, principal: str) -> Cursors:
    """A principal's cursors."""
    if view.until is not None and (noted := past.version(view, _CURSORS, principal)):
        return Cursors(noted["seen"], noted["pushed"])
    row = (
        None
        if view.until is not None
        else view.execute(select(cursors).where(cursors.c.principal == principal)).first()
    )
    return Cursors(row.seen, row.pushed) if row else Cursors()


def move_cursors(journal: Journal, principal: str, *, seen: int = 0, pushed: int = 0) -> None:
    """Move a principal's cursors on, never back and never beyond what is in its inbox."""
    known = cursors_of(journal.view, principal)
    newest = select(func.max(inbox.c.cursor)).where(inbox.c.principal == principal)
    most = journal.view.execute(newest).scalar() or 0
    moved = Cursors(max(known.seen, min(seen, most)), max(known.pushed, min(pushed, most)))
    if moved == known:
        return
    values = {"seen": moved.seen, "pushed": moved.pushed}
    if not journal.view.execute(update(cursors).where(cursors.c.principal == principal), values).rowcount:
        journal.view.execute(insert(cursors), {"principal": principal, **values})
    journal.note(_CURSORS, principal, values)


# Subscriptions


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """What a principal wants pushed."""

    filter: Filter
    created_at: float


def subscribe(journal: Journal, principal: str, wanted: Filter) -> PushSubscription:
    """Set a principal's one subscription. What fired before is not pushed."""
    values = {"symbols": sorted(wanted.symbols), "alert_types": sorted(wanted.alert_types), "created_at": journal.at}
    mine = subscriptions.c.principal == principal
    if not journal.view.execute(update(subscriptions).where(mine), values).rowcount:
        journal.view.execute(insert(subscriptions), {"principal": principal, **values})
    journal.note(_SUBSCRIPTION, principal, values)
    return PushSubscription(wanted, journal.at)


def unsubscribe(journal: Journal, principal: str) -> bool:
    """End it, and forget what was queued for it; whether there was one."""
    journal.view.execute(delete(pushes).where(pushes.c.principal == principal))
    ended = journal.view.execute(delete(subscriptions).where(subscriptions.c.principal == principal)).rowcount
    if ended:
        journal.note(_SUBSCRIPTION, principal, None)
    return bool(ended)


def subscription(view: View, principal: str) -> PushSubscription | None:
    """A principal's subscription."""
    if view.until is not None:
        noted = past.version(view, _SUBSCRIPTION, principal)
        return _subscribed(**noted) if noted else None
    row = view.execute(select(subscriptions).where(subscriptions.c.principal == principal)).first()
    return _subscribed(row.symbols, row.alert_types, row.created_at) if row else None


def _subscribed(symbols: list[str], alert_types: list[str], created_at: float) -> PushSubscription:
    return PushSubscription(Filter(frozenset(symbols), frozenset(alert_types)), created_at)


def enqueue(view: View, alert: Alert, cursor: int, body: dict[str, Any], now: float) -> None:
    """Queue a push; what is too old or too much leaves the queue."""
    values = {"alert_id": alert.id, "principal": alert.principal, "cursor": cursor, "body": body, "queued": now}
    view.execute(insert(pushes), values)
    mine = pushes.c.principal == alert.principal
    newest = select(pushes.c.cursor).where(mine).order_by(pushes.c.cursor.desc()).offset(QUEUE_MOST).limit(1)
    too_many = view.execute(newest).scalar()
    if too_many is not None:
        view.execute(delete(pushes).where(mine & (pushes.c.cursor <= too_many)))
    view.execute(delete(pushes).where(mine & (pushes.c.queued <= now - QUEUE_SECONDS)))


def queued(view: View, principal: str, after: int, now: float) -> list[Notification]:
    """What may still be pushed after a cursor, oldest first."""
    if view.until is not None:
        return _queued_then(view, principal, after)
    mine = (pushes.c.principal == principal) & (pushes.c.cursor > after) & (pushes.c.queued > now - QUEUE_SECONDS)
    rows = view.execute(select(pushes.c.cursor, pushes.c.body).where(mine).order_by(pushes.c.cursor))
    return [Notification(row.cursor, row.body) for row in rows]


def _queued_then(view: View, principal: str, after: int) -> list[Notification]:
    """Those that a subscription took when they were fired and none has ended since: the queue itself was changed later."""
    noted = (ledger.c.kind == _SUBSCRIPTION) & (ledger.c.key == principal) & (ledger.c.at <= view.until)
    rows = view.execute(select(ledger.c.seq, ledger.c.body).where(noted).order_by(ledger.c.seq))
    changes = [(row.seq, json.loads(row.body)) for row in rows]
    ended = max((seq for seq, wanted in changes if wanted is None), default=0)
    standing = [(seq, wanted) for seq, wanted in changes if seq > ended]
    if not standing:
        return []
    fired = select(inbox.c.cursor, inbox.c.body, *(column.label(f"alert_{column.name}") for column in alerts.c))
    chosen = fired.join(alerts, alerts.c.id == inbox.c.alert_id).where(_mine_after(view, principal, max(after, ended)))
    found = []
    for row in view.execute(chosen.order_by(inbox.c.cursor)):
        wanted = next((wanted for seq, wanted in reversed(standing) if seq < row.cursor), None)
        alert = from_row(Alert, {column.name: getattr(row, f"alert_{column.name}") for column in alerts.c})
        if wanted and _subscribed(**wanted).filter.takes(alert):
            found.append(Notification(row.cursor, row.body))
    return found[-QUEUE_MOST:]
