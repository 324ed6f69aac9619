"""Queries about webhooks, their deliveries, and the ledger entries that are sent to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Row, and_, delete, func, insert, select, update

from openbell.stores.records.journal import Journal, head_of
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import accounts, deliveries, inbox, ledger, received, webhooks

OUTBOUND, INBOUND = "outbound", "inbound"
CHANGED = "webhook"
"""The kind of ledger entries about a webhook that was added or removed."""
RECEIVED = "received"
"""The kind of ledger entries about an inbound request."""
MOST_DEAD = 1_000
"""How many dead deliveries of a webhook are kept."""
_SCAN = 5_000
"""How many ledger entries are read at once."""
_SENT_KINDS = ("alert", "fill")
_WAITING = deliveries.c.dead.is_(False)


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a principal."""

    id: str
    principal: str
    direction: str
    name: str
    """What an inbound one is called; empty for an outbound one."""
    url: str
    """Where an outbound one is sent; empty for an inbound one."""
    events: tuple[str, ...]
    symbols: frozenset[str]
    """Empty: all."""
    secret: str
    """Outbound: the signing key. Inbound: the SHA-256 of the secret in hexadecimal digits."""
    created_at: float
    since: int
    """The last ledger entry before it was added."""

    def __repr__(self) -> str:
        # Neither the secret nor the URL, which may hold one, can appear in a log.
        return f"<{self.direction} webhook {self.id}>"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one webhook, which waits to be sent or is dead."""

    id: str
    webhook_id: str
    seq: int
    """The ledger entry that it is about."""
    type: str
    body: str
    """The JSON text, sent as it is at every attempt."""
    queued: float
    """When it was queued, in epoch seconds of the machine's clock; so is `due`."""
    due: float
    attempts: int = 0
    dead: bool = False
    reason: str = ""
    """Why the last attempt failed."""


# Webhooks


def add(journal: Journal, webhook: Webhook, shown: Mapping[str, Any]) -> None:
    """Store a webhook. `shown` is what the ledger says of it: neither the secret nor the whole URL."""
    row = {name: getattr(webhook, name) for name in Webhook.__dataclass_fields__}
    lists = {"events": list(webhook.events), "symbols": sorted(webhook.symbols)}
    journal.view.execute(insert(webhooks), {**row, **lists})
    journal.note(CHANGED, webhook.id, {"principal": webhook.principal, "direction": webhook.direction, **shown})


def remove(journal: Journal, principal: str, webhook_id: str) -> bool:
    """Remove a webhook with its deliveries. Returns True if the principal had it."""
    mine = (webhooks.c.id == webhook_id) & (webhooks.c.principal == principal)
    if not journal.view.execute(delete(webhooks).where(mine)).rowcount:
        return False
    journal.view.execute(delete(deliveries).where(deliveries.c.webhook_id == webhook_id))
    journal.view.execute(delete(received).where(received.c.webhook_id == webhook_id))
    journal.note(CHANGED, webhook_id, None)
    return True


def of_principal(view: View, principal: str) -> list[Webhook]:
    """A principal's webhooks, oldest first."""
    query = select(webhooks).where(webhooks.c.principal == principal)
    return [_webhook(row) for row in view.execute(query.order_by(webhooks.c.created_at, webhooks.c.id))]


def inbound(view: View, webhook_id: str) -> Webhook | None:
    """The inbound webhook of an id; None if there is none."""
    wanted = (webhooks.c.id == webhook_id) & (webhooks.c.direction == INBOUND)
    row = view.execute(select(webhooks).where(wanted)).first()
    return _webhook(row) if row else None


def outbound(view: View) -> list[Webhook]:
    """All outbound webhooks."""
    return [_webhook(row) for row in view.execute(select(webhooks).where(webhooks.c.direction == OUTBOUND))]


def has_outbound(view: View) -> bool:
    """Returns True if there is an outbound webhook."""
    return view.execute(select(webhooks.c.id).where(webhooks.c.direction == OUTBOUND).limit(1)).first() is not None


def _webhook(row: Row[Any]) -> Webhook:
    values = {name: getattr(row, name) for name in Webhook.__dataclass_fields__}
    return Webhook(**{**values, "events": tuple(row.events), "symbols": frozenset(row.symbols)})


# The ledger as the outbox


@dataclass(frozen=True, slots=True)
class Recorded:
    """A fired alert or a fill, as the ledger has it."""

    seq: int
    at: float
    kind: str
    body: str
    notification: Mapping[str, Any] | None
    """The notification of an alert."""


def recorded_after(view: View, seq: int) -> tuple[list[Recorded], int]:
    """Returns the fired alerts and the fills after an entry, in order, and the entry up to which they were read."""
    through = min(head_of(view.connection).seq, seq + _SCAN)
    wanted = (ledger.c.seq > seq) & (ledger.c.seq <= through) & ledger.c.kind.in_(_SENT_KINDS)
    # Only the entry that fires an alert has a notification with its number.
    fired = and_(inbox.c.alert_id == ledger.c.key, inbox.c.cursor == ledger.c.seq)
    query = select(ledger.c.seq, ledger.c.at, ledger.c.kind, ledger.c.body, inbox.c.body.label("notification"))
    rows = view.execute(query.outerjoin(inbox, fired).where(wanted).order_by(ledger.c.seq))
    return [Recorded(**row._asdict()) for row in rows if row.kind == "fill" or row.notification is not None], through


def brokers(view: View) -> dict[str, str]:
    """The broker of each account."""
    return {row.name: row.broker for row in view.execute(select(accounts.c.name, accounts.c.broker))}


# Deliveries


def queue(view: View, new: Sequence[Delivery]) -> None:
    """Store deliveries that are to be sent."""
    if new:
        view.execute(insert(deliveries), [asdict(each) for each in new])


def next_deliveries(view: View) -> list[tuple[Delivery, Webhook]]:
    """The oldest waiting delivery of each webhook: later ones wait for it."""
    first = (
        select(deliveries.c.webhook_id, func.min(deliveries.c.seq).label("seq"))
        .where(_WAITING)
        .group_by(deliveries.c.webhook_id)
        .subquery()
    )
    same = and_(first.c.webhook_id == deliveries.c.webhook_id, first.c.seq == deliveries.c.seq)
    chosen = {row.webhook_id: _delivery(row) for row in view.execute(select(deliveries).join(first, same))}
    return [(chosen[each.id], each) for each in outbound(view) if each.id in chosen]


def delivered(view: View, delivery: Delivery) -> None:
    """Remove a delivery that has arrived."""
    view.execute(delete(deliveries).where(deliveries.c.id == delivery.id))


def postpone(view: View, delivery: Delivery, due: float, reason: str) -> None:
    """Store a failed attempt and when to try again."""
    values = {"attempts": delivery.attempts + 1, "due": due, "reason": reason}
    view.execute(update(deliveries).where(deliveries.c.id == delivery.id), values)


def give_up(view: View, delivery: Delivery, reason: str) -> None:
    """Make a delivery dead after a failed attempt, and remove the oldest dead ones of its webhook beyond `MOST_DEAD`."""
    values = {"attempts": delivery.attempts + 1, "dead": True, "reason": reason}
    view.execute(update(deliveries).where(deliveries.c.id == delivery.id), values)
    dead = deliveries.c.dead.is_(True) & (deliveries.c.webhook_id == delivery.webhook_id)
    newest = select(deliveries.c.seq).where(dead).order_by(deliveries.c.seq.desc()).offset(MOST_DEAD).limit(1)
    too_old = view.execute(newest).scalar()
    if too_old is not None:
        view.execute(delete(deliveries).where(dead & (deliveries.c.seq <= too_old)))


def dead_of(view: View, principal: str) -> list[Delivery]:
    """A principal's dead deliveries, oldest first."""
    mine = select(webhooks.c.id).where(webhooks.c.principal == principal)
    query = select(deliveries).where(deliveries.c.dead.is_(True) & deliveries.c.webhook_id.in_(mine))
    return [_delivery(row) for row in view.execute(query.order_by(deliveries.c.seq, deliveries.c.id))]


def revive(journal: Journal, ids: Iterable[str], now: float) -> None:
    """Let dead deliveries be sent again from now on, with the same ids and bodies."""
    values = {"dead": False, "attempts": 0, "queued": now, "due": now}
    for each in ids:
        journal.view.execute(update(deliveries).where(deliveries.c.id == each), values)
        journal.note(CHANGED, each, {"retry": True})


def counts(view: View) -> dict[tuple[str, bool], int]:
    """How many deliveries there are, by webhook and by whether they are dead."""
    query = select(deliveries.c.webhook_id, deliveries.c.dead, func.count().label("number"))
    rows = view.execute(query.group_by(deliveries.c.webhook_id, deliveries.c.dead))
    return {(row.webhook_id, bool(row.dead)): int(row.number) for row in rows}


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(**{name: getattr(row, name) for name in Delivery.__dataclass_fields__})


# Inbound requests


def is_repeated(view: View, webhook_id: str, digest: str, now: float, window: float) -> bool:
    """Returns True if the same body has arrived within `window` seconds; otherwise stores that it has arrived now.

    Times of the future count as old: the machine's clock was set back.
    """
    mine = received.c.webhook_id == webhook_id
    recent = (received.c.at > now - window) & (received.c.at <= now)
    view.execute(delete(received).where(mine & ~recent))
    if view.execute(select(received.c.at).where(mine & (received.c.digest == digest))).first() is not None:
        return True
    view.execute(insert(received), {"webhook_id": webhook_id, "digest": digest, "at": now})
    return False


def deliver_to_inbox(journal: Journal, principal: str, body: Mapping[str, Any]) -> int:
    """Write a notification of an inbound webhook into the ledger and its owner's inbox; returns its cursor."""
    name = str(body["alert_id"])
    cursor = journal.note(RECEIVED, name, dict(body))
    values = {"alert_id": name, "principal": principal, "cursor": cursor, "body": dict(body), "created_at": journal.at}
    journal.view.execute(insert(inbox), values)
    return cursor
