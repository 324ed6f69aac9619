"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "accounts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("broker", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("cash", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_accounts")),
    )
    op.create_table(
        "alerts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("spelling", sa.Text(), nullable=False),
        sa.Column("interval", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("set_at", sa.Float(precision=53), nullable=False),
        sa.Column("threshold", sa.Text(), nullable=True),
        sa.Column("indicator", sa.Text(), nullable=True),
        sa.Column("signal", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("fired_at", sa.Float(precision=53), nullable=True),
        sa.Column("value", sa.Float(precision=53), nullable=True),
        sa.Column("bar_hash", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Float(precision=53), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
    )
    op.create_index("ix_alerts_principal_state", "alerts", ["principal", "state"], unique=False)
    op.create_index("ix_alerts_state_seq", "alerts", ["state", "seq"], unique=False)
    op.create_table(
        "decisions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(precision=53), nullable=False),
        sa.Column("opportunity_score", sa.Float(precision=53), nullable=True),
        sa.Column("reasoning", sa.Text(), nullable=False),
        sa.Column("tool_calls", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index("ix_decisions_principal_seq", "decisions", ["principal", "seq"], unique=False)
    op.create_table(
        "fills",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("side", sa.Text(), nullable=False),
        sa.Column("quantity", sa.Text(), nullable=False),
        sa.Column("price", sa.Text(), nullable=False),
        sa.Column("fee", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("bar", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("bar_hash", sa.Text(), nullable=True),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fills")),
    )
    op.create_index("ix_fills_account_seq", "fills", ["account", "seq"], unique=False)
    op.create_index("ix_fills_order_id", "fills", ["order_id"], unique=False)
    op.create_table(
        "inbox",
        sa.Column("alert_id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("cursor", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("seen", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("alert_id", name=op.f("pk_inbox")),
    )
    op.create_index("ix_inbox_principal_cursor", "inbox", ["principal", "cursor"], unique=False)
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("expires", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "ledger",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("prev", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_ledger")),
    )
    op.create_index("ix_ledger_kind_key", "ledger", ["kind", "key"], unique=False)
    op.create_table(
        "marks",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("until", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_marks")),
    )
    op.create_table(
        "orders",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("side", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("quantity", sa.Text(), nullable=False),
        sa.Column("opening", sa.Text(), nullable=False),
        sa.Column("time_in_force", sa.Text(), nullable=False),
        sa.Column("placed_at", sa.Float(precision=53), nullable=False),
        sa.Column("spelling", sa.Text(), nullable=False),
        sa.Column("limit_price", sa.Text(), nullable=True),
        sa.Column("stop_price", sa.Text(), nullable=True),
        sa.Column("take_profit", sa.Text(), nullable=True),
        sa.Column("stop_loss", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.Column("client_order_id", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.Float(precision=53), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("triggered", sa.Boolean(), nullable=False),
        sa.Column("filled", sa.Text(), nullable=False),
        sa.Column("paid", sa.Text(), nullable=False),
        sa.Column("fees", sa.Text(), nullable=False),
        sa.Column("broker_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Float(precision=53), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_orders")),
        sa.UniqueConstraint(
            "account", "principal", "client_order_id", name=op.f("uq_orders_account_principal_client_order_id")
        ),
    )
    op.create_index("ix_orders_account_seq", "orders", ["account", "seq"], unique=False)
    op.create_index("ix_orders_account_state", "orders", ["account", "state"], unique=False)
    op.create_index("ix_orders_parent", "orders", ["parent"], unique=False)
    op.create_table(
        "pushes",
        sa.Column("alert_id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("cursor", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("queued", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("alert_id", name=op.f("pk_pushes")),
    )
    op.create_index("ix_pushes_principal_cursor", "pushes", ["principal", "cursor"], unique=False)
    op.create_table(
        "requests",
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("received", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("order_id", name=op.f("pk_requests")),
    )
    op.create_index("ix_requests_account_received", "requests", ["account", "received"], unique=False)
    op.create_table(
        "subscriptions",
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbols", sa.JSON(), nullable=False),
        sa.Column("alert_types", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("principal", name=op.f("pk_subscriptions")),
    )
    op.create_table(
        "switches",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_switches")),
    )
