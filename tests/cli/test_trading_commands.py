"""verify, halt, resume and account at the operator's shell; what verify finds of every way to tamper with the records."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from openbell.market.bars import Bars
from openbell.market.clock import FixedClock
from openbell.market.provenance import Origin, Source
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.records import checkpoints
from openbell.stores.records.journal import Journal
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.stores.records.sqlite import SqliteDatabase, engine_for
from openbell.stores.records.tables import JOURNALED, ledger
from openbell.trading import amounts
from openbell.trading.fills import Fill
from openbell.trading.ledger import GENESIS, Head, digest
from openbell.trading.rows import from_row
from tests.cli.in_process import command
from tests.client import OPENBELL, PATIENCE, environment, run
from tests.prefork import Process
from tests.servers.desks import awaited, bench, bench_as_found
from tests.trading.ledgers import FORGERIES, NOON, Line, Lines, bars, honest, of, sealed, verdict, written
from tests.trading.ledgers import A as FILL
from tests.trading.samples import BUY, START, D, order

T1, T2 = "2026-01-07T15:00:00Z", "2026-01-07T15:30:00Z"
DECISION: dict[str, Any] = {"symbol": "BTC/USD", "action": "BUY", "confidence": 0.5, "reasoning": "because"}
ORDER: dict[str, Any] = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.05"}
COPIED = """INSERT INTO decisions SELECT 'dec_new', principal, symbol, action, confidence, opportunity_score, reasoning,
tool_calls, created_at, seq FROM decisions LIMIT 1"""
READ_ONLY = "openbell: this desk is read-only (OPENBELL_READ_ONLY)\n"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in os.environ:
        if name.startswith("OPENBELL_"):
            monkeypatch.delenv(name)


def verified(home: Path, *words: str, **settings: str) -> list[str]:
    """What verify finds; nothing if all is well."""
    code, said, _ = command(home, "verify", *words, **settings)
    found = [line.removeprefix("bad   ") for line in said.splitlines() if line.startswith("bad")]
    assert code == bool(found), said
    assert ("ok    " in said) == (not found)
    return found


def head(home: Path) -> str:
    _, said, _ = command(home, "verify")
    return next(line.removeprefix("head  ") for line in said.splitlines() if line.startswith("head"))


@pytest.fixture(scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home in which all kinds of things were done, and the head after the first half of them."""
    home = tmp_path_factory.mktemp("whole") / "home"

    @awaited
    async def whole() -> None:
        async with bench(home, T1) as desk:
            await desk.ask("decisions", "save_decision", **DECISION)
            await desk.chartgen("place_order", **ORDER, take_profit=100_000, stop_loss=50_000)
            await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1})
            await desk.no("place_order", **{**ORDER, "quantity": 70})
        async with bench(home, T2) as desk:
            await desk.desk.trading.halts.halt("a test")
            await desk.desk.trading.halts.resume()
            await desk.ask("decisions", "save_decision", **{**DECISION, "tool_calls": [{"a": [1, None, "é"]}]})

    whole()
    # A scenario's records are like the present's: here they take their place.
    for file in ("records.sqlite", "ledger.head"):
        shutil.move(home / "simulated" / "scenarios" / "as-of" / file, home / "simulated" / file)
    database = sqlite3.connect(home / "simulated" / "records.sqlite")
    (sealed,) = database.execute("SELECT hash FROM ledger WHERE seq = 4").fetchone()
    database.close()
    return home, f"4:{sealed}"


@pytest.fixture
def home(_template: tuple[Path, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(_template[0], tmp_path / "home"))


def tamper(home: Path, *statements: str) -> None:
    database = sqlite3.connect(home / "simulated" / "records.sqlite")
    for statement in statements:
        changed = database.execute(statement).rowcount
        assert changed, statement
    database.commit()
    database.close()


# Verify


def test_what_was_not_touched_is_as_it_was_written(home: Path) -> None:
    code, said, errors = command(home, "verify")
    assert (code, errors) == (0, "")
    first, second, third = said.splitlines()
    assert first.startswith("ok    ")
    assert second == "note  1 of 1 fills' bars are stored, all unchanged"
    number, scheme, sealed = third.removeprefix("head  ").split(":")
    assert first == f"ok    {number} entries, all unchanged"
    assert (scheme, len(sealed)) == ("1", 64)


def test_a_home_in_which_nothing_was_done_is_well(tmp_path: Path) -> None:
    assert verified(tmp_path) == []


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["UPDATE ledger SET body = replace(body, 'BTC/USD', 'ETH/USD') WHERE seq = 1"], "was changed"),
        (["UPDATE ledger SET at = at + 1 WHERE seq = 3"], "entry 3"),
        (["UPDATE ledger SET kind = 'verdict' WHERE seq = 1"], "was changed"),
        (["UPDATE ledger SET key = 'other' WHERE seq = 2"], "was changed"),
        (["DELETE FROM ledger WHERE seq = 3"], "entry 3 is missing"),
        (["DELETE FROM ledger WHERE seq = 1"], "entry 1 is missing"),
        (
            [
                "UPDATE ledger SET seq = -1 WHERE seq = 2",
                "UPDATE ledger SET seq = 2 WHERE seq = 3",
                "UPDATE ledger SET seq = 3 WHERE seq = -1",
            ],
            "entry 2 does not follow the one before it",
        ),
        (["DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)"], "its end is cut off"),
        (["DELETE FROM ledger WHERE seq > 2"], "its end is cut off"),
        (["DELETE FROM ledger"], "its end is cut off"),
        (["UPDATE orders SET quantity = '1' WHERE role = 'entry'"], "was changed in its table"),
        (["UPDATE orders SET state = 'cancelled' WHERE role = 'stop_loss'"], "was changed in its table"),
        (["UPDATE orders SET seq = seq - 1 WHERE role = 'entry'"], "was changed in its table"),
        (["DELETE FROM orders WHERE role = 'take_profit'"], "is in the ledger and not in its table"),
        (["UPDATE fills SET price = '1'"], "was changed in its table"),
        (["UPDATE fills SET quantity = quantity || '0'"], "was changed in its table"),
        (["DELETE FROM fills"], "is in the ledger and not in its table"),
        (["UPDATE decisions SET reasoning = 'otherwise'"], "was changed in its table"),
        (["UPDATE decisions SET confidence = 0.51"], "was changed in its table"),
        (["UPDATE decisions SET tool_calls = '[]' WHERE tool_calls IS NOT NULL"], "was changed in its table"),
        ([COPIED], "is in its table and not in the ledger"),
        (["UPDATE accounts SET cash = '200000'"], "account as-of was changed in its table"),
        (["UPDATE alerts SET state = 'active'"], "was changed in its table"),
        (["UPDATE switches SET reason = 'still'"], "switch halt was changed in its table"),
    ],
)
def test_every_edit_removal_reorder_and_truncation_is_found(home: Path, statements: list[str], words: str) -> None:
    tamper(home, *statements)
    found = verified(home)
    assert any(words in line for line in found), found


def test_a_chain_that_was_written_anew_is_not_the_one_that_was_noted(home: Path) -> None:
    _reseal(home, lambda body: body.replace('"confidence":0.5', '"confidence":0.9'))
    tamper(home, "UPDATE decisions SET confidence = 0.9")
    assert verified(home) == [f"entry {_length(home)} is not the one that was noted as the head: it was rewritten"]


def _length(home: Path) -> int:
    database = sqlite3.connect(home / "simulated" / "records.sqlite")
    (length,) = database.execute("SELECT max(seq) FROM ledger").fetchone()
    database.close()
    return int(length)


def _reseal(home: Path, change: Callable[[str], str]) -> None:
    """What somebody does who knows how the ledger is made."""
    database = sqlite3.connect(home / "simulated" / "records.sqlite")
    prev = GENESIS
    for seq, at, kind, key, body in database.execute(
        "SELECT seq, at, kind, key, body FROM ledger ORDER BY seq"
    ).fetchall():
        new = change(body)
        sealed = digest(seq, at, kind, key, new, prev)
        database.execute("UPDATE ledger SET body = ?, prev = ?, hash = ? WHERE seq = ?", (new, prev, sealed, seq))
        prev = sealed
    database.commit()
    database.close()


def test_a_head_that_somebody_noted_elsewhere_finds_what_the_machine_cannot(
    _template: tuple[Path, str], home: Path
) -> None:
    early, now = _template[1], head(home)
    assert verified(home, "--head", early) == []
    assert verified(home, "--head", now) == []
    assert verified(home, "--head", f" {now} ") == []
    number, sealed = now.split(":", 1)
    assert verified(home, "--head", f"{number}:{GENESIS}")
    assert verified(home, "--head", f"4:{sealed}")
    assert verified(home, "--head", f"{int(number) + 1}:{sealed}")
    _reseal(home, lambda body: body.replace('"confidence":0.5', '"confidence":0.9'))
    tamper(home, "UPDATE decisions SET confidence = 0.9")
    command(home, "verify", "--adopt")
    assert verified(home) == [], "who can write everything on this machine can also note a new head"
    assert verified(home, "--head", early)
    for bad in (
        "",
        "12",
        "x:y",
        f"-1:{sealed}",
        f"{number}:{'0' * 64}",
        f"{number}:{sealed[:-1]}",
        f"{number}:{sealed.upper()}!",
    ):
        code, _, errors = command(home, "verify", "--head", bad)
        assert (code, errors) == (
            2,
            "openbell: --head must have the form NUMBER:1:HASH, as openbell verify prints it\n",
        )


def test_a_head_file_that_is_gone_or_damaged_is_a_fault(home: Path) -> None:
    file = home / "simulated" / "ledger.head"
    file.write_bytes(b"?" * file.stat().st_size)
    assert "is damaged" in verified(home)[0]
    file.unlink()
    (only,) = verified(home)
    assert "there is no head outside the database" in only
    assert str(file) in only


@awaited
async def _refuses_to_write(home: Path, cut: bool) -> None:
    async with bench_as_found(home) as desk:
        refused = await desk.refused("decisions", "save_decision", **DECISION)
        assert refused["code"] == "DATABASE_ERROR"
        for said in (
            refused["message"],
            await desk.no("place_order", **{**ORDER, "quantity": "0.01"}),
            await desk.no("set_alert", symbol="BTC/USD", condition={"price_above": 1}),
        ):
            assert "openbell verify" in said
            assert "adopt" in said
        if cut:
            told = await desk.refused("portfolio", "get_balance")
            assert "are not those that were written" in told["message"], "what is left would tell less than is true"
        else:
            assert (await desk.ask("decisions", "get_recent_decisions"))["items"], "reading goes on"
            await desk.chartgen("get_balance")


@awaited
async def _writes(home: Path) -> None:
    async with bench_as_found(home) as desk:
        await desk.ask("decisions", "save_decision", **DECISION)


@pytest.mark.parametrize("damage", ["cut", "no head", "damaged head"])
def test_servers_write_nothing_to_a_ledger_that_was_cut_until_an_operator_adopts_it(home: Path, damage: str) -> None:
    file = home / "simulated" / "ledger.head"
    if damage == "cut":
        tamper(home, "DELETE FROM ledger WHERE seq > 4")
    elif damage == "no head":
        file.unlink()
    else:
        file.write_bytes(b"?" * 256)
    before = _length(home)
    _refuses_to_write(home, damage == "cut")
    assert _length(home) == before
    code, said, _ = command(home, "verify", "--adopt")
    assert code == 1, "what was found is told all the same"
    assert f"note  the ledger was accepted as it is, with {before} entries" in said
    _writes(home)
    assert _length(home) == before + 1
    assert (verified(home) == []) == (damage != "cut"), "the rows of what was cut off have no entries"


@awaited
async def test_a_server_at_work_notices_that_its_ledger_was_cut(home: Path) -> None:
    async with bench_as_found(home) as desk:
        await desk.ask("decisions", "save_decision", **DECISION)
        tamper(home, "DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)")
        refused = await desk.refused("decisions", "save_decision", **DECISION)
        assert refused["code"] == "DATABASE_ERROR"
        assert "cut or rewritten" in refused["message"]


def test_records_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "simulated").mkdir()
    (tmp_path / "simulated" / "records.sqlite").write_bytes(b"no database at all, but long enough to be one" * 100)
    for words in (("verify",), ("account", "list"), ("resume",)):
        code, _, errors = command(tmp_path, *words)
        assert code == 1
        assert errors.startswith("openbell: the records in ")
        assert errors.count("\n") == 1


# What was put there with hashes that fit


def stored(home: Path, lines: Lines) -> None:
    """Write a ledger as a desk would."""

    def work(journal: Journal) -> None:
        for line in lines:
            if line.kind in JOURNALED:
                journal.put(line.kind, line.row)
            else:
                journal.note(line.kind, line.key, line.row)

    async def whole() -> None:
        records = Records(SqliteDatabase(home / "records.sqlite"), HeadFile(home / "ledger.head"), FixedClock(NOON))
        await records.write(work)
        await records.close()

    asyncio.run(whole())


def forged(home: Path, lines: Lines) -> None:
    """Write a ledger and its tables anew, as somebody can who can write the database and not the head's file."""
    engine = engine_for(str(home / "records.sqlite"))
    with engine.connect() as connection:
        for table, _ in JOURNALED.values():
            connection.execute(table.delete())
        connection.execute(ledger.delete())
        entries = sealed(lines)
        connection.execute(ledger.insert(), [asdict(entry) for entry in entries])
        newest = {(entry.kind, entry.key): entry for entry in entries if entry.kind in JOURNALED}
        for entry in newest.values():
            with suppress(IntegrityError):  # a column that must be there: no row, then
                row = {**json.loads(entry.body), "seq": entry.seq}
                connection.execute(JOURNALED[entry.kind][0].insert(), row)
        connection.commit()
    engine.dispose()


@pytest.fixture(scope="module")
def _sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sample") / "home"
    stored(home, honest())
    return home


@pytest.fixture
def sample(_sample: Path, tmp_path: Path) -> Path:
    """A home, not of the simulator, with some of everything in its ledger."""
    return Path(shutil.copytree(_sample, tmp_path / "home"))


def test_an_honest_ledger_of_everything_is_well(sample: Path) -> None:
    assert verified(sample, FEED="none") == []
    forged(sample, honest())
    assert verified(sample, FEED="none") == [], "the same again"


@pytest.mark.parametrize("name", FORGERIES)
def test_what_never_happened_is_found_even_by_who_has_adopted_it(sample: Path, name: str) -> None:
    forge, said = FORGERIES[name]
    lines = honest()
    forge(lines)
    forged(sample, lines)
    found = verified(sample, FEED="none")
    assert any(said in line for line in found), found
    assert any("noted" in line for line in found), "the head tells too"
    command(sample, "verify", "--adopt", FEED="none")
    found = verified(sample, FEED="none")
    assert any(said in line for line in found), found
    assert not any("noted" in line for line in found)


def append(home: Path, lines: Lines) -> None:
    """Put entries and their rows at the end, each as the desk would have written it."""
    engine = engine_for(str(home / "records.sqlite"))
    with engine.connect() as connection:
        journal = Journal(connection, NOON)
        for line in lines:
            if line.kind in JOURNALED:
                journal.put(line.kind, line.row)
            else:
                journal.note(line.kind, line.key, line.row)
        journal.finish()
        connection.commit()
    engine.dispose()


def gift() -> Lines:
    """An order that nobody placed, in every way as it should be."""
    one = order("gift", BUY, "3")
    bar = next(line.row for line in honest() if line.kind == "fill")
    part = replace(from_row(Fill, bar), id=f"gift-{bar['bar']}", order_id="gift", quantity=D(3))
    done = replace(one.with_fill(D(3), part.price, part.fee, part.at), opening=D(0))
    return [verdict(one), *written(one, part, done)]


def test_what_was_added_at_the_end_is_found_though_it_follows_in_every_way(sample: Path) -> None:
    before = len(honest())
    append(sample, gift())
    (only,) = verified(sample, FEED="none")
    assert only.startswith(
        f"4 entries come after the head that was noted (entry {before}): this home did not write them"
    )
    assert "openbell verify --adopt" in only
    code, said, _ = command(sample, "doctor", FEED="none")
    assert code == 1
    assert f"it ends at entry {before + 4}, and its head was noted at {before}" in said
    for words in (("account", "add", "more"), ("call", "decisions", "save_decision", json.dumps(DECISION))):
        code, said, errors = command(sample, *words, FEED="none")
        assert code == 1
        assert "nothing is written to it" in said + errors
        assert "openbell verify --adopt" in said + errors
    assert len(verified(sample, FEED="none")) == 1, "nothing that was written has covered it"
    assert command(sample, "verify", "--adopt", FEED="none")[0] == 1
    assert verified(sample, FEED="none") == []
    assert command(sample, "account", "add", "more", FEED="none")[0] == 0
    assert verified(sample, FEED="none") == []


CHECKPOINTS = {
    "other cash": 'UPDATE checkpoints SET body = replace(body, \'"cash": "\', \'"cash": "9\') WHERE seq = 9',
    "an earlier time": "UPDATE checkpoints SET at = at - 60 WHERE seq = 6",
    "one is gone": "DELETE FROM checkpoints WHERE seq = 3",
    "one between two": "INSERT INTO checkpoints SELECT account, seq + 1, at, body FROM checkpoints WHERE seq = 3",
    "one after the last": "INSERT INTO checkpoints SELECT account, 300000, at, body FROM checkpoints WHERE seq = 3",
}


@pytest.fixture
def checked(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home, with checkpoints every three entries."""
    monkeypatch.setattr(checkpoints, "EVERY", 3)
    engine = engine_for(str(home / "simulated" / "records.sqlite"))
    with engine.begin() as connection:
        assert checkpoints.write_due(View(connection)) >= 4
    engine.dispose()
    assert verified(home) == []
    return home


@pytest.mark.parametrize("forgery", CHECKPOINTS)
def test_a_checkpoint_that_does_not_follow_from_the_ledger_is_found(checked: Path, forgery: str) -> None:
    """Desks of earlier clocks answer from it: a position that no fill explains would be shown."""
    tamper(checked, CHECKPOINTS[forgery])
    (only,) = verified(checked)
    assert only.startswith("the checkpoint of account as-of at entry ")
    assert only.endswith(" does not follow from the ledger")


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE ledger SET body = 'x' WHERE seq = 2",
        "UPDATE ledger SET body = '{}' WHERE seq = 2",
        "UPDATE ledger SET body = '[]' WHERE seq = 5",
        "UPDATE ledger SET at = 'x' WHERE seq = 5",
        "UPDATE checkpoints SET body = 'x'",
        "UPDATE marks SET until = 'x'",
    ],
)
def test_an_edit_is_a_fault_and_no_accident_where_there_are_checkpoints(checked: Path, edit: str) -> None:
    tamper(checked, edit)
    assert any("checkpoints cannot be compared" in line for line in verified(checked))


def test_a_ledger_that_others_write_to_meanwhile_is_well(sample: Path) -> None:
    stop = threading.Event()
    count = 0

    def some(journal: Journal) -> None:
        for number in range(count % 3):
            journal.note("k", "x", number)

    async def write() -> None:
        nonlocal count
        head, database = HeadFile(sample / "ledger.head"), SqliteDatabase(sample / "records.sqlite")
        records = Records(database, head, FixedClock(NOON))
        while not stop.is_set():
            await records.write(some)
            count += 1
        await records.close()

    writer = threading.Thread(target=lambda: asyncio.run(write()))
    writer.start()
    try:
        for _ in range(15):
            assert verified(sample, FEED="none") == []
    finally:
        stop.set()
        writer.join()
    assert count > 15


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("moment", ["before the head is read", "after the head is read"])
def test_a_write_between_the_looks_at_ledger_and_head_is_no_fault(
    sample: Path, monkeypatch: pytest.MonkeyPatch, moment: str, times: int
) -> None:
    read = HeadFile.ends
    left = times + 1

    def ends(file: HeadFile) -> tuple[Head, ...]:
        nonlocal left
        left -= 1
        if left < 0 or left == times:  # not the first look, which is whether it can be read at all
            return read(file)
        with monkeypatch.context() as undone:
            undone.setattr(HeadFile, "ends", read)
            if moment == "before the head is read":
                stored(sample, [Line("k", {"id": f"w{left}"})])
                return read(file)
            found = read(file)
            stored(sample, [Line("k", {"id": f"w{left}"})])
            return found

    monkeypatch.setattr(HeadFile, "ends", ends)
    assert verified(sample, FEED="none") == []
    assert left < times, "somebody wrote in between"


def test_what_an_entry_says_cannot_pass_for_what_the_command_says(sample: Path) -> None:
    lines = honest()
    of(lines, "fill", FILL).row["order_id"] = "x\nok    9 entries, all unchanged\x1b[2J"
    forged(sample, lines)
    _, said, _ = command(sample, "verify", FEED="none")
    assert "\nok" not in said
    assert "\x1b" not in said


# Bars


def keep_bars(home: Path, bars: Bars) -> None:
    store = ParquetStore(home / "data", frozenset({Origin.IMPORTED}))
    store.write([bars], Source(Origin.IMPORTED, "import"), replace=True)
    store.close()


def note(home: Path) -> str:
    code, said, _ = command(home, "verify", FEED="none")
    assert code == 0, said
    return next(line for line in said.splitlines() if line.startswith("note"))


def test_fills_are_compared_with_the_bars_that_are_stored(sample: Path) -> None:
    count = len([line for line in honest() if line.kind == "fill" and line.row["bar"]])
    assert note(sample) == f"note  0 of {count} fills' bars are stored"
    assert not (sample / "data").exists(), "looking for bars makes no store"
    keep_bars(sample, bars().between(START, START + 120))
    assert note(sample) == f"note  {count - 1} of {count} fills' bars are stored, all unchanged"
    keep_bars(sample, bars())
    assert note(sample) == f"note  {count} of {count} fills' bars are stored, all unchanged"


def test_a_bar_that_its_vendor_has_corrected_is_a_note(sample: Path) -> None:
    keep_bars(sample, bars())
    corrected = bars().between(START, START + 60)
    keep_bars(sample, replace(corrected, volume=corrected.volume + 1))
    count = len([line for line in honest() if line.kind == "fill" and line.row["bar"]])
    said = "1 have changed since: corrected by their vendor, or edited"
    assert note(sample) == f"note  {count} of {count} fills' bars are stored; {said} ({FILL})"


@pytest.mark.parametrize("price", ["98.0001", "151.6"])
def test_a_price_that_its_bar_did_not_have_is_found(sample: Path, price: str) -> None:
    keep_bars(sample, bars())
    lines = honest()
    paid = amounts.text(D(price) * 10)
    of(lines, "fill", FILL).row["price"] = price
    of(lines, "order", "a", -1).row["paid"] = paid
    forged(sample, lines)
    command(sample, "verify", "--adopt", FEED="none")
    assert verified(sample, FEED="none") == [f"fill {FILL} at {price} cannot be: its bar went from 99.8 to 101.0"]


def test_bars_that_cannot_be_read_are_a_note(sample: Path) -> None:
    code, said, _ = command(sample, "verify", FEED="none", INFLUX_URL="http://127.0.0.1:1")
    assert code == 0
    assert "note  the fills were not compared with their bars: " in said


# Nothing is made, and nobody waits without a word


def test_verify_makes_nothing_where_nothing_is(tmp_path: Path) -> None:
    for settings in ({}, {"FEED": "none"}):
        done = run(tmp_path / "home", "verify", **settings)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("ok    0 entries")
        assert not (tmp_path / "home").exists()


def test_verify_makes_nothing_where_the_records_were_taken_away(sample: Path) -> None:
    count = len(honest())
    for path in sample.glob("records.sqlite*"):
        path.unlink()
    before = {path.name for path in sample.iterdir()}
    assert verified(sample, FEED="none") == [
        f"the ledger ends at entry 0, and its head was noted at {count}: its end is cut off"
    ]
    assert {path.name for path in sample.iterdir()} == before
    (sample / "ledger.head").write_bytes(b"?" * 512)
    (only,) = verified(sample, FEED="none")
    assert "is damaged" in only


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_ledger_shows_its_progress_to_somebody_who_looks(sample: Path, terminal: bool) -> None:
    def work(journal: Journal) -> None:
        for number in range(20_000):
            journal.note("k", "x", number)

    async def whole() -> None:
        head, database = HeadFile(sample / "ledger.head"), SqliteDatabase(sample / "records.sqlite")
        records = Records(database, head, FixedClock(NOON))
        await records.write(work)
        await records.close()

    asyncio.run(whole())
    ours, theirs = pty.openpty() if terminal else os.pipe()
    given = environment(sample, FEED="none")
    process = Process([*OPENBELL, "verify"], env=given, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # a terminal whose other end was closed
        while part := os.read(ours, 10_000):
            shown += part
    os.close(ours)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert said.startswith(b"ok    ")
    assert (b"entries" in shown) == terminal
    assert terminal or not shown


# Halt and resume


def test_halt_and_resume_say_what_they_did(home: Path) -> None:
    code, said, _ = command(home, "halt", "-r", "naïve – reason", AS_OF=T2)
    assert code == 0
    assert "until openbell resume" in said
    assert "0 resting orders" in said, "exits only reduce"
    assert command(home, "halt", AS_OF=T2)[0] == 0, "twice is no error"
    assert command(home, "resume", AS_OF=T2)[:2] == (0, "resumed: positions may be opened again\n")
    assert command(home, "resume", AS_OF=T2)[:2] == (0, "trading was not halted\n")
    assert verified(home) == [], "the ledger tells of it"


def test_a_reason_that_is_no_text_or_very_long_halts_all_the_same(home: Path) -> None:
    done = run(home, "halt", "--reason", "\udc80\udcff", AS_OF=T2)
    assert (done.returncode, done.stderr) == (0, "")
    assert "halted" in command(home, "call", "chartgen", "place_order", json.dumps(ORDER), "--trade", AS_OF=T2)[1]
    assert command(home, "halt", "--reason", "x" * 5000, AS_OF=T2)[0] == 0
    assert command(home, "resume", AS_OF=T2)[0] == 0
    assert verified(home) == []


def test_a_halt_stands_even_if_the_records_cannot_be_written(tmp_path: Path) -> None:
    settings = {"DATABASE_URL": "postgresql://me:hidden-word@127.0.0.1:1/desk", "AS_OF": T2}
    code, said, errors = command(tmp_path, "halt", **settings)
    assert "halted" in said
    assert code == 1
    assert "hidden-word" not in said + errors
    refused = command(tmp_path, "call", "chartgen", "place_order", json.dumps(ORDER), "--trade", AS_OF=T2)[1]
    assert "trading is halted" in refused


# Accounts


def test_accounts_are_made_listed_and_guarded(tmp_path: Path) -> None:
    assert "no account yet" in command(tmp_path, "account", "list")[1]
    code, said, _ = command(tmp_path, "account", "add", "one", "--cash", "1,000.50")
    assert (code, said) == (0, "added the account one; use it with OPENBELL_ACCOUNT=one\n")
    code, said, _ = command(tmp_path, "account", "add", "two", "--token", PAPER_CASH="77")
    token = said.splitlines()[-1]
    assert token.startswith("ob_")
    assert len(token) > 40
    code, said, _ = command(tmp_path, "account", "list")
    lines = [line.split() for line in said.splitlines()]
    assert lines.pop(0)[:4] == ["account", "broker", "equity", "cash"]
    assert [line[:4] for line in lines] == [
        ["one", "paper", "1,000.50", "1,000.50"],
        ["two", "paper", "77.00", "77.00"],
    ]
    assert token not in said
    assert ["no" in line for line in lines] == [True, False]
    records = (tmp_path / "simulated" / "records.sqlite").read_bytes()
    assert token.encode() not in records, "only its hash is kept"

    def balance(**settings: str) -> Any:
        said = command(tmp_path, "call", "portfolio", "get_balance", ACCOUNT="two", **settings)[1]
        answer = json.loads(said)
        return answer["data"]["total_balance"] if "data" in answer else answer["error"]["code"]

    assert (balance(), balance(ACCOUNT_TOKEN=token)) == ("UNAUTHORIZED", 77)
    new = command(tmp_path, "account", "token", "two")[1].splitlines()[-1]
    assert (balance(ACCOUNT_TOKEN=token), balance(ACCOUNT_TOKEN=new)) == ("UNAUTHORIZED", 77)
    assert command(tmp_path, "account", "token", "two", "--remove")[1] == "two has no token now\n"
    assert balance() == 77
    assert verified(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "one"), 1, "there is an account one already"),
        (("add", "a b"), 2, "a name has 1 to 60 letters"),
        (("add", "../x"), 2, "a name has 1 to 60 letters"),
        (("add", ""), 2, "a name has 1 to 60 letters"),
        (("add", "x" * 61), 2, "a name has 1 to 60 letters"),
        (("add", "new", "--cash", "much"), 2, "--cash must be an amount in USD"),
        (("add", "new", "--cash", "-1"), 2, "--cash must be an amount in USD"),
        (("add", "new", "--cash", "nan"), 2, "--cash must be an amount in USD"),
        (("add", "new", "--cash", "inf"), 2, "--cash must be an amount in USD"),
        (("add", "new", "--cash", "1e15"), 2, "--cash must be an amount in USD"),
        (("token", "nobody"), 1, "there is no account nobody"),
        (("token", "\udc80"), 2, "a name has 1 to 60 letters"),
    ],
)
def test_a_wrong_account_is_one_line(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    command(tmp_path, "account", "add", "one")
    found, out, errors = command(tmp_path, "account", *words)
    assert (found, out) == (code, "")
    assert said in errors
    assert errors.count("\n") == 1
    assert len(command(tmp_path, "account", "list")[1].splitlines()) == 2, "the heading and the first account"


# All of them


@pytest.mark.parametrize(
    "words",
    [
        ("resume",),
        ("account", "add", "new"),
        ("account", "token", "new"),
        ("account", "token", "new", "--remove"),
        ("verify", "--adopt"),
        ("scenario", "reset", "as-of"),
        ("scenario", "remove", "as-of"),
    ],
)
def test_a_read_only_desk_lets_nobody_write(home: Path, words: tuple[str, ...]) -> None:
    before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file() and "-shm" not in file.name}
    assert command(home, *words, READ_ONLY="1") == (1, "", READ_ONLY)
    (home / "openbell.toml").write_text("read_only = true\n")
    assert command(home, *words, READ_ONLY="0") == (1, "", READ_ONLY)
    for file, content in before.items():
        assert file.read_bytes() == content
    assert verified(home) == []
    assert command(home, "account", "list")[0] == 0
