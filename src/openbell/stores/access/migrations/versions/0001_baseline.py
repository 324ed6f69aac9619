"""The first tables. Later changes are migrations of their own, and this one never changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TIME = sa.Float(53)


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "attempts",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.Column("locked_until", TIME, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_attempts")),
    )
    op.create_index("ix_attempts_last_at", "attempts", ["last_at"])
    op.create_table(
        "clients",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("redirect_uris", sa.JSON(), nullable=False),
        sa.Column("grant_types", sa.JSON(), nullable=False),
        sa.Column("auth_method", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text()),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("fresh_until", TIME),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clients")),
    )
    op.create_index("ix_clients_kind_created_at", "clients", ["kind", "created_at"])
    op.create_table(
        "codes",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=False),
        sa.Column("challenge", sa.Text(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_codes")),
    )
    op.create_index("ix_codes_grant_id", "codes", ["grant_id"])
    op.create_table(
        "forms",
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("nonce", name=op.f("pk_forms")),
    )
    op.create_table(
        "grants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grants")),
    )
    op.create_index("ix_grants_client_id", "grants", ["client_id"])
    op.create_index("ix_grants_expires_at", "grants", ["expires_at"])
    op.create_index("ix_grants_subject", "grants", ["subject"])
    op.create_table(
        "keys",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_keys")),
    )
    op.create_table(
        "static_tokens",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_static_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_static_tokens_hash")),
    )
    op.create_table(
        "tokens",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("rotated_at", TIME),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_tokens")),
    )
    op.create_index("ix_tokens_grant_id", "tokens", ["grant_id"])
    op.create_index("ix_tokens_kind_expires_at", "tokens", ["kind", "expires_at"])
    op.create_table(
        "users",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("r", sa.Integer(), nullable=False),
        sa.Column("p", sa.Integer(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_users")),
    )
