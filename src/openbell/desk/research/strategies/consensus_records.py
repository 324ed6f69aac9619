"""Records the consensus of a symbol: whenever its votes differ, and in the transaction that retires one of its voters."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.stores.records import strategies as queries
from openbell.stores.records.journal import Journal
from openbell.strategies.consensus import Action, Vote, consensus_of

Votes = Sequence[tuple[Vote, int | None]]
"""Votes, each with the ledger entry of its signal; None if it has no signal."""


def record_consensus(
    journal: Journal, symbol: str, principal: str, costs: queries.Costs, votes: Votes, until: float
) -> None:
    """Record the consensus that a principal sees if it differs from the one before; without votes, its end."""
    key = queries.consensus_id(symbol, principal, costs)
    row = queries.consensus(journal.view, key)
    if row is None and not votes:
        return
    found = consensus_of([vote for vote, _ in votes])
    new = {
        "id": key,
        "principal": principal,
        "symbol": symbol,
        "bullish": found.bullish,
        "bearish": found.bearish,
        "neutral": found.neutral,
        "consensus": found.opinion.value,
        "confidence": found.confidence,
        "signals": sorted(entry for _, entry in votes if entry is not None),
        "at": float(until),
    }
    compared = ("bullish", "bearish", "neutral", "consensus", "signals")
    if row is None or any(row[name] != new[name] for name in compared):
        journal.put("consensus", new, new=row is None, happened=until)


def withdraw_votes(journal: Journal, symbol: str, costs: queries.Costs) -> None:
    """Record every consensus of a symbol again, without the votes of implementations that are no longer active."""
    active = {each.id for each in queries.followed(journal.view, costs)}
    for principal in sorted(queries.consensus_owners(journal.view, symbol, costs)):
        row = queries.consensus(journal.view, queries.consensus_id(symbol, principal, costs))
        counted = queries.signals_at(journal.view, row["signals"] if row else ())
        votes = [
            (Vote(Action(each["signal"]), each["confidence"]), int(each["seq"]))
            for each in counted
            if each["implementation_id"] in active
        ]
        record_consensus(journal, symbol, principal, costs, votes, journal.at)
