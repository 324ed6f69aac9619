"""The tables of strategies: specs, implementations, searches, signals, consensus and figures."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, Index, Integer, Table, Text, UniqueConstraint

from openbell.stores.records.columns import Number, Time, metadata

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
