"""The tables. Amounts are text and times are epoch seconds, so that SQLite and PostgreSQL store both exactly.

Tables that can be rebuilt from the ledger have a `seq`: the number of the entry that wrote the row last. Those of webhooks
are not rebuilt, because the ledger holds no secrets.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, MetaData, Table, Text, UniqueConstraint

from openbell.stores.records.schema import NAMES, Number, Tables, Time

metadata = MetaData(naming_convention=NAMES)
RECORDS = Tables(metadata, "0001", Path(__file__).with_name("migrations"))

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
    # Requests for orders, by digest and the machine's time: to find duplicates and to limit the rate.
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
    # The cursor is the number of the ledger entry that delivered the notification: unique and growing.
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
    # How far the alerts of its crossing subscriptions were pushed.
    Column("signals", Number, nullable=False),
)

pushes = Table(
    # Notifications that wait to be pushed to a subscriber, for at most an hour of the machine's time.
    "pushes",
    metadata,
    Column("alert_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("cursor", Number, nullable=False),
    Column("body", JSON, nullable=False),
    Column("queued", Time, nullable=False),
    Column("method", Text, nullable=False),
)
Index("ix_pushes_principal_cursor", pushes.c.principal, pushes.c.cursor)

crossing_subscriptions = Table(
    # Subscriptions to crossings of clients that keep no connection.
    "crossing_subscriptions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("spelling", Text, nullable=False),
    Column("crossings", JSON, nullable=False),
    Column("throttle_ms", Number, nullable=False),
    Column("created_at", Time, nullable=False),
    # The open time of the bar of the last alert, or of the last bar before the subscription; −1 if there was none.
    Column("seen", Number, nullable=False),
    # When the last alert was sent, in epoch seconds of the machine's clock.
    Column("sent_at", Time),
)
Index("ix_crossing_subscriptions_principal", crossing_subscriptions.c.principal)

marks = Table(
    # How far the engine has processed something (`progress`); not part of the ledger.
    "marks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("until", Time, nullable=False),
)

checkpoints = Table(
    # An account as computed from the ledger up to an entry, so that reads of the past need not start at the first entry.
    "checkpoints",
    metadata,
    Column("account", Text, primary_key=True),
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("at", Time, nullable=False),
    Column("body", JSON, nullable=False),
)

troubles = Table(
    # Failures that keep the engine from some of its work, for `openbell doctor`; removed when the work succeeds.
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

specs = Table(
    # Strategy specs that clients have submitted. Canonical ones are files of the program.
    "specs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("content", JSON, nullable=False),
    Column("reasoning", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("seq", Number, nullable=False),
    UniqueConstraint("principal", "name"),
)

implementations = Table(
    "implementations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("spec_id", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("timeframe", Text, nullable=False),
    Column("parameters", JSON, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("first", Number, nullable=False),
    Column("trained_until", Number, nullable=False),
    Column("found_at", Time, nullable=False),
    Column("changed_at", Time, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("figures", JSON, nullable=False),
    Column("seq", Number, nullable=False),
)
Index("ix_implementations_symbol_timeframe", implementations.c.symbol, implementations.c.timeframe)
Index("ix_implementations_spec_id", implementations.c.spec_id)

searches = Table(
    # The last search of a series for implementations, by symbol, timeframe and principal.
    "searches",
    metadata,
    Column("id", Text, primary_key=True),
    Column("symbol", Text, nullable=False),
    Column("timeframe", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("bars", Integer, nullable=False),
    Column("first", Number, nullable=False),
    Column("until", Number, nullable=False),
    Column("digest", Number, nullable=False),
    Column("costs", JSON, nullable=False),
    Column("at", Time, nullable=False),
    Column("seq", Number, nullable=False),
)

signals = Table(
    # The latest signal of each active implementation.
    "signals",
    metadata,
    Column("implementation_id", Text, primary_key=True),
    Column("symbol", Text, nullable=False),
    Column("signal", Text, nullable=False),
    Column("confidence", Float(53), nullable=False),
    Column("triggered_at", Time, nullable=False),
    Column("bar_hash", Text, nullable=False),
    Column("seq", Number, nullable=False),
)

consensuses = Table(
    # The latest consensus of each symbol and principal, with the ledger entries of the signals that it counts.
    "consensuses",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("bullish", Integer, nullable=False),
    Column("bearish", Integer, nullable=False),
    Column("neutral", Integer, nullable=False),
    Column("consensus", Text, nullable=False),
    Column("confidence", Float(53), nullable=False),
    Column("signals", JSON, nullable=False),
    Column("at", Time, nullable=False),
    Column("seq", Number, nullable=False),
)

performance = Table(
    # The figures of implementations at a bar, computed from bars; not part of the ledger.
    "performance",
    metadata,
    Column("implementation_id", Text, primary_key=True),
    Column("until", Time, nullable=False),
    Column("body", JSON, nullable=False),
)


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

JOURNALED = {
    "account": (accounts, "name"),
    "order": (orders, "id"),
    "fill": (fills, "id"),
    "decision": (decisions, "id"),
    "alert": (alerts, "id"),
    "switch": (switches, "name"),
    "spec": (specs, "id"),
    "implementation": (implementations, "id"),
    "search": (searches, "id"),
    "signal": (signals, "implementation_id"),
    "consensus": (consensuses, "id"),
}
"""The table and the key column of each kind of ledger entry that has a row. Other kinds are in the ledger only."""
