"""Clocks of their own at the operator's shell: refused when later than the machine's, and what they do in scenarios."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from openbell.desk.desk import make_clock
from openbell.desk.settings import load
from openbell.desk.settings.open_records import Scenarios, make_records
from openbell.market.clock import iso, parse_time
from openbell.stores.records.journal import Journal
from tests.client import OPENBELL, PATIENCE, Client, run
from tests.servers.histories import History

T0, T1, T2 = "2026-01-07T15:00:00Z", "2026-01-07T15:30:00Z", "2026-01-07T16:00:00Z"
ORDER = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}
ALERT = {"symbol": "BTC/USD", "condition": {"price_above": 1.0}}
DECISION = {"symbol": "BTC/USD", "action": "HOLD", "confidence": 0.5, "reasoning": "because"}
LATER_THAN_NOW = "2999-01-01T00:00:00Z"


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Where records are kept."""
    return {} if request.param == "sqlite" else {"DATABASE_URL": request.getfixturevalue("database")}


def call(home: Path, at: str, scenario: str, tool: str, settings: dict[str, str], **given: Any) -> Any:
    words = ("call", "chartgen", tool, json.dumps(given), "--trade", "--as-of", at, "--scenario", scenario)
    done = run(home, *words, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@contextmanager
def server(home: Path, at: str, scenario: str, settings: dict[str, str]) -> Iterator[Client]:
    command = [*OPENBELL, "mcp", "chartgen", "--trade", "--as-of", at, "--scenario", scenario]
    with Client(home, command=command, TIMEOUT="60", **settings) as client:
        client.initialize()
        yield client


def result(client: Client, tool: str, **given: Any) -> Any:
    return client.call(tool, given)["result"]["structuredContent"]


def listed(home: Path, settings: dict[str, str]) -> dict[str, str]:
    """Each scenario's name and what is said about it."""
    done = run(home, "scenario", "list", **settings)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("no scenarios")]
    return {name: said for name, _, said in (line.partition("  ") for line in lines)}


# No clock runs ahead of the machine's


@pytest.mark.parametrize(
    "words",
    [
        ("call", "portfolio", "get_balance"),
        ("call", "chartgen", "get_orders", "{}", "--trade"),
        ("call", "chart-signals", "check_market_status", "{}", "--read-only"),
        ("mcp", "chartgen", "--trade", "--scenario", "x"),
        ("mcp", "market-data"),
    ],
)
def test_a_later_clock_is_refused_at_start_and_nothing_is_made(tmp_path: Path, words: tuple[str, ...]) -> None:
    for flags, given in ((("--as-of", LATER_THAN_NOW), {}), ((), {"AS_OF": LATER_THAN_NOW})):
        done = run(tmp_path / "home", *words, *flags, **given)
        assert done.returncode != 0
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        named = re.search(r"later than this machine's time, (\S+):", line)
        assert named, line
        assert named[1][:11] in {iso(time.time())[:11], iso(time.time() - 60)[:11]}
        assert not (tmp_path / "home").exists()


def test_a_replay_that_reaches_the_present_stops_there_and_says_so(tmp_path: Path) -> None:
    command = [*OPENBELL, "mcp", "chart-signals", "--as-of", iso(int(time.time()) - 3600)]
    with Client(tmp_path, command=command, REPLAY_SPEED="1000000") as client:
        client.initialize()
        first, again = (client.call("check_market_status")["result"]["structuredContent"] for _ in range(2))
        assert first == again, "the clock stands"
        assert first["timestamp"] <= iso(time.time())
        client.end_input()
        assert client.process.wait(PATIENCE) == 0
    said = b"".join(client.errors).decode()
    assert said.count(f"the replay has reached the present and stops at {first['timestamp']}") == 1


# Listing, emptying, removing


def test_scenarios_are_listed_emptied_and_removed(tmp_path: Path, settings: dict[str, str]) -> None:
    assert listed(tmp_path, settings) == {}
    for name in ("one", "two"):
        call(tmp_path, T1, name, "place_order", settings, **ORDER)
    found = listed(tmp_path, settings)
    assert set(found) == {"one", "two"}
    assert found["one"].endswith("entries, up to 2026-01-07T15:30:00+00:00")
    assert int(found["one"].split()[0]) >= 3
    done = run(tmp_path, "scenario", "reset", "one", **settings)
    assert (done.returncode, done.stdout, done.stderr) == (0, "one is empty\n", "")
    assert listed(tmp_path, settings)["one"] == "0 entries, empty"
    call(tmp_path, T0, "one", "place_order", settings, **ORDER)
    done = run(tmp_path, "scenario", "remove", "one", **settings)
    assert (done.returncode, done.stdout, done.stderr) == (0, "one is removed\n", "")
    assert set(listed(tmp_path, settings)) == {"two"}
    assert call(tmp_path, T0, "one", "get_orders", settings)["orders"] == [], "a new one of the same name is a new one"
    assert len(call(tmp_path, T1, "two", "get_orders", settings)["orders"]) == 1


def test_the_records_and_answers_of_a_scenario_name_it(tmp_path: Path) -> None:
    words = ("call", "chartgen", "place_order", json.dumps(ORDER), "--trade", "--as-of", T0, "--scenario", "named")
    told = json.loads(run(tmp_path, *words, "--meta").stdout)
    assert told["_meta"]["openbell/truth"]["scenario"] == "named"
    assert call(tmp_path, T1, "named", "get_orders", {})["orders"][0]["status"] == "filled"
    with closing(sqlite3.connect(tmp_path / "simulated" / "scenarios" / "named" / "records.sqlite")) as records:
        for column in ("name FROM accounts", "account FROM orders", "account FROM fills"):
            assert records.execute(f"SELECT {column}").fetchall() == [("named",)]
    assert "scenario" not in run(tmp_path, "call", "portfolio", "get_balance", AS_OF=T1).stderr


@pytest.mark.parametrize("clock", [{}, {"AS_OF": T1}, {"AS_OF": T0, "REPLAY_SPEED": "60"}], ids=["now", "then", "runs"])
def test_a_replay_acts_in_a_scenario_whatever_account_is_named(tmp_path: Path, clock: dict[str, str]) -> None:
    """Its bars are the real market's, and the paper account that is named is the present's."""
    rows = "".join(f"{parse_time(T0) + 60 * n:.0f},1,1,1,1,1\n" for n in range(3))
    (tmp_path / "bars.csv").write_text("timestamp,open,high,low,close,volume\n" + rows)
    assert run(tmp_path, "import", str(tmp_path / "bars.csv"), "-s", "BTC/USD", FEED="none").returncode == 0
    assert run(tmp_path, "account", "add", "mine", "--cash", "5000", FEED="none").returncode == 0
    before = (tmp_path / "records.sqlite").read_bytes()
    replay = {"FEED": "replay", "ACCOUNT": "mine", **clock}
    for tool, given in (("set_alert", ALERT), ("get_balance", {})):
        done = run(tmp_path, "call", "chartgen", tool, json.dumps(given), "--trade", "--meta", **replay)
        assert done.returncode == 0, done.stdout + done.stderr
        told = json.loads(done.stdout)
        assert told["_meta"]["openbell/truth"]["scenario"] == "as-of"
    assert told["result"]["cash"] == "100000", "the scenario's own"
    assert (tmp_path / "records.sqlite").read_bytes() == before
    mine = run(tmp_path, "call", "chartgen", "get_balance", "{}", "--trade", FEED="none", ACCOUNT="mine")
    assert json.loads(mine.stdout)["cash"] == "5000"


@pytest.mark.parametrize("command", ["reset", "remove"])
def test_a_scenario_that_is_not_there_is_one_line(tmp_path: Path, command: str) -> None:
    for name in ("none", "../..", "", "."):
        done = run(tmp_path / "home", "scenario", command, name)
        assert done.returncode != 0
        assert done.stdout == ""
        assert done.stderr.startswith(f"openbell: no scenario {name!r}")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("command", ["reset", "remove"])
def test_a_scenario_of_another_market_is_named_with_the_setting_that_reads_it(tmp_path: Path, command: str) -> None:
    (tmp_path / "scenarios" / "crash").mkdir(parents=True)
    (tmp_path / "simulated" / "seed-7" / "scenarios" / "other").mkdir(parents=True)

    real = run(tmp_path, "scenario", command, "crash")
    seeded = run(tmp_path, "scenario", command, "other", FEED="none")

    assert real.returncode == seeded.returncode == 1
    assert "no scenario 'crash'" in real.stderr and "OPENBELL_FEED=none" in real.stderr
    assert "OPENBELL_FEED=sim OPENBELL_SIM_SEED=7 reads that of the simulated market" in seeded.stderr
    assert (tmp_path / "scenarios" / "crash").is_dir()


def test_a_scenario_in_use_is_neither_emptied_nor_removed(tmp_path: Path, settings: dict[str, str]) -> None:
    call(tmp_path, T0, "busy", "place_order", settings, **ORDER)
    with server(tmp_path, T1, "busy", settings) as client:
        deadline = time.monotonic() + PATIENCE
        while "in use by" not in listed(tmp_path, settings)["busy"]:
            assert time.monotonic() < deadline
        for command in ("reset", "remove"):
            done = run(tmp_path, "scenario", command, "busy", **settings)
            assert (done.returncode, done.stdout) == (1, "")
            assert "the scenario busy is in use by" in done.stderr
            assert "stop that process first" in done.stderr
        assert len(result(client, "get_orders")["orders"]) == 1
        client.end_input()
        assert client.process.wait(PATIENCE) == 0
    assert run(tmp_path, "scenario", "remove", "busy", **settings).returncode == 0
    assert listed(tmp_path, settings) == {}


# Two at once


@contextmanager
def write_lock(home: Path, at: str, scenario: str, given: dict[str, str]) -> Iterator[None]:
    """A transaction that writes to a scenario and does not end before the block does."""
    names = {"HOME": str(home), "AS_OF": at, "TRADE": "1", "SCENARIO": scenario, **given}
    settings = load({f"OPENBELL_{name}": value for name, value in names.items()})
    held: Future[None] = Future()
    ending = threading.Event()

    def work(journal: Journal) -> None:
        journal.note("test", "lock", None)
        held.set_result(None)
        assert ending.wait(2 * PATIENCE)

    async def hold() -> None:
        records = make_records(settings, make_clock(settings), scenario)
        try:
            await records.write(work)
        finally:
            await records.close()

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    try:
        held.result(PATIENCE)
        yield
    finally:
        ending.set()
        thread.join(PATIENCE)


def test_scenarios_do_not_wait_for_each_other(tmp_path: Path, settings: dict[str, str]) -> None:
    with server(tmp_path, T1, "one", settings) as one, server(tmp_path, T1, "two", settings) as two:
        for client in (one, two):
            assert result(client, "place_order", **ORDER)["status"] == "open"
        with write_lock(tmp_path, T1, "one", settings):
            for number in range(3):
                placed = result(two, "place_order", **ORDER, client_order_id=str(number))
                assert placed["status"] == "open"
            blocked = {"name": "place_order", "arguments": {**ORDER, "client_order_id": "waits"}}
            one.send({"jsonrpc": "2.0", "id": "waits", "method": "tools/call", "params": blocked})
            assert len(result(two, "get_orders")["orders"]) == 4
            assert one.lines.empty(), "the lock is held: whoever writes to the same scenario waits"
        assert one.response("waits")["result"]["structuredContent"]["status"] == "open"


def test_two_clocks_in_one_scenario_do_not_wait_for_each_other(tmp_path: Path, settings: dict[str, str]) -> None:
    with server(tmp_path, T0, "shared", settings) as early:
        placed = result(early, "place_order", **ORDER)
        assert placed["status"] == "open"
        with server(tmp_path, T1, "shared", settings) as late:
            (order,) = result(late, "get_orders")["orders"]
            assert order["status"] == "filled", "an engine of a clock that stands does not keep later ones from work"
            again = result(late, "place_order", **ORDER, client_order_id="later")
            assert again["status"] == "open"
        refused = early.call("place_order", {**ORDER, "client_order_id": "earlier"})["result"]
        assert refused["isError"] is True
        assert "use a later --as-of" in refused["content"][0]["text"]
        (order,) = result(early, "get_orders")["orders"]
        assert order["status"] == "open", "at its time the order had not been filled"
    done = run(tmp_path, "verify", "--scenario", "shared", **settings)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_scenario_whose_name_postgresql_would_cut_is_refused(tmp_path: Path, database: str) -> None:
    words = ("call", "chartgen", "get_orders", "{}", "--trade", "--as-of", T0, "--scenario", "x" * 30)
    done = run(tmp_path, *words, DATABASE_URL=database, SIM_SEED="1234567890")
    assert done.returncode == 1
    assert "6 characters shorter" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_scenario_that_was_tampered_with_names_the_command_that_checks_it(tmp_path: Path) -> None:
    call(tmp_path, T0, "cut", "place_order", {}, **ORDER)
    records = sqlite3.connect(tmp_path / "simulated" / "scenarios" / "cut" / "records.sqlite")
    with closing(records), records:
        records.execute("DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)")
    words = ("call", "chartgen", "place_order", json.dumps(ORDER), "--trade", "--as-of", T1, "--scenario", "cut")
    done = run(tmp_path, *words)
    assert done.returncode == 1
    assert "openbell verify --scenario cut --adopt" in done.stdout


def empty(home: Path, name: str, settings: dict[str, str]) -> None:
    """Empty a scenario although a process uses it, as somebody does who removes its files or its schema."""

    async def work() -> None:
        given = load({"OPENBELL_HOME": str(home), **{f"OPENBELL_{key}": value for key, value in settings.items()}})
        scenarios = Scenarios(given, make_clock(given))
        with patch.object(scenarios, "describe", nobody):
            await scenarios.remove(name, keep=True)

    async def nobody(_name: str) -> tuple[int, float, None]:
        return 0, 0.0, None

    asyncio.run(work())


def test_a_server_whose_scenario_was_emptied_says_so_and_writes_nothing(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    """What it remembers of the account is of another one: with it, selling would open a short."""
    sell = {**ORDER, "side": "sell", "reduce_only": True}
    with server(tmp_path, T1, "emptied", settings) as client:
        call(tmp_path, T0, "emptied", "place_order", settings, **ORDER)
        (position,) = result(client, "get_positions")["positions"]
        assert position["quantity"] == "0.01"
        empty(tmp_path, "emptied", settings)
        call(tmp_path, T0, "emptied", "set_alert", settings, **ALERT)
        for tool, given in (("get_positions", {}), ("place_order", sell), ("get_orders", {}), ("list_alerts", {})):
            answer = client.call(tool, given)["result"]
            assert answer["isError"] is True, (tool, answer)
            assert "start this process again" in answer["content"][0]["text"], tool
    with server(tmp_path, T1, "emptied", settings) as client:
        assert result(client, "get_positions")["positions"] == []
        assert result(client, "get_orders")["orders"] == []
    done = run(tmp_path, "verify", "--scenario", "emptied", **settings)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_answer_of_a_server_has_the_alerts_that_were_due(tmp_path: Path, settings: dict[str, str]) -> None:
    """Whether its engine has run yet makes no difference."""
    call(tmp_path, T0, "due", "set_alert", settings, **ALERT)
    with server(tmp_path, T1, "due", settings) as client:
        assert len(result(client, "get_notifications", cursor=0)["notifications"]) == 1
        assert result(client, "list_alerts")["alerts"] == []


def test_one_connection_does_not_contradict_itself_when_a_later_clock_walks_its_scenario(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    """Entries of a scenario have the time of the event: a later walk adds to what an earlier moment shows."""
    call(tmp_path, T0, "walked", "place_order", settings, **ORDER)
    with server(tmp_path, T1, "walked", settings) as client:
        call(tmp_path, T2, "walked", "set_alert", settings, **ALERT)
        (position,) = result(client, "get_positions")["positions"]
        (order,) = result(client, "get_orders")["orders"]
        balance = result(client, "get_balance")
        assert (position["quantity"], order["status"]) == ("0.01", "filled")
        assert float(balance["margin_used"]) > 0
        call(tmp_path, T2, "walked", "place_order", settings, **{**ORDER, "client_order_id": "more"})
        assert result(client, "get_positions")["positions"] == [position]
        assert result(client, "get_balance") == balance


@pytest.mark.parametrize("deed", ["decision", "decision without trade", "alert", "subscription"])
def test_whatever_is_written_into_a_scenario_comes_after_what_was_due(
    tmp_path: Path, settings: dict[str, str], deed: str
) -> None:
    """Otherwise a desk between the two would show an order as open, and could never fill it."""
    call(tmp_path, T0, "as-of", "place_order", settings, **ORDER)
    call(tmp_path, T0, "as-of", "set_alert", settings, **ALERT)
    decision = json.dumps(DECISION)
    words = {
        "decision": ("decisions", "save_decision", decision, "--scenario", "as-of"),
        "decision without trade": ("decisions", "save_decision", decision),
        "alert": ("chartgen", "set_alert", json.dumps(ALERT), "--trade"),
        "subscription": ("chartgen", "subscribe_notifications", "{}", "--trade"),
    }[deed]
    done = run(tmp_path, "call", *words, "--as-of", T2, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    (order,) = call(tmp_path, T1, "as-of", "get_orders", settings, detail=True)["orders"]
    assert (order["status"], order["updated_at"]) == ("filled", "2026-01-07T15:01:00+00:00")
    assert call(tmp_path, T1, "as-of", "list_alerts", settings)["alerts"] == []
    assert len(call(tmp_path, T1, "as-of", "get_notifications", settings)["notifications"]) == 1


# Reading a named scenario needs no --trade


def test_reads_without_trade_use_the_named_scenarios_account(tmp_path: Path, settings: dict[str, str]) -> None:
    call(tmp_path, T0, "spring", "place_order", settings, **ORDER)
    at_spring, at_present = ("--as-of", T1, "--scenario", "spring"), ("--as-of", T1)
    for flags, sizes in ((at_spring, [0.01]), (at_present, [])):
        done = run(tmp_path, "call", "portfolio", "get_positions", *flags, **settings)
        assert [each["size"] for each in json.loads(done.stdout)["data"]["items"]] == sizes
        assert ("scenario=spring" in done.stderr) == bool(sizes)
        assert "there is no scenario" not in done.stderr
        chart = json.dumps({"symbol": "BTC/USD", "timeframe": "1m", "format": "summary", "trades": True})
        done = run(tmp_path, "call", "chartgen", "generate_chart", chart, *flags, **settings)
        assert len(json.loads(done.stdout)["trades"]["fills"]) == len(sizes)
    with Client(tmp_path, command=[*OPENBELL, "mcp", "portfolio", *at_spring], TIMEOUT="60", **settings) as client:
        client.initialize()
        assert result(client, "get_balance")["data"]["margin_used"] > 0


def test_reading_a_scenario_that_is_not_there_says_so_and_suggests_the_nearest(tmp_path: Path) -> None:
    call(tmp_path, T0, "spring", "place_order", {}, **ORDER)
    done = run(tmp_path, "call", "portfolio", "get_balance", "--as-of", T1, "--scenario", "sprimg")
    assert json.loads(done.stdout)["data"]["total_balance"] == 100_000
    said = "there is no scenario sprimg yet, so its account is new and empty; did you mean 'spring'?"
    assert f"openbell: {said}" in done.stderr.splitlines()
    assert set(listed(tmp_path, {})) == {"spring"}, "nothing was made"


def test_a_scenario_without_a_clock_of_its_own_is_refused_with_a_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, "call", "portfolio", "get_balance", "--scenario", "spring")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--scenario (OPENBELL_SCENARIO) needs --as-of: the present has no scenarios" in done.stderr


# What is due is done before anything is said or cancelled


def test_a_server_of_a_later_clock_finds_an_order_filled_that_was_placed_by_a_call(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    placed = call(tmp_path, T0, "late", "place_order", settings, **ORDER)
    assert placed["status"] == "open"
    with server(tmp_path, T2, "late", settings) as client:
        answer = client.call("cancel_order", {"order_id": placed["order_id"]})["result"]
        assert answer["isError"] is True
        assert f"order {placed['order_id']} is filled already" in answer["content"][0]["text"]
        (position,) = result(client, "get_positions")["positions"]
        assert (position["symbol"], position["quantity"]) == ("BTC/USD", "0.01")
        assert position["opened_at"] < "2026-01-07T15:02"
        (order,) = result(client, "get_orders")["orders"]
        assert order["status"] == "filled"


def test_a_call_fires_alerts_that_were_due(tmp_path: Path) -> None:
    call(tmp_path, T0, "late", "set_alert", {}, **ALERT)
    (fired,) = call(tmp_path, T2, "late", "get_notifications", {})["notifications"]
    assert fired["triggered_at"] == "2026-01-07T15:01:00+00:00"


def test_a_read_only_desk_does_not_say_that_an_order_is_still_to_fill(tmp_path: Path) -> None:
    call(tmp_path, T0, "late", "place_order", {}, **ORDER)
    flags = ("--trade", "--read-only", "--scenario", "late")
    for at, expected in ((T0, "fills at the open of the next minute"), (T1, "it may have filled since")):
        done = run(tmp_path, "call", "chartgen", "get_orders", "{}", *flags, "--as-of", at)
        (order,) = json.loads(done.stdout)["orders"]
        assert expected in order["reason"]
        assert "note=read-only" in done.stderr


def test_a_scenario_is_free_as_soon_as_a_server_that_it_has_outrun_has_ended(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    with server(tmp_path, T0, "outrun", settings) as client:
        assert result(client, "place_order", **ORDER)["status"] == "open"
        call(tmp_path, T1, "outrun", "place_order", settings, **{**ORDER, "client_order_id": "later"})
    done = run(tmp_path, "scenario", "remove", "outrun", **settings)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "first", ["cancel_order", "get_positions", "get_balance", "get_orders", "place_order", "validate_trade"]
)
def test_the_present_finds_it_filled_too_whatever_is_asked_first(tmp_path: Path, first: str) -> None:
    async def play() -> tuple[Any, Any]:
        history = History(tmp_path, 3)
        async with history.present() as bench:
            placed = await bench.chartgen("place_order", **{**ORDER, "quantity": "1", "client_order_id": "x"})
        history.clock.advance(30 * 60.0)
        async with history.present() as bench:
            given = {
                "cancel_order": {"order_id": placed["order_id"]},
                "place_order": {**ORDER, "quantity": "1", "client_order_id": "x"},
                "validate_trade": {"symbol": "BTC/USD", "side": "SELL", "size": 1},
            }
            name = "portfolio" if first == "validate_trade" else "chartgen"
            return placed, (await bench.reply(name, first, given.get(first, {}))).payload

    placed, answer = asyncio.run(play())
    if first == "cancel_order":
        assert f"order {placed['order_id']} is filled already" in answer["error"]
    elif first == "get_positions":
        assert [each["symbol"] for each in answer["positions"]] == ["BTC/USD"]
    elif first == "get_balance":
        assert float(answer["margin_used"]) > 0
    elif first == "get_orders":
        assert [each["status"] for each in answer["orders"]] == ["filled"]
    elif first == "validate_trade":
        assert answer["data"]["valid"] is True, "what is held can be sold"
    else:
        assert (answer["order_id"], answer["status"]) == (placed["order_id"], "filled")


def test_a_cursor_of_an_inbox_that_was_emptied_is_refused(tmp_path: Path) -> None:
    flags = ("--trade", "--as-of", "2026-01-07T15:00:00Z", "--scenario", "x")
    done = run(
        tmp_path, "call", "chartgen", "set_alert", '{"symbol": "BTC/USD", "condition": {"price_above": 1}}', *flags
    )
    assert done.returncode == 0, done.stdout
    refused = run(tmp_path, "call", "chartgen", "get_notifications", '{"cursor": 1000}', *flags)
    assert refused.returncode == 1
    assert "cursor 1000 is later than everything in this inbox" in refused.stdout
