"""Checks of the ledger: its chain, its content, and whether the tables and the stored bars agree with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Select, func, select, tuple_

from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import InvalidSymbol
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.stores.records.journal import head_of
from openbell.stores.records.tables import JOURNALED, fills, ledger
from openbell.trading.audit import LedgerAudit
from openbell.trading.evidence import bar_hash, outside_its_bar
from openbell.trading.fills import Fill
from openbell.trading.ledger import Head, LedgerEntry, LedgerFault, canonical, check
from openbell.trading.rows import from_row

_DAY = 86400
_PAGE = 10_000
_STEP = 1000
"""How many fills are compared with their bars at once."""
_MOST = 1000
"""How many faults in the content of entries are listed one by one."""
_BEYOND = {
    True: "this home did not write them. If they are correct nevertheless, accept the ledger as it is with openbell "
    "verify --adopt",
    False: "another machine wrote them, or they are forged. Run openbell verify on the machine that wrote them; if they "
    "are correct, accept them here with openbell verify --adopt",
}
"""The message about entries after the head, by whether only one home writes to the ledger."""


def entries(connection: Connection) -> Iterator[LedgerEntry]:
    """All entries of the ledger, in order."""
    # Set on the statement: an option of the connection would stay set in the pool.
    for row in connection.execute(select(ledger).order_by(ledger.c.seq).execution_options(yield_per=1000)):
        yield LedgerEntry(**row._asdict())


@dataclass(frozen=True, slots=True)
class LedgerEnd:
    """The ledger's last entry as one transaction sees it, and the heads at which it may end."""

    newest: Head
    ends: tuple[Head, ...]

    @property
    def is_behind(self) -> bool:
        """True if the heads are later than the ledger: another process wrote in between, or the end was cut off."""
        return bool(self.ends) and self.newest not in self.ends and self.newest.seq <= self.ends[0].seq


def snapshot(connection: Connection, read_ends: Callable[[], tuple[Head, ...]]) -> LedgerEnd:
    """Read the ledger's last entry, then the heads: the end of every entry seen here was announced before."""
    newest = head_of(connection)
    return LedgerEnd(newest, read_ends())


def faults(
    connection: Connection,
    heads: Iterable[Head],
    ends: Sequence[Head] = (),
    *,
    one_home: bool = True,
    advance: Callable[[int], None] = lambda _count: None,
) -> Iterator[LedgerFault]:
    """All faults: in the chain, in the content of entries, then differences between the tables and the ledger.

    `heads` must be in the ledger; `ends` are the heads at which it may end. `advance` is called with the number
    of checked entries, every 1,000 of them.
    """
    audit, found, more = LedgerAudit(), list[LedgerFault](), 0

    def audited() -> Iterator[LedgerEntry]:
        nonlocal more
        for entry in entries(connection):
            new = audit.take(entry)
            room = _MOST - len(found)
            found.extend(new[:room])
            more += len(new[room:])
            yield entry
            if entry.seq % _STEP == 0:
                advance(_STEP)

    yield from check(audited(), heads, ends, _BEYOND[one_home])
    yield from found
    yield from audit.finish()
    if more:
        yield LedgerFault(0, f"{more} more entries do not follow from those before them")
    for kind, (table, _) in JOURNALED.items():
        try:
            yield from _table(connection, kind)
        except ValueError:  # invalid JSON
            yield LedgerFault(0, f"a row of the table {table.name} cannot be read")


def _table(connection: Connection, kind: str) -> Iterator[LedgerFault]:
    """Compare each row with the body of its last entry. The database joins them, so that memory stays bounded."""
    table, key = JOURNALED[kind]
    last = (
        select(ledger.c.key, func.max(ledger.c.seq).label("last")).where(ledger.c.kind == kind).group_by(ledger.c.key)
    )
    newest = last.subquery("newest")
    written = ledger.alias("written")
    rows = (
        select(table, newest.c.last, written.c.body)
        .outerjoin(newest, newest.c.key == table.c[key])
        .outerjoin(written, written.c.seq == newest.c.last)
    )
    for row in _each(connection, rows):
        seq, last_seq, body = row.pop("seq"), row.pop("last"), row.pop("body")
        if last_seq is None:
            yield LedgerFault(seq, f"{kind} {row[key]} is in its table and not in the ledger")
        elif last_seq != seq or body != _text(row):
            yield LedgerFault(last_seq, f"{kind} {row[key]} was changed in its table: the ledger has another row")
    missing = select(newest).outerjoin(table, newest.c.key == table.c[key]).where(table.c[key].is_(None))
    for row in _each(connection, missing):
        yield LedgerFault(row["last"], f"{kind} {row['key']} is in the ledger and not in its table")


def _each(connection: Connection, query: Select[Any]) -> Iterator[dict[str, Any]]:
    for row in connection.execute(query.execution_options(yield_per=1000)):
        yield row._asdict()


def _text(row: dict[str, Any]) -> str:
    try:
        return canonical(row)
    except (TypeError, ValueError, RecursionError):
        return ""


# Fills and their bars


@dataclass(slots=True)
class BarsFound:
    """The result of comparing paper fills with their stored bars."""

    fills: int = 0
    stored: int = 0
    changed: list[str] = field(default_factory=list)
    """Ids of fills whose bar has other values now."""
    faults: list[LedgerFault] = field(default_factory=list)


Cursor = tuple[str, int, str]
"""Symbol, bar and id of a fill."""


def paper_fills(connection: Connection, after: Cursor | None) -> tuple[list[Fill], Cursor | None]:
    """A page of the fills that name a bar, by symbol and time, and the cursor of the next page; None if it is empty."""
    place = (fills.c.symbol, fills.c.bar, fills.c.id)
    query = select(fills).where(fills.c.bar.is_not(None)).order_by(*place).limit(_PAGE)
    if after is not None:
        query = query.where(tuple_(*place) > after)
    rows = connection.execute(query).all()
    found = []
    for row in rows:
        with suppress(TypeError, ValueError, ArithmeticError):  # `faults` reports such a row
            found.append(from_row(Fill, row._asdict()))
    return found, (rows[-1].symbol, rows[-1].bar, rows[-1].id) if rows else None


def compare(page: list[Fill], read: Callable[[Series, int, int], Bars], found: BarsFound) -> None:
    """Compare fills with their stored bars and add the result to `found`. `read` returns minute bars and may block."""
    found.fills += len(page)
    for (symbol, _), group in groupby(page, key=lambda fill: (fill.symbol, (fill.bar or 0) // _DAY)):
        wanted = list(group)
        try:
            instrument = parse(symbol)
        except InvalidSymbol:
            continue
        bars = read(Series(instrument), wanted[0].bar or 0, (wanted[-1].bar or 0) + MINUTE)
        times = {time: index for index, time in enumerate(bars.time.tolist())}
        for fill in wanted:
            index = times.get(fill.bar or 0)
            if index is None:
                continue
            found.stored += 1
            if bar_hash(bars, index) != fill.bar_hash:
                found.changed.append(fill.id)
            elif wrong := outside_its_bar(fill, bars.low[index].item(), bars.high[index].item()):
                found.faults.append(LedgerFault(0, wrong))
