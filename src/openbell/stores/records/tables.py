"""The tables. Amounts are text, times are epoch seconds: the same on SQLite and PostgreSQL, nothing lost on the way.

A table that the ledger rebuilds has a `seq`: the entry that wrote its row last. `migrations/` brings a database here.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.sqlite import INTEGER

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
Number = BigInteger().with_variant(INTEGER, "sqlite")
Time = Float(53)

ledger = Table(
    "ledger",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("at", Time, nullable=False),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("prev", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
Index("ix_ledger_kind_key", ledger.c.kind, ledger.c.key)
Index("ix_ledger_at_seq", ledger.c.at, ledger.c.seq)

accounts = Table(
    "accounts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("broker", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("cash", Text, nullable=False),
    Column("token", Text),
    Column("created_at", Time, nullable=False),
    Column("seq", Number, nullable=False),
)

orders = Table(
    "orders",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("side", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("quantity", Text, nullable=False),
    Column("opening", Text, nullable=False),
    Column("time_in_force", Text, nullable=False),
    Column("placed_at", Time, nullable=False),
    Column("spelling", Text, nullable=False),
    Column("limit_price", Text),
    Column("stop_price", Text),
    Column("take_profit", Text),
    Column("stop_loss", Text),
    Column("role", Text, nullable=False),
    Column("parent", Text),
    Column("client_order_id", Text),
    Column("expires_at", Time),
    Column("state", Text, nullable=False),
    Column("triggered", Boolean, nullable=False),
    Column("filled", Text, nullable=False),
    Column("paid", Text, nullable=False),
    Column("fees", Text, nullable=False),
    Column("broker_id", Text),
    Column("reason", Text),
    Column("updated_at", Time, nullable=False),
    Column("seq", Number, nullable=False),
    UniqueConstraint("account", "principal", "client_order_id"),
)
Index("ix_orders_account_state", orders.c.account, orders.c.state)
Index("ix_orders_account_seq", orders.c.account, orders.c.seq)
Index("ix_orders_parent", orders.c.parent)

requests = Table(
    # What was asked for, by digest and the machine's own time: finds doubles and those who ask too often.
    "requests",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("account", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("received", Time, nullable=False),
)
Index("ix_requests_account_received", requests.c.account, requests.c.received)

fills = Table(
    "fills",
    metadata,
    Column("id", Text, primary_key=True),
    Column("order_id", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("side", Text, nullable=False),
    Column("quantity", Text, nullable=False),
    Column("price", Text, nullable=False),
    Column("fee", Text, nullable=False),
    Column("at", Time, nullable=False),
    Column("bar", Number),
    Column("bar_hash", Text),
    Column("seq", Number, nullable=False),
)
Index("ix_fills_account_seq", fills.c.account, fills.c.seq)
Index("ix_fills_account_at", fills.c.account, fills.c.at)
Index("ix_fills_order_id", fills.c.order_id)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("confidence", Time, nullable=False),
    Column("opportunity_score", Time),
    Column("reasoning", Text, nullable=False),
    Column("tool_calls", JSON(none_as_null=True)),
    Column("created_at", Time, nullable=False),
    Column("seq", Number, nullable=False),
)
Index("ix_decisions_principal_seq", decisions.c.principal, decisions.c.seq)

alerts = Table(
    "alerts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("spelling", Text, nullable=False),
    Column("interval", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("set_at", Time, nullable=False),
    Column("threshold", Text),
    Column("indicator", Text),
    Column("signal", Text),
    Column("state", Text, nullable=False),
    Column("fired_at", Time),
    Column("value", Time),
    Column("bar_hash", Text),
    Column("updated_at", Time, nullable=False),
    Column("seq", Number, nullable=False),
)
Index("ix_alerts_state_seq", alerts.c.state, alerts.c.seq)
Index("ix_alerts_principal_state", alerts.c.principal, alerts.c.state)

inbox = Table(
    # The cursor is the ledger entry that put the notification here: it grows, and no two are the same.
    "inbox",
    metadata,
    Column("alert_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("cursor", Number, nullable=False),
    Column("body", JSON, nullable=False),
    Column("created_at", Time, nullable=False),
)
Index("ix_inbox_principal_cursor", inbox.c.principal, inbox.c.cursor)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("symbols", JSON, nullable=False),
    Column("alert_types", JSON, nullable=False),
    Column("created_at", Time, nullable=False),
)

cursors = Table(
    # How far a principal has read its inbox, and how far its pushes were sent.
    "cursors",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("seen", Number, nullable=False),
    Column("pushed", Number, nullable=False),
)

pushes = Table(
    # Notifications for a subscriber, kept for an hour of the machine's own time.
    "pushes",
    metadata,
    Column("alert_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("cursor", Number, nullable=False),
    Column("body", JSON, nullable=False),
    Column("queued", Time, nullable=False),
)
Index("ix_pushes_principal_cursor", pushes.c.principal, pushes.c.cursor)

marks = Table(
    # How far the engine has looked: nothing that the ledger must tell.
    "marks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("until", Time, nullable=False),
)

checkpoints = Table(
    # An account as the ledger has it after an entry, so that a desk of an earlier clock need not fold all of it.
    "checkpoints",
    metadata,
    Column("account", Text, primary_key=True),
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("at", Time, nullable=False),
    Column("body", JSON, nullable=False),
)

troubles = Table(
    # What keeps the engine from its work, for `openbell doctor`; a row is removed when it works again.
    "troubles",
    metadata,
    Column("name", Text, primary_key=True),
    Column("since", Time, nullable=False),
    Column("reason", Text, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("token", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    Column("expires", Time, nullable=False),
)

switches = Table(
    "switches",
    metadata,
    Column("name", Text, primary_key=True),
    Column("reason", Text),
    Column("at", Time, nullable=False),
    Column("seq", Number, nullable=False),
)

JOURNALED = {
    "account": (accounts, "name"),
    "order": (orders, "id"),
    "fill": (fills, "id"),
    "decision": (decisions, "id"),
    "alert": (alerts, "id"),
    "switch": (switches, "name"),
}
"""The kinds of entries that are rows of a table, and the column that names one. A verdict is in the ledger alone."""
