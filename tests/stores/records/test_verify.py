"""`openbell verify` finds every change that was made to the database from outside."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from openbell.market.clock import FixedClock
from openbell.stores.records.journal import Journal
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.records import Records
from openbell.stores.records.sqlite import SqliteDatabase, engine_for
from openbell.stores.records.tables import JOURNALED
from openbell.stores.records.verify import faults
from openbell.strategies.implementations import Implementation, ImplementationStatus
from openbell.trading.accounts import Account
from openbell.trading.alerts import Alert, Type
from openbell.trading.fills import fill_of
from openbell.trading.ledger import GENESIS, Head, LedgerFault, digest
from openbell.trading.orders import OrderState
from tests.client import run
from tests.counts import runs
from tests.servers.desks import fresh_database
from tests.stores.records.postgres_server import PostgresServer
from tests.trading.samples import BUY, START, D, limit

CAMPAIGN = runs(60, soak=10_000)
PARTS = 4


def written(folder: Path) -> Head:
    """Write records of every kind. Returns the head that was noted."""

    async def work() -> Head:
        records = Records(SqliteDatabase(folder / "records.sqlite"), HeadFile(folder / "ledger.head"), FixedClock(60.0))
        await records.write(lambda journal: journal.put("account", Account("paper", "paper", "me", D(1000), None, 1.0)))
        for number in range(12):
            await records.write(lambda journal: _some(journal, number))  # noqa: B023 - awaited at once
        head = records.head.read()
        await records.close()
        assert head is not None
        return head

    return asyncio.run(work())


def _some(journal: Journal, number: int) -> None:
    order = limit(f"o{number}", BUY, "10", "99.5")
    asked = {"order_id": order.id, "valid": True, "quantity": "10", "opening": "10"}
    journal.note("verdict", order.id, asked)
    journal.put("order", order, new=True)
    at, evidence = START + 120.0, "b" * 64
    part = fill_of(order, f"o{number}-1", D(4), D("99.25"), at, fee=D("0.5"), bar=START + 60, bar_hash=evidence)
    journal.put("fill", part, new=True)
    order = order.with_fill(D(4), D("99.25"), D("0.5"), at)
    journal.put("order", order)
    if number % 3 == 0:
        journal.put("order", order.to(OrderState.CANCELLED, at + 1, "by its owner"))
    journal.put("alert", Alert(f"a{number}", "me", "BTC/USD", "BTCUSD", "1m", Type.PRICE_ABOVE, 5.0, D(100)), new=True)
    row = {"id": f"d{number}", "principal": "me", "symbol": "AAPL", "action": "BUY", "confidence": 0.5}
    more = {"opportunity_score": None, "reasoning": "because", "tool_calls": [{"x": 1.5}], "created_at": 60.0}
    journal.put("decision", {**row, **more}, new=True)
    _some_strategies(journal, number)


def _some_strategies(journal: Journal, number: int) -> None:
    spec = {"id": f"s{number}", "principal": "me", "name": f"S{number}", "content": {"indicators": []}, "reasoning": ""}
    journal.put("spec", {**spec, "created_at": 60.0}, new=True)
    made = Implementation(
        f"i{number}",
        "me",
        f"s{number}",
        "f",
        "AAPL",
        "1d",
        {"n": 5},
        ImplementationStatus.VALIDATED,
        "it passed",
        0,
        60,
        60.0,
        60.0,
        3,
        {},
    )
    journal.put("implementation", made, new=True)
    journal.put("implementation", replace(made, status=ImplementationStatus.RETIRED))
    searched = {"symbol": "AAPL", "timeframe": "1d", "fingerprint": "f", "tries": 3, "bars": 500}
    searched |= {"first": 0, "until": 60, "digest": 7, "costs": [0.001, 0.0], "at": 60.0}
    journal.put("search", {"id": f"AAPL 1d {number}", **searched})
    signal = {"symbol": "AAPL", "signal": "BUY", "confidence": 0.5, "triggered_at": 60.0, "bar_hash": "b" * 64}
    seq = journal.put("signal", {"implementation_id": made.id, **signal})
    votes = {"bullish": 1, "bearish": 0, "neutral": 0, "consensus": "STRONG_BUY", "confidence": 0.5, "signals": [seq]}
    journal.put("consensus", {"id": f"AAPL {number}", "principal": "me", "symbol": "AAPL", **votes, "at": 60.0})


def found(path: Path, head: Head | None) -> list[LedgerFault]:
    engine = engine_for(str(path))
    with engine.connect() as connection:
        result = list(faults(connection, () if head is None else (head,)))
    engine.dispose()
    return result


# Changes from outside


def edit_entry(db: sqlite3.Connection, chance: random.Random, seqs: list[int]) -> None:
    column = chance.choice(("at", "kind", "key", "body", "prev", "hash"))
    seq = chance.choice(seqs)
    (old,) = db.execute(f'SELECT "{column}" FROM ledger WHERE seq = ?', (seq,)).fetchone()
    db.execute(f'UPDATE ledger SET "{column}" = ? WHERE seq = ?', (changed(old, chance), seq))


def changed(old: Any, chance: random.Random) -> Any:
    """Another value: with a character added, removed or changed, or of another type."""
    if isinstance(old, str) and old:
        at = chance.randrange(len(old))
        other = chance.choice([c for c in "0a9z\"' ,:" if c != old[at]])
        return chance.choice([old[:at] + other + old[at + 1 :], old[:at] + old[at + 1 :], old + other, ""])
    if isinstance(old, bool | int | float):
        return old + chance.choice((1, -1, 0.001))
    return "something"


def remove_entries(db: sqlite3.Connection, chance: random.Random, seqs: list[int]) -> None:
    first = chance.choice(seqs)
    db.execute("DELETE FROM ledger WHERE seq >= ? AND seq < ?", (first, first + chance.randint(1, 5)))


def remove_and_close_the_gap(db: sqlite3.Connection, chance: random.Random, seqs: list[int]) -> None:
    seq = chance.choice(seqs)
    db.execute("DELETE FROM ledger WHERE seq = ?", (seq,))
    for later in seqs[seqs.index(seq) + 1 :]:
        db.execute("UPDATE ledger SET seq = ? WHERE seq = ?", (later - 1, later))


def cut_the_end(db: sqlite3.Connection, chance: random.Random, seqs: list[int]) -> None:
    db.execute("DELETE FROM ledger WHERE seq > ?", (chance.randrange(len(seqs)),))


def swap_entries(db: sqlite3.Connection, chance: random.Random, seqs: list[int]) -> None:
    one, two = chance.sample(seqs, 2)
    for old, new in ((one, -1), (two, one), (-1, two)):
        db.execute("UPDATE ledger SET seq = ? WHERE seq = ?", (new, old))


def rewrite_from_there_on(db: sqlite3.Connection, chance: random.Random, seqs: list[int]) -> None:
    """Edit an entry and hash it and all later ones again: only the head file shows it."""
    first = chance.choice(seqs)
    db.execute("UPDATE ledger SET body = body || ' ' WHERE seq = ?", (first,))
    prev = GENESIS
    for seq, at, kind, key, body in db.execute("SELECT seq, at, kind, key, body FROM ledger ORDER BY seq").fetchall():
        prev, before = digest(seq, at, kind, key, body, prev), prev
        db.execute("UPDATE ledger SET prev = ?, hash = ? WHERE seq = ?", (before, prev, seq))


def edit_a_row(db: sqlite3.Connection, chance: random.Random, seqs: list[int]) -> None:
    table, key = chance.choice([pair for kind, pair in JOURNALED.items() if kind != "switch"])
    names = [row[0] for row in db.execute(f"SELECT {key} FROM {table.name}")]
    column = chance.choice([column.name for column in table.columns])
    name = chance.choice(names)
    (old,) = db.execute(f'SELECT "{column}" FROM {table.name} WHERE {key} = ?', (name,)).fetchone()
    new = (
        1 - old
        if column == "triggered"
        else f'{{"y": {chance.random()}}}'
        if column == "tool_calls"
        else changed(old, chance)
    )
    db.execute(f'UPDATE {table.name} SET "{column}" = ? WHERE {key} = ?', (new, name))


def remove_a_row(db: sqlite3.Connection, chance: random.Random, seqs: list[int]) -> None:
    table, key = chance.choice([pair for kind, pair in JOURNALED.items() if kind != "switch"])
    names = [row[0] for row in db.execute(f"SELECT {key} FROM {table.name}")]
    db.execute(f"DELETE FROM {table.name} WHERE {key} = ?", (chance.choice(names),))


DEEDS: list[Callable[[sqlite3.Connection, random.Random, list[int]], None]] = [
    edit_entry,
    remove_entries,
    remove_and_close_the_gap,
    cut_the_end,
    swap_entries,
    rewrite_from_there_on,
    edit_a_row,
    remove_a_row,
]


def spoil(path: Path, seed: int) -> str:
    chance = random.Random(seed)
    deed = DEEDS[seed % len(DEEDS)]
    db = sqlite3.connect(path)
    seqs = [row[0] for row in db.execute("SELECT seq FROM ledger ORDER BY seq")]
    while True:
        try:
            deed(db, chance, seqs)
            break
        except sqlite3.IntegrityError:  # the database refuses two rows of one key; try another change
            db.rollback()
    db.commit()
    db.close()
    return deed.__name__


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Head]:
    folder = tmp_path_factory.mktemp("written")
    head = written(folder)
    db = sqlite3.connect(folder / "records.sqlite")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    return folder / "records.sqlite", head


def test_untouched_records_have_no_fault(original: tuple[Path, Head]) -> None:
    assert found(*original) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_every_edit_removal_reorder_and_truncation_is_found(
    original: tuple[Path, Head], tmp_path: Path, part: int
) -> None:
    path, head = original
    copy = tmp_path / "copy.sqlite"
    for seed in range(part, CAMPAIGN, PARTS):
        shutil.copyfile(path, copy)
        deed = spoil(copy, seed)
        assert found(copy, head), f"seed {seed}: {deed} was not found"
        for rest in tmp_path.glob("copy.sqlite-*"):
            rest.unlink()


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_the_verify_command_reports_the_fault(tmp_path: Path, seed: int) -> None:
    written(tmp_path)
    spoil(tmp_path / "records.sqlite", seed)
    done = run(tmp_path, "verify", FEED="none")
    assert done.returncode == 1
    assert done.stdout.startswith("bad ")


# On a server


def test_on_a_server_entries_of_another_machine_are_reported(server: PostgresServer, tmp_path: Path) -> None:
    url = fresh_database(server)
    one, two = tmp_path / "one", tmp_path / "two"

    def verify(home: Path, *words: str) -> tuple[int, str]:
        done = run(home, "verify", *words, FEED="none", DATABASE_URL=url)
        assert done.stderr == ""
        return done.returncode, done.stdout

    def write(home: Path, name: str) -> int:
        return run(home, "account", "add", name, FEED="none", DATABASE_URL=url).returncode

    assert verify(one) == (0, f"ok    0 entries, all unchanged\nhead  0:{GENESIS}\n")
    asked = "SELECT count(*) FROM pg_namespace WHERE nspname = 'openbell'"
    assert asyncio.run(_ask(url, asked)) == 0, "verify creates nothing"
    assert not one.exists()
    assert write(one, "a") == 0
    assert verify(one)[0] == 0
    assert write(two, "b") == 1, "a second machine must adopt the ledger first"
    head = verify(one)[1].rpartition("head  ")[2].strip()
    wrong = head[:-1] + ("0" if head[-1] != "0" else "1")
    for other in (wrong, f"2:{head[2:]}", f"0:1:{'f' * 64}"):
        code, said = verify(two, "--adopt", "--head", other)
        assert (code, said.count("nothing was accepted"), "was accepted as it is" in said) == (1, 1, False), said
    assert write(two, "b") == 1
    code, said = verify(two, "--adopt", "--head", head)
    assert (code, said.splitlines()[0]) == (0, "note  the ledger was accepted as it is, with 1 entry")
    assert write(two, "b") == 0
    assert verify(two)[0] == 0
    code, said = verify(one)
    assert code == 1
    assert said.startswith(
        "bad   1 entry comes after the head that was noted (entry 1): another machine wrote them, or"
    )
    assert "on the machine that wrote them" in said
    assert "--adopt" in said
    assert write(one, "c") == 0, "writing is still allowed"
    assert verify(one)[0] == 0
    assert asyncio.run(_ask(url, "SELECT count(*) FROM openbell.ledger")) == 3
    # The second machine has not written since its entry 2. It reads, and so follows the head.
    listed = run(two, "account", "list", FEED="none", DATABASE_URL=url)
    assert (listed.returncode, verify(two)[0]) == (0, 0)
    assert asyncio.run(_ask(url, "WITH cut AS (DELETE FROM openbell.ledger WHERE seq = 3 RETURNING 1) SELECT 1")) == 1
    listed = run(two, "account", "list", FEED="none", DATABASE_URL=url)
    assert listed.returncode == 1
    assert "are not those that were written: its entry 3 is not the one that was noted" in listed.stderr


async def _ask(url: str, query: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(query))
    finally:
        await connection.close()
