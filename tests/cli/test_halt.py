"""`openbell halt` reaches every market of a home, and leaves scenarios to their own time."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.desk import Desk
from openbell.desk.orders.halt_file import HaltFile
from openbell.desk.orders.halts import HaltSync
from openbell.desk.settings import load
from openbell.market.clock import FixedClock
from openbell.stores.records import orders as queries
from openbell.stores.records import switches
from openbell.stores.records.journal import Journal
from openbell.trading.halt import Halt
from openbell.trading.orders import OrderState
from tests.client import OPENBELL, PATIENCE, environment, run
from tests.gateway.streamable.gateways import Up
from tests.prefork import Process
from tests.waiting import wait_for

T0, T1 = "2026-01-07T15:00:00Z", "2026-01-07T15:30:00Z"
ORDER = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}
AGAIN = {**ORDER, "quantity": "0.02"}
"""Another order: the same one within ten seconds counts as placed twice by mistake."""
SEEDS = ("7", "9", "-3")


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Where records are kept."""
    return {} if request.param == "sqlite" else {"DATABASE_URL": request.getfixturevalue("database")}


def call(home: Path, tool: str, given: dict[str, Any], *flags: str, **settings: str) -> Any:
    done = run(home, "call", "chartgen", tool, json.dumps(given), "--trade", *flags, **settings)
    return json.loads(done.stdout)


def test_a_halt_cancels_in_every_market_whichever_the_settings_name(tmp_path: Path, settings: dict[str, str]) -> None:
    for seed in SEEDS:
        placed = call(tmp_path, "place_order", ORDER, SIM_SEED=seed, **settings)
        assert placed["status"] == "open", placed
    done = run(tmp_path, "halt", "--reason", "enough", SIM_SEED="9", **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 resting order that could open a position was cancelled\n" in done.stdout
    for seed in ("7", "-3"):
        assert f"cancelled in the simulated market of seed {seed}\n" in done.stdout
    # Resumed before anybody looked at the others: what they find does not depend on that.
    assert run(tmp_path, "resume", SIM_SEED="9", **settings).returncode == 0
    for seed in SEEDS:
        (order,) = call(tmp_path, "get_orders", {}, SIM_SEED=seed, **settings)["orders"]
        assert (order["status"], order["reason"]) == ("cancelled", "trading was halted"), seed
        assert call(tmp_path, "place_order", AGAIN, SIM_SEED=seed, **settings)["status"] == "open"


def test_the_words_of_a_reason_do_not_weaken_a_halt(tmp_path: Path) -> None:
    """A halt of which nobody can tell cancels nothing. Its word "unknown" in the operator's reason is a word like others."""
    reason = "unknown: fills look wrong"
    placed = call(tmp_path, "place_order", ORDER)
    assert placed["status"] == "open", placed
    done = run(tmp_path, "halt", "--reason", reason)
    assert "1 resting order that could open a position was cancelled\n" in done.stdout, done.stderr
    assert f"trading is halted: {reason}" in json.dumps(call(tmp_path, "place_order", AGAIN))

    async def recorded_anew() -> None:
        async with Desk(load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_TRADE": "1"})) as desk:
            trading = desk.trading
            await trading.halts.resume()  # on another machine
            trading.halt_file.set(reason, time.time())  # while the database could not be reached
            await HaltSync(trading.halt_file, trading.records, trading.halts, desk.hub).step()
            assert await trading.records.read(switches.halted) == Halt(reason)

    asyncio.run(recorded_anew())


def test_the_count_includes_orders_that_another_process_cancels_first(tmp_path: Path) -> None:
    placed = call(tmp_path, "place_order", ORDER)
    assert placed["status"] == "open", placed
    call(tmp_path, "cancel_order", {"order_id": call(tmp_path, "place_order", AGAIN)["order_id"]})
    halting: list[Process] = []

    async def engine_elsewhere() -> None:
        """Holds the records from before the halt, and cancels as an engine does that has seen the halt's file."""
        desk = Desk(load({"OPENBELL_HOME": str(tmp_path)}))

        def work(journal: Journal) -> None:
            command, pipe = [*OPENBELL, "halt"], subprocess.PIPE
            halting.append(Process(command, env=environment(tmp_path), text=True, stdout=pipe, stderr=pipe))
            wait_for((tmp_path / "halted").exists, "the file of the halt")
            order = queries.order(journal.view, placed["order_id"])
            assert order is not None
            journal.put("order", order.to(OrderState.CANCELLED, round(time.time(), 3), "trading was halted"))

        async with desk:
            await desk.trading.records.write(work)

    asyncio.run(engine_elsewhere())
    with halting[0] as process:
        out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "1 resting order that could open a position was cancelled\n" in out
    again = run(tmp_path, "halt")
    assert "0 resting orders that could open a position were cancelled\n" in again.stdout, "counted once"


def test_a_halt_while_the_real_market_is_not_the_settings_own(tmp_path: Path) -> None:
    csv = tmp_path / "bars.csv"
    rows = "".join(f"2026-01-07T15:{minute:02d}:00Z,100,101,99,100,1000\n" for minute in range(30))
    csv.write_text("time,open,high,low,close,volume\n" + rows)
    assert run(tmp_path, "import", str(csv), "--symbol", "BTC/USD", FEED="none").returncode == 0
    limit = {**ORDER, "type": "limit", "price": "98", "reduce_only": False}
    placed = call(tmp_path, "place_order", limit, FEED="none", STALE_AFTER="1e9")
    assert placed["status"] == "open", placed
    done = run(tmp_path, "halt")
    assert "1 resting order that could open a position was cancelled in the real market\n" in done.stdout, done.stderr
    (order,) = call(tmp_path, "get_orders", {}, FEED="none")["orders"]
    assert (order["status"], order["reason"]) == ("cancelled", "trading was halted")


def test_one_market_that_cannot_be_halted_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    for seed in SEEDS:
        assert call(tmp_path, "place_order", ORDER, SIM_SEED=seed)["status"] == "open"
    damaged = tmp_path / "simulated" / "records.sqlite"
    for each in damaged.parent.glob("records.sqlite*"):
        each.unlink()
    damaged.write_bytes(b"no database" * 1000)
    done = run(tmp_path, "halt", SIM_SEED="9")
    assert done.returncode == 1
    assert "records.sqlite failed" in done.stderr
    assert "in the simulated market of seed 7" in done.stderr
    assert "Traceback" not in done.stderr
    (order,) = call(tmp_path, "get_orders", {}, SIM_SEED="-3")["orders"]
    assert order["status"] == "cancelled"
    assert "halted" in json.dumps(call(tmp_path, "place_order", AGAIN, SIM_SEED="9"))
    assert run(tmp_path, "resume", SIM_SEED="9").returncode == 1, "what could not be lifted is said"
    assert call(tmp_path, "place_order", AGAIN, SIM_SEED="9")["status"] == "open", "and lifted here"


def test_a_scenario_goes_on_by_its_own_time_whoever_looks_while_trading_is_halted(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    flags = ("--as-of", T0, "--scenario", "one")
    later = ("--as-of", T1, "--scenario", "one")
    assert call(tmp_path, "place_order", ORDER, *flags, **settings)["status"] == "open"
    if not settings:
        shutil.copytree(tmp_path / "simulated", tmp_path / "not-halted" / "simulated")
    assert run(tmp_path, "halt", **settings).returncode == 0
    refused = call(tmp_path, "place_order", {**ORDER, "client_order_id": "new"}, *later, **settings)
    assert "trading is halted" in refused["error"]
    (order,) = [
        each
        for each in call(tmp_path, "get_orders", {"detail": True}, *later, **settings)["orders"]
        if each["status"] != "rejected"
    ]
    assert (order["status"], order["updated_at"]) == ("filled", "2026-01-07T15:01:00+00:00")
    if not settings:
        (same,) = call(tmp_path / "not-halted", "get_orders", {"detail": True}, *later)["orders"]
        assert same == order


@pytest.mark.parametrize(
    "wrong",
    [{"SCENARIO": "x"}, {"AS_OF": "2099-01-01"}, {"RISK_COLLAR": "abc"}, {"FEED": "nope"}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_no_other_setting_keeps_a_halt_from_halting(tmp_path: Path, wrong: dict[str, str]) -> None:
    placed = call(tmp_path, "place_order", ORDER)
    done = run(tmp_path, "halt", "--reason", "now", **wrong)
    assert done.stdout.startswith("halted: ")
    assert (tmp_path / "halted").exists()
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert "resting orders were not cancelled" in done.stderr
    refused = run(tmp_path, "call", "chartgen", "place_order", json.dumps(AGAIN), "--trade")
    assert "now" in refused.stdout
    found = {order["order_id"]: order["status"] for order in call(tmp_path, "get_orders", {})["orders"]}
    assert found[placed["order_id"]] == "cancelled"


def test_a_broken_settings_file_keeps_no_halt_from_halting(tmp_path: Path) -> None:
    (tmp_path / "openbell.toml").write_text("this is = = no toml")
    done = run(tmp_path, "halt")
    assert (done.returncode, (tmp_path / "halted").exists()) == (1, True)
    assert "resting orders were not cancelled" in done.stderr


def test_a_copy_of_a_market_is_not_a_market(tmp_path: Path) -> None:
    call(tmp_path, "place_order", ORDER, SIM_SEED="8")
    simulated = tmp_path / "simulated"
    shutil.copytree(simulated / "seed-8", simulated / "seed-8.bak")
    halted, resumed = run(tmp_path, "halt"), run(tmp_path, "resume")
    assert (halted.returncode, resumed.returncode) == (0, 0), halted.stderr + resumed.stderr
    assert "1 resting order that could open a position was cancelled in the simulated market of seed 8" in halted.stdout
    assert resumed.stdout.startswith("resumed: ")


@pytest.mark.parametrize("command", ["halt", "resume"])
def test_a_halt_that_only_reached_its_file_lets_nothing_fill_after_it(tmp_path: Path, command: str) -> None:
    """The records could not be written when trading was halted, and no engine has run since."""
    placed = call(tmp_path, "place_order", ORDER)
    began = time.time()
    (tmp_path / "halted").write_text(f"outage\n{began!r}\n")
    two_minutes = (int(began // 60) + 3) * 60

    async def later() -> str:
        """The command two minutes later, by the clock of the desk."""
        desk = Desk(load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_TRADE": "1"}))
        desk.clock = FixedClock(two_minutes)
        trading = desk.trading
        await trading.settle_all(await trading.halts.since(trading.halt_file.since() or 0.0))
        await trading.halts.enforce(trading.venue)
        found = await trading.records.read(lambda view: queries.order(view, placed["order_id"]))
        await trading.close()
        assert found is not None
        return found.state.value

    done = run(tmp_path, command)
    assert done.returncode == 0, done.stderr
    (order,) = call(tmp_path, "get_orders", {})["orders"]
    assert order["status"] == "cancelled"
    assert call(tmp_path, "get_positions", {})["positions"] == []
    assert asyncio.run(later()) == "cancelled"


def test_accounts_are_not_added_at_another_clock(tmp_path: Path) -> None:
    done = run(tmp_path / "home", "account", "add", "bob", AS_OF=T0, TRADE="1")
    assert done.returncode == 1
    assert "accounts belong to the present" in done.stderr
    assert not (tmp_path / "home").exists()


def test_a_halt_reaches_other_machines_when_the_database_is_back_and_ends_with_their_resume(
    tmp_path: Path, database: str
) -> None:
    """Two homes on one database. The halt at the first one cannot be recorded at once."""
    one, two = tmp_path / "one", tmp_path / "two"
    call(one, "set_alert", {"symbol": "BTC/USD", "condition": {"price_above": 1e9}}, DATABASE_URL=database)
    assert "was accepted" in run(two, "verify", "--adopt", DATABASE_URL=database).stdout
    done = run(one, "halt", "--reason", "outage", DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")
    assert done.returncode == 1
    assert "records the halt when the records can be written" in done.stderr

    quantities = count(1)

    def reason() -> str:
        order = {**ORDER, "quantity": f"0.00{next(quantities):03}"}
        return json.dumps(call(two, "place_order", order, DATABASE_URL=database))

    assert '"status": "open"' in reason()
    with Up(one, tokens={}, DATABASE_URL=database) as desk:
        wait_for(lambda: "outage" in reason(), "the halt to reach the other home")
        assert run(two, "resume", DATABASE_URL=database).returncode == 0
        wait_for(lambda: not (one / "halted").exists(), "the resume to reach the first home")
        assert '"status": "open"' in reason()
        assert desk.stop() == 0
        assert "resumed on another machine" in desk.log()
    assert run(one, "halt", DATABASE_URL=database).returncode == 0
    assert "halted" in reason()
    with Up(one, tokens={}, DATABASE_URL=database):
        wait_for(lambda: "engine" in run(one, "doctor", DATABASE_URL=database, PORT="0").stdout, "the desk")
        assert (one / "halted").exists()  # nobody has resumed


@pytest.mark.parametrize("resumed_first", [True, False])
def test_a_resume_ends_no_halt_that_it_does_not_belong_to(tmp_path: Path, resumed_first: bool) -> None:
    """A halt was recorded, another machine has resumed, and this home was halted again before or after that."""

    async def story() -> None:
        desk = Desk(load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_TRADE": "1"}))
        async with desk:
            trading, file = desk.trading, desk.trading.halt_file
            sync = HaltSync(file, trading.records, trading.halts, desk.hub)
            file.set("A", time.time())
            await sync.step()
            assert await trading.halts.current() == Halt("A")
            for resumes in (resumed_first, not resumed_first):
                if resumes:
                    await trading.halts.resume()  # on another machine
                else:
                    file.set("B", time.time())  # while the database cannot be reached
            await sync.step()
            assert file.read() == Halt("A"), "a second halt keeps the reason of the first"
            assert await trading.halts.current() == Halt("A")
            await trading.halts.resume()
            await sync.step()
            assert file.read() is None

    asyncio.run(story())


@pytest.mark.parametrize("output", ["> /dev/full", "| true"])
def test_a_halt_whose_output_cannot_be_written_halts_all_the_same(tmp_path: Path, output: str) -> None:
    placed = call(tmp_path, "place_order", ORDER)
    line = f"{' '.join(map(shlex.quote, OPENBELL))} halt --reason panic {output}"
    done = subprocess.run(
        ["bash", "-c", line], env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "Traceback" not in done.stderr
    with closing(sqlite3.connect(tmp_path / "simulated" / "records.sqlite")) as records:
        rows = records.execute("SELECT state FROM orders WHERE id = ?", (placed["order_id"],)).fetchall()
        assert rows == [("cancelled",)]
        assert any("panic" in str(row) for row in records.execute("SELECT * FROM ledger"))


FULL = """
import resource, runpy, sys
sys.dont_write_bytecode = True  # it would be cut off, for every later process
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
sys.argv = ["openbell", *sys.argv[1:]]
runpy.run_module("openbell.cli.entry", run_name="__main__")
"""
"""Runs a command that can create files and write nothing into them, as on a full disk."""


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_a_halt_on_a_full_disk_says_what_was_done(tmp_path: Path, again: bool, settings: dict[str, str]) -> None:
    assert call(tmp_path, "place_order", ORDER, **settings)["status"] == "open"
    if again:
        assert run(tmp_path, "halt", "--reason", "the first", **settings).returncode == 0
    env = environment(tmp_path, **settings)
    command = [sys.executable, "-c", FULL, "halt", "--reason", "full"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout.startswith("halted: "), done.stderr
    assert ("the reason was not stored" in done.stderr) is not again, "the first reason is kept"
    assert "Traceback" not in done.stderr
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".halted")], "nothing is left over"
    if again:
        assert (tmp_path / "halted").read_text().startswith("the first\n"), "what was stored stays"
    # The head of the ledger is in the home too, so that nothing can be recorded.
    assert done.returncode == 1
    assert "the halt was not recorded, and resting orders may rest still" in done.stderr
    assert "halted" in json.dumps(call(tmp_path, "place_order", AGAIN, **settings))


def test_a_halt_without_its_file_says_that_the_records_are_halted(tmp_path: Path, database: str) -> None:
    home = tmp_path / "home"
    home.write_text("a file where the home should be")
    done = run(home, "halt", DATABASE_URL=database)
    assert done.returncode == 1
    assert "this home is not halted" in done.stderr
    assert "halted: no position" not in done.stdout


def test_a_halt_file_that_is_not_utf8_halts_and_can_be_noted_in_the_ledger(tmp_path: Path) -> None:
    file = HaltFile(tmp_path / "halted")
    file.path.write_bytes("Störung\n".encode("latin-1"))
    halt = file.read()
    assert halt is not None
    assert not halt.known
    file.note_entry("a ledger", 7)
    assert file.entry("a ledger") == 7
    assert file.read() is not None
