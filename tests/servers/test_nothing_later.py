"""No tool of any server sees anything later than its desk's clock, and no desk of another clock changes the present."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.settings import DEFAULT_SCENARIO
from openbell.market.clock import iso
from openbell.protocol.tool import Tool
from openbell.servers import NAMES, load
from tests.counts import runs
from tests.servers.desks import bench, bench_as_found
from tests.servers.every_tool import LATER, SAMPLES, Walk, reads
from tests.servers.histories import SYMBOLS, WHAT_IF, History, lifted, put_back

pytestmark = pytest.mark.usefixtures("short_search")
SEEDS = runs(1, soak=40)
PRESENTS = runs(1, soak=40)
Answers = dict[str, dict[str, str]]


def every(_server: str, _tool: Tool) -> bool:
    """All tools, those that write included."""
    return True


MODES: dict[str, tuple[dict[str, str], Any]] = {
    "without trading": ({"TRADE": "0"}, reads),
    "read-only": ({"READ_ONLY": "1"}, reads),
    "read-only in the scenario": ({"READ_ONLY": "1", "SCENARIO": WHAT_IF}, reads),
    "in the scenario": ({"SCENARIO": WHAT_IF}, reads),
    "in a new scenario": ({"SCENARIO": "new"}, every),
    "writing without trading": ({"TRADE": "0"}, every),
}
"""How a question is asked: settings, and which tools are walked."""
WRITING = [mode for mode, (_, wanted) in MODES.items() if wanted is every]
"""In these modes nothing later is in the same scenario: what is written there only follows what was."""
READING = [mode for mode in MODES if mode not in WRITING]


def test_every_tool_has_samples() -> None:
    wanted = {name: {tool.name for tool in load(name).tools} for name in NAMES}
    assert {name: set(tools) for name, tools in SAMPLES.items()} == wanted


async def asked(history: History, moment: float, settings: dict[str, str], wanted: Any) -> dict[str, str]:
    """Every tool's answers at a moment, from a desk that was started for it."""
    given = {**history.settings, **settings}
    acts = given["TRADE"] == "1"
    with lifted(history.home) if acts else nullcontext():
        if "READ_ONLY" in settings and "SCENARIO" in settings:
            # It cannot bring the scenario up to its time: it shows it as far as another desk has.
            async with bench(history.home, iso(moment), **{**history.settings, "SCENARIO": settings["SCENARIO"]}):
                pass
        async with bench_as_found(history.home, iso(moment), **given) as desk:
            if acts and not desk.desk.settings.read_only:
                await desk.desk.trading.catch_up()
            return await Walk(desk.desk).all(wanted)


async def answers(history: History, moment: float, modes: Any = MODES) -> Answers:
    found: Answers = {}
    for mode in modes:
        settings, wanted = MODES[mode]
        with put_back(history.home):
            found[mode] = await asked(history, moment, settings, wanted)
    return found


def differing(before: Answers, after: Answers) -> list[str]:
    return [
        f"{mode}: {question}\n  before: {answer[:600]}\n  after:  {after[mode][question][:600]}"
        for mode, given in before.items()
        for question, answer in given.items()
        if after[mode][question] != answer
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_question_has_the_same_answer_before_and_after_later_deeds(tmp_path: Path, seed: int) -> None:
    async def play() -> tuple[Answers, Answers]:
        history = History(tmp_path / "home", seed)
        await history.go_on(history.chance.choice((0, 8, 25)))
        began = history.clock.epoch()
        await history.go_on(1)
        moment = float(int(history.clock.epoch()))
        await history.what_if(began - 1800, moment, history.chance.choice((0, 3)))
        before = await answers(history, moment)
        history.clock.advance(1.0)
        history.symbols.append(LATER)
        await history.go_on(12)
        await history.what_if(moment, history.clock.epoch(), 3)
        await history.everything()
        after = await answers(history, moment, WRITING)
        # A desk that only reads shows the decisions of the default scenario too.
        await history.what_if(moment, history.clock.epoch(), 2, SCENARIO=DEFAULT_SCENARIO)
        return before, after | await answers(history, moment, READING)

    before, after = asyncio.run(play())
    assert differing(before, after) == []


def test_the_same_question_has_the_same_answer_on_postgresql(tmp_path: Path, database: str) -> None:
    """Only questions that write nothing: a database cannot be put back as quickly as a folder.

    Two modes that read different records; files show the others.
    """

    async def play() -> tuple[Answers, Answers]:
        history = History(tmp_path / "home", 1, DATABASE_URL=database)
        await history.go_on(15)
        moment = float(int(history.clock.epoch()))
        await history.what_if(moment - 1800, moment, 2)

        async def asked_all() -> Answers:
            modes = ("without trading", "read-only in the scenario")
            return {mode: await asked(history, moment, *MODES[mode]) for mode in modes}

        before = await asked_all()
        history.clock.advance(1.0)
        history.symbols.append(LATER)
        await history.go_on(8)
        await history.what_if(moment, history.clock.epoch(), 2)
        await history.everything()
        return before, await asked_all()

    before, after = asyncio.run(play())
    assert differing(before, after) == []


def test_the_same_question_of_a_feed_has_the_same_answer_after_later_bars_were_fetched(tmp_path: Path) -> None:
    """But for what is stored: the first question stores bars, whatever its clock."""

    def wanted(server: str, tool: Tool) -> bool:
        return reads(server, tool) and tool.name != "get_storage_info"

    async def play() -> tuple[Answers, Answers]:
        history = History(tmp_path / "home", 0, FEED="sim")
        history.home.mkdir()
        (history.home / "watchlist.txt").write_text("BTC/USD\nAAPL\n")
        before = {"": await asked(history, moment, {"TRADE": "0"}, wanted)}
        for later in (moment + 30, moment + 3600, moment + 30 * 86400):
            await asked(history, later, {"TRADE": "0"}, wanted)
        return before, {"": await asked(history, moment, {"TRADE": "0"}, wanted)}

    moment = 1_758_290_400.0
    before, after = asyncio.run(play())
    assert differing(before, after) == []


def test_histories_have_every_kind_of_deed_before_and_after(tmp_path: Path) -> None:
    """Otherwise the comparison above would prove nothing about the kinds that are missing."""
    history = History(tmp_path / "home", 1)

    async def play() -> list[set[str]]:
        kinds: list[set[str]] = []
        for _ in range(2):
            await history.go_on(40)
            await history.everything()
            kinds.append({kind for kind, at in ledger(tmp_path) if at > (len(kinds) and moments[-1])})
            moments.append(history.clock.epoch())
            history.clock.advance(1.0)
        return kinds

    moments: list[float] = []
    for kinds in asyncio.run(play()):
        assert kinds >= {"order", "fill", "verdict", "alert", "decision", "switch", "cursors", "subscription"}


def ledger(tmp_path: Path) -> list[tuple[str, float]]:
    connection = sqlite3.connect(tmp_path / "home" / "records.sqlite")
    try:
        return connection.execute("SELECT kind, at FROM ledger").fetchall()
    finally:
        connection.close()


# What a scenario shows of its own past


def test_what_waited_to_be_pushed_is_still_told_after_the_subscription_has_ended(tmp_path: Path) -> None:
    async def play() -> list[Any]:
        async def at(minute: int, tool: str, **given: Any) -> Any:
            async with bench(tmp_path, f"2026-01-07T15:{minute:02}:00Z", SCENARIO=WHAT_IF) as desk:
                return await desk.chartgen(tool, **given)

        await at(0, "subscribe_notifications")
        await at(0, "set_alert", symbol="BTC/USD", condition={"price_above": 1})
        before = await at(10, "list_subscriptions")
        await at(11, "unsubscribe_notifications")
        return [before, await at(10, "list_subscriptions"), await at(11, "list_subscriptions")]

    before, again, ended = asyncio.run(play())
    assert before["queued"] == 1
    assert again == before
    assert ended == {"subscriptions": [], "queued": 0}


def test_notifications_of_a_scenario_that_has_gone_on_are_read_again_and_nothing_is_noted(tmp_path: Path) -> None:
    async def play() -> list[Any]:
        async def at(minute: int, tool: str, **given: Any) -> Any:
            async with bench(tmp_path, f"2026-01-07T15:{minute:02}:00Z", SCENARIO=WHAT_IF) as desk:
                return await desk.chartgen(tool, **given)

        await at(0, "set_alert", symbol="BTC/USD", condition={"price_above": 1})
        await at(20, "set_alert", symbol="BTC/USD", condition={"price_above": 1})
        early = [await at(10, "get_notifications") for _ in range(2)]
        await at(10, "get_notifications", cursor=early[0]["cursor"])
        return [*early, await at(30, "get_notifications")]

    first, again, late = asyncio.run(play())
    assert len(first["notifications"]) == 1
    assert again == first
    assert len(late["notifications"]) == 2


# What is left of the present


def present_records(home: Path) -> list[str]:
    """Every table of the present's records, as statements."""
    connection = sqlite3.connect(home / "records.sqlite")
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def present_files(home: Path) -> dict[str, str]:
    """Every file but those of the database, which `present_records` compares, and of scenarios."""
    own = {"records.sqlite", "records.sqlite-wal", "records.sqlite-shm"}
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.name not in own and path.relative_to(home).parts[0] not in {"scenarios", "data"}
    }


OTHER_CLOCKS: list[dict[str, str]] = [
    {"SCENARIO": WHAT_IF},
    {},
    {"TRADE": "0"},
    {"TRADE": "0", "SCENARIO": WHAT_IF},
    {"READ_ONLY": "1"},
]


@pytest.mark.parametrize("halted", [False, True])
@pytest.mark.parametrize("seed", range(PRESENTS))
def test_no_tool_of_another_clock_changes_the_present(tmp_path: Path, seed: int, halted: bool) -> None:
    """Orders rest, alerts wait and pushes are queued that the clock's bars would fill, fire and send."""

    async def play() -> None:
        history = History(home, seed)
        await history.go_on(15)
        async with history.present() as bench:
            await bench.chartgen("subscribe_notifications")
            await bench.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1.0})
            history.clock.advance(120.0)
            history.arrive(bench.desk)
            await bench.desk.trading.engine.step(None)
            assert (await bench.chartgen("list_subscriptions"))["queued"] > 0
            for price in (1.0, 1e9):
                await bench.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": price})
            await bench.desk.trading.halts.resume()
            bench.desk.trading.halt_file.lift()
            for symbol in SYMBOLS:
                await bench.reply("chartgen", "place_order", {**ORDER, "symbol": symbol, "client_order_id": symbol})
            if halted:
                bench.desk.trading.halt_file.set("the present is halted", bench.desk.clock.epoch())
                await bench.desk.trading.halts.halt("the present is halted")
            history.clock.advance(3600.0)
            history.arrive(bench.desk)  # nobody has looked at these bars
        records, files = present_records(home), present_files(home)
        early, late = history.clock.epoch() - 5400, history.clock.epoch()
        for moment in (late,) if halted else (early, late):
            for settings in OTHER_CLOCKS:
                await _all_that_a_server_does(history, moment, settings)
                assert present_records(home) == records, settings
                assert present_files(home) == files, settings

    home = tmp_path / "home"
    asyncio.run(play())


ORDER: dict[str, Any] = {"side": "buy", "type": "market", "quantity": "1"}


async def _all_that_a_server_does(history: History, moment: float, settings: dict[str, str]) -> None:
    """Every tool is called, what happened meanwhile is caught up with, and a client is there to be pushed to."""

    async def receive(method: str, params: dict[str, Any]) -> None:
        pushed.append((method, params))

    pushed: list[tuple[str, dict[str, Any]]] = []
    async with bench_as_found(history.home, iso(moment), **{**history.settings, **settings}) as bench:
        trading = bench.desk.trading
        await trading.catch_up()
        trading.start()
        trading.push_to(bench, "local", receive)
        found = await Walk(bench.desk).all(every)
    placed = [answer for question, answer in found.items() if "place_order" in question]
    may_trade = bench.desk.settings.trade and not bench.desk.settings.read_only and not trading.halt_file.read()
    assert any('"isError":false' in answer for answer in placed) == may_trade, placed
    assert not pushed
