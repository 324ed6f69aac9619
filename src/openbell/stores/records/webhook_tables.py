"""The tables of webhooks. They are not rebuilt from the ledger, which holds no secrets."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Index, Integer, Table, Text, UniqueConstraint

from openbell.stores.records.columns import Number, Time, metadata

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("events", JSON, nullable=False),
    Column("symbols", JSON, nullable=False),
    # Outbound: the signing key in clear. Inbound: the SHA-256 of the secret.
    Column("secret", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    # The last ledger entry before it was added: only later entries are sent.
    Column("since", Number, nullable=False),
)
Index("ix_webhooks_principal", webhooks.c.principal)

deliveries = Table(
    # Events that wait to be sent, and those that were given up (dead). Delivered ones are deleted.
    "deliveries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("webhook_id", Text, nullable=False),
    Column("seq", Number, nullable=False),
    Column("type", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("queued", Time, nullable=False),
    Column("due", Time, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("dead", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    UniqueConstraint("webhook_id", "seq"),
)

received = Table(
    # Bodies of inbound requests of the last minute, to recognise repeated ones.
    "received",
    metadata,
    Column("webhook_id", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("at", Time, nullable=False),
)
