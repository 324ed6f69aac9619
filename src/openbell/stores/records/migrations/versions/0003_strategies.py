"""Strategy specs, their implementations, signals, consensus and figures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the tables."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "specs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("seq", number, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_specs")),
        sa.UniqueConstraint("principal", "name", name=op.f("uq_specs_principal_name")),
    )
    op.create_table(
        "implementations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("spec_id", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("timeframe", sa.Text(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("first", number, nullable=False),
        sa.Column("trained_until", number, nullable=False),
        sa.Column("found_at", sa.Float(precision=53), nullable=False),
        sa.Column("changed_at", sa.Float(precision=53), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("seq", number, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_implementations")),
    )
    op.create_table(
        "searches",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("timeframe", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("bars", sa.Integer(), nullable=False),
        sa.Column("first", number, nullable=False),
        sa.Column("until", number, nullable=False),
        sa.Column("digest", number, nullable=False),
        sa.Column("costs", sa.JSON(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("seq", number, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_searches")),
    )
    op.create_table(
        "signals",
        sa.Column("implementation_id", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("signal", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(precision=53), nullable=False),
        sa.Column("triggered_at", sa.Float(precision=53), nullable=False),
        sa.Column("bar_hash", sa.Text(), nullable=False),
        sa.Column("seq", number, nullable=False),
        sa.PrimaryKeyConstraint("implementation_id", name=op.f("pk_signals")),
    )
    op.create_table(
        "consensuses",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("bullish", sa.Integer(), nullable=False),
        sa.Column("bearish", sa.Integer(), nullable=False),
        sa.Column("neutral", sa.Integer(), nullable=False),
        sa.Column("consensus", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(precision=53), nullable=False),
        sa.Column("signals", sa.JSON(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("seq", number, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consensuses")),
    )
    op.create_table(
        "performance",
        sa.Column("implementation_id", sa.Text(), nullable=False),
        sa.Column("until", sa.Float(precision=53), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("implementation_id", name=op.f("pk_performance")),
    )
    op.create_index("ix_implementations_symbol_timeframe", "implementations", ["symbol", "timeframe"], unique=False)
    op.create_index("ix_implementations_spec_id", "implementations", ["spec_id"], unique=False)
