"""Queries about alerts, the inbox and subscriptions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, or_, select, update

from openbell.signals.crossing_alerts import METHOD as SIGNALS
from openbell.stores.records import snapshot
from openbell.stores.records.journal import Journal
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import alerts, cursors, inbox, ledger, pushes, subscriptions
from openbell.trading.alerts import ALERT_TRIGGERED, QUEUE_MOST, QUEUE_SECONDS, Alert, AlertFilter, AlertState
from openbell.trading.rows import from_row

_ACTIVE = alerts.c.state == AlertState.ACTIVE.value
_CURSORS = "cursors"
_SUBSCRIPTION = "subscription"
"""Kinds of ledger entries without a row in a journaled table; reads of the past use them."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification in the inbox."""

    cursor: int
    body: dict[str, Any]
    method: str = ALERT_TRIGGERED
    queued: float = 0.0
    """When it was queued to be pushed, by the machine's clock; at an earlier time, when it was delivered; otherwise 0."""


def find(view: View, alert_id: str) -> Alert | None:
    """The alert of an id; None if there is none."""
    row = view.execute(select(alerts).where(alerts.c.id == alert_id)).first()
    return from_row(Alert, row._asdict()) if row else None


def active(view: View, principal: str) -> list[Alert]:
    """A principal's active alerts, oldest first."""
    if view.until is not None:
        return _active_at(view, principal)
    mine = _ACTIVE & (alerts.c.principal == principal)
    rows = view.execute(select(alerts).where(mine).order_by(alerts.c.set_at, alerts.c.id))
    return [from_row(Alert, row._asdict()) for row in rows]


def _active_at(view: View, principal: str) -> list[Alert]:
    """The alerts that were active at the view's time, whether they have ended since or not."""
    ended_later = select(ledger.c.seq).where(ledger.c.at > view.until)
    mine = (alerts.c.principal == principal) & (alerts.c.set_at <= view.until)
    ids = select(alerts.c.id).where(mine & (_ACTIVE | alerts.c.seq.in_(ended_later)))
    found = snapshot.bodies_at(view, "alert", view.execute(ids).scalars())
    known = [from_row(Alert, row) for row in found.values() if row["state"] == AlertState.ACTIVE.value]
    return sorted(known, key=lambda alert: (alert.set_at, alert.id))


def fired(view: View, principal: str, limit: int) -> tuple[list[Alert], int]:
    """A principal's latest alerts that had fired by the view's time, the latest first, and how many there are in all."""
    chosen = (alerts.c.state == AlertState.FIRED.value) & (alerts.c.principal == principal)
    if view.until is not None:  # a fired alert never changes, so that its last entry is the one of its firing
        chosen &= alerts.c.seq.in_(select(ledger.c.seq).where((ledger.c.kind == "alert") & (ledger.c.at <= view.until)))
    total = int(view.execute(select(func.count()).select_from(alerts).where(chosen)).scalar_one())
    newest = select(alerts).where(chosen).order_by(alerts.c.fired_at.desc(), alerts.c.id.desc()).limit(limit)
    return [from_row(Alert, row._asdict()) for row in view.execute(newest)], total


def active_count(view: View, principal: str) -> int:
    """How many active alerts a principal has."""
    return int(view.execute(select(func.count()).where(_ACTIVE & (alerts.c.principal == principal))).scalar_one())


def changed_after(view: View, seq: int) -> list[tuple[int, Alert]]:
    """The alerts that were written after a ledger entry, each with its entry's number; only active ones if `seq` is 0."""
    query = select(alerts).where(alerts.c.seq > seq)
    if not seq:
        query = query.where(_ACTIVE)
    return [(row.seq, from_row(Alert, row._asdict())) for row in view.execute(query.order_by(alerts.c.seq))]


def still_active(view: View, ids: Iterable[str]) -> set[str]:
    """The ids among `ids` whose alerts are active."""
    wanted, found = list(ids), set[str]()
    for start in range(0, len(wanted), 500):
        chunk = wanted[start : start + 500]
        found |= set(view.execute(select(alerts.c.id).where(_ACTIVE & alerts.c.id.in_(chunk))).scalars())
    return found


# The inbox


def deliver(view: View, alert: Alert, cursor: int, body: dict[str, Any], at: float) -> None:
    """Put a notification into the inbox. An alert can fire only once, because its id is the key."""
    values = {"alert_id": alert.id, "principal": alert.principal, "cursor": cursor, "body": body}
    view.execute(insert(inbox), {**values, "created_at": at})


def notifications(view: View, principal: str, after: int, limit: int) -> list[Notification]:
    """A principal's notifications after a cursor, oldest first."""
    query = select(inbox.c.cursor, inbox.c.body).where(_mine_after(view, principal, after))
    rows = view.execute(query.order_by(inbox.c.cursor).limit(limit))
    return [Notification(row.cursor, row.body) for row in rows]


def count_after(view: View, principal: str, after: int) -> int:
    """How many notifications a principal has after a cursor."""
    query = select(func.count()).select_from(inbox).where(_mine_after(view, principal, after))
    return int(view.execute(query).scalar_one())


def number_of(view: View, principal: str, cursor: int) -> int:
    """The number of the last notification up to a cursor in its owner's inbox: 1 is the first one. Nothing is removed from
    an inbox, so that numbers stay; unlike cursors, they do not show how much others have done in between.
    """
    mine = (inbox.c.principal == principal) & (inbox.c.cursor <= cursor)
    return int(view.execute(select(func.count()).select_from(inbox).where(mine)).scalar_one())


def numbered(view: View, principal: str, number: int) -> int | None:
    """The cursor of a principal's notification of a number; 0 before the first one, None after the last one."""
    if not number:
        return 0
    mine = select(inbox.c.cursor).where(inbox.c.principal == principal).order_by(inbox.c.cursor)
    found: int | None = view.execute(mine.offset(number - 1).limit(1)).scalar()
    return found


def _mine_after(view: View, principal: str, after: int) -> ColumnElement[bool]:
    mine = (inbox.c.principal == principal) & (inbox.c.cursor > after)
    if view.until is not None:
        mine &= inbox.c.cursor.in_(select(ledger.c.seq).where(ledger.c.at <= view.until))
    return mine


@dataclass(frozen=True, slots=True)
class Cursors:
    """How far a principal has read its inbox, and how far its pushes were sent: alerts, and signals."""

    seen: int = 0
    pushed: int = 0
    signals: int = 0

    def of(self, method: str) -> int:
        """Returns how far the pushes of a method were sent."""
        return self.signals if method == SIGNALS else self.pushed


def cursors_of(view: View, principal: str) -> Cursors:
    """A principal's cursors."""
    if view.until is not None and (noted := snapshot.body_at(view, _CURSORS, principal)):
        return Cursors(noted["seen"], noted["pushed"], noted["signals"])
    row = (
        None
        if view.until is not None
        else view.execute(select(cursors).where(cursors.c.principal == principal)).first()
    )
    return Cursors(row.seen, row.pushed, row.signals) if row else Cursors()


def move_cursors(journal: Journal, principal: str, *, seen: int = 0, pushed: int = 0, signals: int = 0) -> None:
    """Move a principal's cursors forward, at most to the last notification in its inbox; `signals` to the last entry."""
    known = cursors_of(journal.view, principal)
    newest = select(func.max(inbox.c.cursor)).where(inbox.c.principal == principal)
    most = journal.view.execute(newest).scalar() or 0
    moved = Cursors(
        max(known.seen, min(seen, most)),
        max(known.pushed, min(pushed, most)),
        max(known.signals, min(signals, journal.seq)),
    )
    if moved == known:
        return
    values = asdict(moved)
    if not journal.view.execute(update(cursors).where(cursors.c.principal == principal), values).rowcount:
        journal.view.execute(insert(cursors), {"principal": principal, **values})
    journal.note(_CURSORS, principal, values)


# Subscriptions


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """Which notifications are pushed to a principal."""

    filter: AlertFilter
    created_at: float


def subscribe(journal: Journal, principal: str, wanted: AlertFilter) -> PushSubscription:
    """Set a principal's only subscription. Alerts that fired before are not pushed."""
    values = {"symbols": sorted(wanted.symbols), "alert_types": sorted(wanted.alert_types), "created_at": journal.at}
    mine = subscriptions.c.principal == principal
    if not journal.view.execute(update(subscriptions).where(mine), values).rowcount:
        journal.view.execute(insert(subscriptions), {"principal": principal, **values})
    journal.note(_SUBSCRIPTION, principal, values)
    return PushSubscription(wanted, journal.at)


def unsubscribe(journal: Journal, principal: str) -> bool:
    """Remove a principal's subscription and its queued pushes. Returns True if there was a subscription."""
    mine = (pushes.c.principal == principal) & (pushes.c.method == ALERT_TRIGGERED)
    journal.view.execute(delete(pushes).where(mine))
    ended = journal.view.execute(delete(subscriptions).where(subscriptions.c.principal == principal)).rowcount
    if ended:
        journal.note(_SUBSCRIPTION, principal, None)
    return bool(ended)


def subscription(view: View, principal: str) -> PushSubscription | None:
    """A principal's subscription; None if there is none."""
    if view.until is not None:
        noted = snapshot.body_at(view, _SUBSCRIPTION, principal)
        return _subscribed(**noted) if noted else None
    row = view.execute(select(subscriptions).where(subscriptions.c.principal == principal)).first()
    return _subscribed(row.symbols, row.alert_types, row.created_at) if row else None


def _subscribed(symbols: list[str], alert_types: list[str], created_at: float) -> PushSubscription:
    return PushSubscription(AlertFilter(frozenset(symbols), frozenset(alert_types)), created_at)


def enqueue(view: View, principal: str, name: str, queued: Notification, now: float) -> None:
    """Queue a push, whose name is unique, and remove pushes that are too old or exceed the queue's size.

    The times of a principal's pushes grow, even if the machine's clock does not: they are the ids of events.
    """
    latest = view.execute(select(func.max(pushes.c.queued)).where(pushes.c.principal == principal)).scalar()
    at = max(microseconds(now), 0 if latest is None else microseconds(latest) + 1) / 1e6
    values = {"alert_id": name, "principal": principal, "method": queued.method, "queued": at}
    view.execute(insert(pushes), {**values, "cursor": queued.cursor, "body": queued.body})
    mine = (pushes.c.principal == principal) & (pushes.c.method == queued.method)
    newest = select(pushes.c.cursor).where(mine).order_by(pushes.c.cursor.desc()).offset(QUEUE_MOST).limit(1)
    too_many = view.execute(newest).scalar()
    if too_many is not None:
        view.execute(delete(pushes).where(mine & (pushes.c.cursor <= too_many)))
    view.execute(delete(pushes).where(mine & (pushes.c.queued <= now - QUEUE_SECONDS)))


def microseconds(at: float) -> int:
    """A time in microseconds, which a float has exactly."""
    return round(at * 1e6)


def queued(view: View, principal: str, after: Mapping[str, int], now: float) -> list[Notification]:
    """The pushes that wait, oldest first; `after` has the cursor of each method that is wanted."""
    if view.until is not None and ALERT_TRIGGERED in after:
        others = {method: cursor for method, cursor in after.items() if method != ALERT_TRIGGERED}
        found = _queued_at(view, principal, after[ALERT_TRIGGERED]) + (
            queued(view, principal, others, now) if others else []
        )
        return sorted(found, key=lambda each: each.cursor)
    later = or_(*((pushes.c.method == method) & (pushes.c.cursor > cursor) for method, cursor in after.items()))
    mine = (pushes.c.principal == principal) & (pushes.c.queued > now - QUEUE_SECONDS) & later
    if view.until is not None:
        mine &= pushes.c.cursor.in_(select(ledger.c.seq).where(ledger.c.at <= view.until))
    rows = view.execute(select(pushes).where(mine).order_by(pushes.c.cursor))
    return [Notification(row.cursor, row.body, row.method, row.queued) for row in rows]


def _queued_at(view: View, principal: str, after: int) -> list[Notification]:
    """The alerts that waited to be pushed at the view's time, computed from the ledger because the queue has changed since.

    These are the notifications that passed the filter of the subscription at their time, after the last unsubscription.
    """
    noted = (ledger.c.kind == _SUBSCRIPTION) & (ledger.c.key == principal) & (ledger.c.at <= view.until)
    rows = view.execute(select(ledger.c.seq, ledger.c.body).where(noted).order_by(ledger.c.seq))
    changes = [(row.seq, json.loads(row.body)) for row in rows]
    ended = max((seq for seq, wanted in changes if wanted is None), default=0)
    filters = [(seq, wanted) for seq, wanted in changes if seq > ended]
    if not filters:
        return []
    fired = select(
        inbox.c.cursor, inbox.c.body, inbox.c.created_at, *(column.label(f"alert_{column.name}") for column in alerts.c)
    )
    chosen = fired.join(alerts, alerts.c.id == inbox.c.alert_id).where(_mine_after(view, principal, max(after, ended)))
    found = []
    for row in view.execute(chosen.order_by(inbox.c.cursor)):
        wanted = next((wanted for seq, wanted in reversed(filters) if seq < row.cursor), None)
        alert = from_row(Alert, {column.name: getattr(row, f"alert_{column.name}") for column in alerts.c})
        if wanted and _subscribed(**wanted).filter.takes(alert):
            found.append(Notification(row.cursor, row.body, queued=row.created_at))
    return found[-QUEUE_MOST:]
