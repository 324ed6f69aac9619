"""Whether the ledger is whole, and whether the tables are what it says."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select

from openbell.stores.records.orders import rows_of
from openbell.stores.records.tables import JOURNALED, ledger
from openbell.trading.ledger import Entry, Fault, Head, canonical, check


def entries(connection: Connection) -> Iterator[Entry]:
    """The ledger from its beginning."""
    # An option of the statement: one of the connection would stay with it in the pool.
    for row in connection.execute(select(ledger).order_by(ledger.c.seq).execution_options(yield_per=1000)):
        yield Entry(**row._asdict())


def faults(connection: Connection, heads: tuple[Head, ...]) -> Iterator[Fault]:
    """Everything that is not as it was written: the chain first, then each table against it."""
    yield from check(entries(connection), heads)
    yield from _tables(connection)


def _tables(connection: Connection) -> Iterator[Fault]:
    """A row must be the content of the last entry about it."""
    newest: dict[tuple[str, str], tuple[int, bytes]] = {}
    for entry in entries(connection):
        if entry.kind in JOURNALED:
            newest[entry.kind, entry.key] = (entry.seq, _hash(entry.body))
    for kind, (table, key) in JOURNALED.items():
        for row in rows_of(connection, table):
            seq = row.pop("seq")
            written = newest.pop((kind, str(row[key])), None)
            if written is None:
                yield Fault(seq, f"{kind} {row[key]} is in its table and not in the ledger")
            elif written[0] != seq or written[1] != _hash(_text(row)):
                yield Fault(written[0], f"{kind} {row[key]} was changed in its table: the ledger says otherwise")
    for (kind, key), (seq, _) in newest.items():
        yield Fault(seq, f"{kind} {key} is in the ledger and not in its table")


def _hash(text: object) -> bytes:
    """A row in little room, whatever somebody has put into its place."""
    return sha256(str(text).encode("utf-8", "surrogatepass")).digest()


def _text(row: dict[str, Any]) -> str:
    try:
        return canonical(row)
    except (TypeError, ValueError, RecursionError):
        return ""
