"""The recorded progress of an account: up to which minute its orders were matched with bars, by symbol."""

from __future__ import annotations

from collections.abc import Mapping

from openbell.stores.records import progress
from openbell.stores.records.journal import Journal

ENTRY = " through entry"
"""The end of the name of the ledger entry up to which the progress of a symbol is true."""


def save_progress(journal: Journal, account: str, complete_until: Mapping[str, int], end: int, seq: int) -> None:
    """Record that an account was advanced up to `end`, and the progress of each symbol; `seq` is that of `_Progress`."""
    progress.set_progress(journal.view, progress_key(account), end)
    for symbol, until in complete_until.items():
        progress.set_progress(journal.view, f"{progress_key(account)}{symbol}", until)
        progress.set_progress(journal.view, f"{progress_key(account)}{symbol}{ENTRY}", seq)


def progress_key(account: str) -> str:
    """Returns the name under which the progress of an account is recorded."""
    return f"matched {account}:"
