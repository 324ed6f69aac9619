"""The first tables. Later changes are migrations of their own, and this one never changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.Float(53)


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "accounts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("broker", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("cash", sa.Text(), nullable=False),
        sa.Column("token", sa.Text()),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
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
        sa.Column("set_at", TIME, nullable=False),
        sa.Column("threshold", sa.Text()),
        sa.Column("indicator", sa.Text()),
        sa.Column("signal", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("fired_at", TIME),
        sa.Column("value", TIME),
        sa.Column("bar_hash", sa.Text()),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
    )
    op.create_index("ix_alerts_principal_state", "alerts", ["principal", "state"])
    op.create_index("ix_alerts_state_seq", "alerts", ["state", "seq"])
    op.create_table(
        "checkpoints",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("seq", NUMBER, autoincrement=False, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("account", "seq", name=op.f("pk_checkpoints")),
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
        sa.Column("confidence", TIME, nullable=False),
        sa.Column("signals", sa.JSON(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consensuses")),
    )
    op.create_table(
        "crossing_subscriptions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("spelling", sa.Text(), nullable=False),
        sa.Column("crossings", sa.JSON(), nullable=False),
        sa.Column("throttle_ms", NUMBER, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seen", NUMBER, nullable=False),
        sa.Column("sent_at", TIME),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crossing_subscriptions")),
    )
    op.create_index("ix_crossing_subscriptions_principal", "crossing_subscriptions", ["principal"])
    op.create_table(
        "cursors",
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("seen", NUMBER, nullable=False),
        sa.Column("pushed", NUMBER, nullable=False),
        sa.Column("signals", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("principal", name=op.f("pk_cursors")),
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("confidence", TIME, nullable=False),
        sa.Column("opportunity_score", TIME),
        sa.Column("reasoning", sa.Text(), nullable=False),
        sa.Column("tool_calls", sa.JSON(none_as_null=True)),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index("ix_decisions_principal_seq", "decisions", ["principal", "seq"])
    op.create_table(
        "deliveries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("queued", TIME, nullable=False),
        sa.Column("due", TIME, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("dead", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("webhook_id", "seq", name=op.f("uq_deliveries_webhook_id_seq")),
    )
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
        sa.Column("at", TIME, nullable=False),
        sa.Column("bar", NUMBER),
        sa.Column("bar_hash", sa.Text()),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fills")),
    )
    op.create_index("ix_fills_account_at", "fills", ["account", "at"])
    op.create_index("ix_fills_account_seq", "fills", ["account", "seq"])
    op.create_index("ix_fills_order_id", "fills", ["order_id"])
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
        sa.Column("first", NUMBER, nullable=False),
        sa.Column("trained_until", NUMBER, nullable=False),
        sa.Column("found_at", TIME, nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_implementations")),
    )
    op.create_index("ix_implementations_spec_id", "implementations", ["spec_id"])
    op.create_index("ix_implementations_symbol_timeframe", "implementations", ["symbol", "timeframe"])
    op.create_table(
        "inbox",
        sa.Column("alert_id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("cursor", NUMBER, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("alert_id", name=op.f("pk_inbox")),
    )
    op.create_index("ix_inbox_principal_cursor", "inbox", ["principal", "cursor"])
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("expires", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "ledger",
        sa.Column("seq", NUMBER, autoincrement=False, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("prev", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_ledger")),
    )
    op.create_index("ix_ledger_at_seq", "ledger", ["at", "seq"])
    op.create_index("ix_ledger_kind_key", "ledger", ["kind", "key"])
    op.create_table(
        "marks",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("until", TIME, nullable=False),
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
        sa.Column("placed_at", TIME, nullable=False),
        sa.Column("spelling", sa.Text(), nullable=False),
        sa.Column("limit_price", sa.Text()),
        sa.Column("stop_price", sa.Text()),
        sa.Column("take_profit", sa.Text()),
        sa.Column("stop_loss", sa.Text()),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text()),
        sa.Column("client_order_id", sa.Text()),
        sa.Column("expires_at", TIME),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("triggered", sa.Boolean(), nullable=False),
        sa.Column("filled", sa.Text(), nullable=False),
        sa.Column("paid", sa.Text(), nullable=False),
        sa.Column("fees", sa.Text(), nullable=False),
        sa.Column("broker_id", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_orders")),
        sa.UniqueConstraint(
            "account", "principal", "client_order_id", name=op.f("uq_orders_account_principal_client_order_id")
        ),
    )
    op.create_index("ix_orders_account_seq", "orders", ["account", "seq"])
    op.create_index("ix_orders_account_state", "orders", ["account", "state"])
    op.create_index("ix_orders_parent", "orders", ["parent"])
    op.create_table(
        "performance",
        sa.Column("implementation_id", sa.Text(), nullable=False),
        sa.Column("until", TIME, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("implementation_id", name=op.f("pk_performance")),
    )
    op.create_table(
        "pushes",
        sa.Column("alert_id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("cursor", NUMBER, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("queued", TIME, nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("alert_id", name=op.f("pk_pushes")),
    )
    op.create_index("ix_pushes_principal_cursor", "pushes", ["principal", "cursor"])
    op.create_table(
        "received",
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", "digest", name=op.f("pk_received")),
    )
    op.create_table(
        "requests",
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("received", TIME, nullable=False),
        sa.PrimaryKeyConstraint("order_id", name=op.f("pk_requests")),
    )
    op.create_index("ix_requests_account_received", "requests", ["account", "received"])
    op.create_table(
        "searches",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("timeframe", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("bars", sa.Integer(), nullable=False),
        sa.Column("first", NUMBER, nullable=False),
        sa.Column("until", NUMBER, nullable=False),
        sa.Column("digest", NUMBER, nullable=False),
        sa.Column("costs", sa.JSON(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_searches")),
    )
    op.create_table(
        "signals",
        sa.Column("implementation_id", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("signal", sa.Text(), nullable=False),
        sa.Column("confidence", TIME, nullable=False),
        sa.Column("triggered_at", TIME, nullable=False),
        sa.Column("bar_hash", sa.Text(), nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("implementation_id", name=op.f("pk_signals")),
    )
    op.create_table(
        "specs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_specs")),
        sa.UniqueConstraint("principal", "name", name=op.f("uq_specs_principal_name")),
    )
    op.create_table(
        "subscriptions",
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("symbols", sa.JSON(), nullable=False),
        sa.Column("alert_types", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("principal", name=op.f("pk_subscriptions")),
    )
    op.create_table(
        "switches",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("at", TIME, nullable=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_switches")),
    )
    op.create_table(
        "troubles",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_troubles")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("symbols", sa.JSON(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("since", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index("ix_webhooks_principal", "webhooks", ["principal"])
