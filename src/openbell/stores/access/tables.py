"""The tables. Times are epoch seconds; scopes are separated by spaces; hashes are hexadecimal."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import JSON, Column, Index, Integer, MetaData, Table, Text, UniqueConstraint

from openbell.stores.records.schema import NAMES, Tables, Time

metadata = MetaData(naming_convention=NAMES)
ACCESS = Tables(metadata, "0001", Path(__file__).with_name("migrations"))

users = Table(
    "users",
    metadata,
    Column("name", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("salt", Text, nullable=False),
    Column("n", Integer, nullable=False),
    Column("r", Integer, nullable=False),
    Column("p", Integer, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("changed_at", Time, nullable=False),
)

clients = Table(
    # Clients that registered themselves, and copies of client-id metadata documents.
    "clients",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("redirect_uris", JSON, nullable=False),
    Column("grant_types", JSON, nullable=False),
    Column("auth_method", Text, nullable=False),
    Column("secret", Text),
    Column("address", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("fresh_until", Time),
)
Index("ix_clients_kind_created_at", clients.c.kind, clients.c.created_at)

grants = Table(
    # A user's consent to a client. Its code and all tokens that follow from it are one family.
    "grants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("client_id", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    Column("revoked_at", Time),
)
Index("ix_grants_client_id", grants.c.client_id)
Index("ix_grants_subject", grants.c.subject)
Index("ix_grants_expires_at", grants.c.expires_at)

codes = Table(
    "codes",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("grant_id", Text, nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("challenge", Text, nullable=False),
    Column("expires_at", Time, nullable=False),
    Column("used_at", Time),
)
Index("ix_codes_grant_id", codes.c.grant_id)

tokens = Table(
    "tokens",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("grant_id", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("expires_at", Time, nullable=False),
    Column("rotated_at", Time),
)
Index("ix_tokens_grant_id", tokens.c.grant_id)
Index("ix_tokens_kind_expires_at", tokens.c.kind, tokens.c.expires_at)

static_tokens = Table(
    "static_tokens",
    metadata,
    Column("name", Text, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),
    UniqueConstraint("hash"),
)

attempts = Table(
    # Sign-ins of a user or from an address that failed or have not ended yet.
    "attempts",
    metadata,
    Column("key", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("last_at", Time, nullable=False),
    Column("locked_until", Time, nullable=False),
)
Index("ix_attempts_last_at", attempts.c.last_at)

forms = Table(
    # Consent forms that were submitted, until they would have expired: each is accepted once.
    "forms",
    metadata,
    Column("nonce", Text, primary_key=True),
    Column("expires_at", Time, nullable=False),
)

keys = Table(
    # Keys that all gateway processes share.
    "keys",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
