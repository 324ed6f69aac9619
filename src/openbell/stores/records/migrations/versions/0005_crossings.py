"""Subscriptions to crossings, and their alerts in the queue of pushes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table and add the columns."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "crossing_subscriptions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("spelling", sa.Text(), nullable=False),
        sa.Column("crossings", sa.JSON(), nullable=False),
        sa.Column("throttle_ms", number, nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("seen", number, nullable=False),
        sa.Column("sent_at", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crossing_subscriptions")),
    )
    op.create_index("ix_crossing_subscriptions_principal", "crossing_subscriptions", ["principal"], unique=False)
    method = sa.Column("method", sa.Text(), nullable=False, server_default="notifications/alert_triggered")
    op.add_column("pushes", method)
    op.add_column("cursors", sa.Column("signals", number, nullable=False, server_default="0"))
