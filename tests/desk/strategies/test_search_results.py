"""How strategies are judged: the same way for everyone who asks, once for each state of the bars, apart for other costs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from openbell.backtest import search as searches
from openbell.desk.research.strategies import searching
from openbell.desk.research.strategies import specs as catalogue
from openbell.desk.research.strategies.search_results import Searched
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.records import strategies as queries
from openbell.strategies.implementations import Implementation, fingerprint_of
from openbell.strategies.spec import ConditionType, Stop
from tests.client import run
from tests.desk.strategies.days import BTC, Rows, corrected, imported, same, shuffled
from tests.servers.desks import Bench, awaited, bench_as_found
from tests.servers.reverting_market import BUYS_LOW, DAY, DAYS, FIRST, FOUND
from tests.waiting import PATIENCE

COSTS = (0.001, 0.0005)


async def ranked(desk: Bench) -> dict[str, dict[str, Any]]:
    """The ranking of the symbol, by id."""
    found = await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100, force_refresh=True)
    return {each["strategy_id"]: each for each in found["items"]}


async def listed(desk: Bench, spec: str) -> dict[str, dict[str, Any]]:
    """All implementations of a spec, by id."""
    found = await desk.ask("strategy-db", "get_implementations", spec_id=spec, status="ALL", force_refresh=True)
    return {each["impl_id"]: each for each in found["items"]}


# Costs


@awaited
async def test_processes_with_other_costs_leave_each_others_strategies_alone(
    tmp_path: Path, quick_search: None
) -> None:
    imported(tmp_path / "home", first=FIRST)
    first: dict[str, Any] = {}
    entries = []
    for fee in ("0.001", "0.01", "0.001", "0.01"):
        async with bench_as_found(tmp_path / "home", FOUND, SCENARIO="s", FEED="none", PAPER_FEE=fee) as desk:
            found = await ranked(desk), await listed(desk, "SMA_RSI")
            assert found == first.setdefault(fee, found), "the same question has the same answer"
            assert {each["status"] for each in found[1].values()} <= {"CANDIDATE", "VALIDATED"}
            entries.append(await desk.entries())
    assert not set(first["0.001"][0]) & set(first["0.01"][0])
    assert entries[1:] == [entries[1]] * 3, "nothing is recorded twice"
    assert run(tmp_path / "home", "verify", "--scenario", "s", FEED="none").returncode == 0


# Generations


async def submitted(desk: Bench, *names: str) -> None:
    for name in names:
        await desk.ask("strategy-db", "submit_new_spec", **{**BUYS_LOW, "name": name})


async def found_of(desk: Bench) -> dict[str, tuple[str, int]]:
    """The status and the number of tries of every implementation, by id."""
    found = await desk.desk.strategies.searching.implementations("local", symbol=BTC)
    return {each.id: (each.status.value, each.tries) for each in found}


@awaited
async def test_the_same_bars_again_are_judged_again_and_the_past_stays_as_it_was(
    tmp_path: Path, quick_search: None, unseen_bars: None
) -> None:
    home = tmp_path / "home"

    async def at(moment: str) -> Any:
        async with bench_as_found(home, moment, TRADE="", FEED="none") as desk:
            return (
                await ranked(desk),
                await listed(desk, "BUYS_LOW"),
                await desk.ask("strategy", "get_strategy_consensus", symbol=BTC),
            )

    imported(home)
    async with bench_as_found(home, FEED="none") as desk:
        await submitted(desk, "BUYS_LOW")
        await desk.ask("strategy", "get_strategy_consensus", symbol=BTC)
        first = await listed(desk, "BUYS_LOW")
        moment = datetime.now(UTC).isoformat()
    before = await at(moment)
    for change in (corrected, same):
        imported(home, change)
        async with bench_as_found(home, FEED="none") as desk:
            await ranked(desk)
            last = await listed(desk, "BUYS_LOW")
    assert [each["status"] for each in first.values()] == ["VALIDATED"]
    assert [last[each]["status"] for each in first] == ["RETIRED"], "nothing leaves this status"
    assert sorted(each["status"] for each in last.values())[1:] == ["RETIRED", "VALIDATED"]
    assert await at(moment) == before
    assert run(home, "verify", FEED="none").returncode == 0


@awaited
async def test_two_processes_that_judge_again_at_once_record_one_generation(tmp_path: Path, quick_search: None) -> None:
    home, settings = tmp_path / "home", {"SCENARIO": "s", "FEED": "none"}
    imported(home, first=FIRST)
    async with bench_as_found(home, FOUND, **settings) as desk:
        await ranked(desk)
    imported(home, corrected, first=FIRST)
    async with (
        bench_as_found(home, FOUND, **settings) as one,
        bench_as_found(home, FOUND, **settings) as two,
    ):
        answers = await asyncio.gather(ranked(one), ranked(two))
        found = await listed(one, "SMA_RSI")
    assert answers[0] == answers[1]
    assert sorted(each["status"] == "RETIRED" for each in found.values()) == [False, True]


@awaited
async def test_a_spec_that_is_changed_back_begins_once_more(
    tmp_path: Path, quick_search: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(tmp_path / "home", first=FIRST)
    known = catalogue.canonical_specs()
    (old,) = [each for each in known if each.id == "SMA_RSI"]
    spec = replace(old.spec, stops=(Stop(ConditionType.STOP_LOSS, 7.0),))
    changed = replace(old, spec=spec, fingerprint=fingerprint_of(spec))
    seen: list[set[str]] = []
    for version in (old, changed, old):
        specs = tuple(version if each.id == old.id else each for each in known)
        for module in ("specs", "searching"):
            monkeypatch.setattr(
                f"openbell.desk.research.strategies.{module}.canonical_specs", lambda specs=specs: specs
            )
        async with bench_as_found(tmp_path / "home", FOUND, SCENARIO="s", FEED="none") as desk:
            await ranked(desk)
            found = await listed(desk, "SMA_RSI")
            seen.append({each for each, item in found.items() if item["status"] != "RETIRED"})
    assert [len(each) for each in seen] == [1, 1, 1]
    assert len(found) == 3, "each began with an id of its own"


# The number of tries


@awaited
async def test_everyone_counts_the_same_tries(tmp_path: Path, quick_search: None) -> None:
    """Two canonical specs, and of the principal's three specs two that are equal: four tries, in memory and recorded."""
    home = tmp_path / "home"
    imported(home)
    async with bench_as_found(home, FEED="none") as desk:
        await submitted(desk, "ONE", "COPY_OF_ONE")
        await desk.ask(
            "strategy-db",
            "submit_new_spec",
            **{
                **BUYS_LOW,
                "name": "TWO",
                "exit_conditions": [{**BUYS_LOW["exit_conditions"][0], "params": {"value": 60}}],
            },
        )
    ways = []
    for change in (same, corrected):
        imported(home, change)
        for settings in ({"READ_ONLY": "1", "TRADE": ""}, {}, {"READ_ONLY": "1", "TRADE": ""}):
            async with bench_as_found(home, FEED="none", **settings) as desk:
                await ranked(desk)
                ways.append(await found_of(desk))
    assert sorted(tries for _, tries in ways[0].values()) == [2, 2, 4, 4, 4]
    assert ways[0] == ways[1] == ways[2]
    assert ways[3] == ways[4] == ways[5]
    # Corrected bars are another look: each canonical spec was tried once before, and what two names share twice.
    assert sorted(tries for status, tries in ways[5].values() if status != "RETIRED") == [4, 4, 8, 12, 12]
    assert sum(status == "RETIRED" for status, _ in ways[5].values()) == 5


@awaited
async def test_another_spelling_is_no_other_try_and_another_constant_is(tmp_path: Path, quick_search: None) -> None:
    def crossing(name: str, kind: str, line: str, other: str, slow: int = 20) -> dict[str, Any]:
        lines = [
            {"id": "a", "type": "SMA", "params": {"length": 5}},
            {"id": "b", "type": "SMA", "params": {"length": slow}},
        ]
        rules = [{"type": kind, "indicator": line, "params": {"crosses": other}}]
        ends = [{"type": "UNDER", "indicator": "a", "params": {"other": "b"}}]
        return {
            "name": name, "description": "", "indicators": lines, "entry_conditions": rules, "exit_conditions": ends,
            "parameters": [],
        }  # fmt: skip

    imported(tmp_path / "home")
    tries: list[set[int]] = []
    async with bench_as_found(tmp_path / "home", FEED="none") as desk:
        for given in (
            crossing("ONE", "CROSSED_UP", "a", "b"),
            crossing("TURNED", "CROSSED_DOWN", "b", "a"),
            crossing("SLOWER", "CROSSED_UP", "a", "b", 30),
        ):
            await desk.ask("strategy-db", "submit_new_spec", **given)
            await ranked(desk)
            found = await desk.desk.strategies.searching.implementations("local", symbol=BTC)
            (made,) = [each for each in found if each.spec_id.startswith("spec_") and each.tries > 2][-1:]
            tries.append({made.tries})
    # The turned one is no other try, but another look at the same.
    assert tries == [{3}, {6}, {4}]
    ideas = {each.figures["idea"] for each in found if each.principal}
    assert len(ideas) == 1, "they differ in their constants only"


# Later bars


@awaited
async def test_later_bars_start_another_search_and_leave_what_is_followed(
    tmp_path: Path, quick_search: None, unseen_bars: None
) -> None:
    home, settings = tmp_path / "home", {"SCENARIO": "s", "FEED": "none"}
    imported(home, first=FIRST)

    async def at(moment: str) -> dict[str, tuple[str, str]]:
        async with bench_as_found(home, moment, **settings) as desk:
            await ranked(desk)
            found = await desk.desk.strategies.searching.implementations("local", symbol=BTC)
            return {each.id: (each.spec_id, f"{each.status.value} {each.reason}") for each in found}

    async with bench_as_found(home, FOUND, **settings) as desk:
        await submitted(desk, "BUYS_LOW")
    first = await at(FOUND)
    followed = {each for each, (_, status) in first.items() if status.startswith("VALIDATED")}
    assert followed
    assert await at("2025-04-20T00:05:00Z") == first, "19 days are no month"
    later = await at("2025-05-02T00:05:00Z")
    for each, (spec, _) in first.items():
        if each in followed:
            assert not later[each][1].startswith("RETIRED")
        else:
            assert later[each][1].startswith("RETIRED 31 bars more have closed since it was found; impl_")
            assert sum(of == spec for of, _ in later.values()) == 2, "it begins again"
    assert run(home, "verify", "--scenario", "s", FEED="none").returncode == 0


@awaited
async def test_a_file_that_ended_years_ago_is_searched(tmp_path: Path, quick_search: None) -> None:
    imported(tmp_path / "home", first=FIRST - 4000 * DAY)
    async with bench_as_found(tmp_path / "home", FEED="none") as desk:
        await ranked(desk)
        found = await desk.desk.strategies.searching.implementations("local", symbol=BTC)
    assert len(found) == 2
    assert {each.first for each in found} == {FIRST - 4000 * DAY + (DAYS - 3000) * DAY}


@awaited
async def test_what_earlier_rules_have_judged_is_judged_again(
    tmp_path: Path, quick_search: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version before recorded no edges."""
    home, settings = tmp_path / "home", {"SCENARIO": "s", "FEED": "none"}
    imported(home, first=FIRST)
    made = Searched.judged

    def without_edges(self: Searched, *given: Any) -> tuple[list[Implementation], int]:
        found, tries = made(self, *given)
        gone = {"tried", "idea", "edge_vs_holding", "edge_vs_random_timing", "evidence"}
        kept = [
            replace(each, figures={name: value for name, value in each.figures.items() if name not in gone})
            for each in found
        ]
        return kept, tries

    with monkeypatch.context() as patch:
        patch.setattr(Searched, "judged", without_edges)
        async with bench_as_found(home, FOUND, **settings) as desk:
            before = await ranked(desk)
            assert (await listed(desk, "SMA_RSI")).popitem()[1]["edge_vs_holding"] is None
    async with bench_as_found(home, FOUND, **settings) as desk:
        again = await ranked(desk)
        found = await listed(desk, "SMA_RSI")
    assert not set(before) & set(again)
    (old,) = [each for each in found.values() if each["status"] == "RETIRED"]
    assert old["reason"].startswith("it was judged by earlier rules")
    assert run(home, "verify", "--scenario", "s", FEED="none").returncode == 0


@pytest.mark.parametrize("search_before", [True, False])
@awaited
async def test_a_desk_that_may_not_write_remembers_what_it_tried_without_result(
    tmp_path: Path, quick_search: None, monkeypatch: pytest.MonkeyPatch, search_before: bool
) -> None:
    home, searched = tmp_path / "home", list[list[str]]()
    imported(home, first=FIRST)

    def without_one(specs: Any, *given: Any) -> Any:
        searched.append([each.name for each in specs])
        found = searches.search(specs, *given)
        return [None if spec.name == "SMA_RSI" else each for spec, each in zip(specs, found, strict=True)]

    monkeypatch.setattr(searching, "search", without_one)
    if search_before:  # what is recorded is out of date then
        async with bench_as_found(home, FOUND, SCENARIO="s", FEED="none") as desk:
            await ranked(desk)
        imported(home, corrected, first=FIRST)
        searched.clear()
    async with bench_as_found(home, FOUND, SCENARIO="s", FEED="none", READ_ONLY="1", TRADE="") as desk:
        answers = [await ranked(desk) for _ in range(3)]
    assert [each["name"] for each in answers[0].values()] == ["MACD_CROSSOVER"]
    assert answers == answers[:1] * 3
    assert searched == [["MACD_CROSSOVER", "SMA_RSI"]]


# Votes


def renamed(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """The same strategy in other words."""
    text = json.dumps(spec).replace("rsi", "other").replace("${n}", "${length}").replace('"n"', '"length"')
    return {**json.loads(text), "name": name}


@awaited
async def test_copies_of_a_strategy_have_one_vote(tmp_path: Path, quick_search: None, unseen_bars: None) -> None:
    imported(tmp_path / "home", first=FIRST)
    votes, recorded = list[dict[str, Any]](), []
    key = queries.consensus_id(BTC, "local", COSTS)
    # The scenario records a consensus before the call that follows the search.
    for submissions in ([BUYS_LOW], [], [{**BUYS_LOW, "name": "COPY"}, renamed(BUYS_LOW, "RENAMED")], []):
        async with bench_as_found(tmp_path / "home", FOUND, SCENARIO="s", FEED="none") as desk:
            for each in submissions:
                await desk.ask("strategy-db", "submit_new_spec", **each)
            votes.append(await desk.ask("strategy", "get_strategy_consensus", symbol=BTC))
            recorded.append(await desk.desk.trading.records.read(lambda view: queries.consensus(view, key)))
    assert votes[0] == votes[1] == votes[2] == votes[3]
    async with bench_as_found(tmp_path / "home", FOUND, SCENARIO="s", FEED="none") as desk:
        validated = [each for each in (await ranked(desk)).values() if each["status"] == "VALIDATED"]
    assert {each["name"] for each in validated} >= {"BUYS_LOW", "COPY", "RENAMED"}
    assert len(validated) == sum(votes[0][f"{side}_count"] for side in ("bullish", "bearish", "neutral")) + 2
    before, after = recorded[1], recorded[3]
    assert before is not None
    assert after is not None
    assert [after[side] for side in ("bullish", "bearish", "neutral")] == [
        votes[0][f"{side}_count"] for side in ("bullish", "bearish", "neutral")
    ]
    assert len(after["signals"]) == len(before["signals"])


# The recorded consensus


@pytest.mark.parametrize("change", [corrected, shuffled])
@awaited
async def test_a_search_that_retires_strategies_ends_their_votes_in_the_same_step(
    tmp_path: Path, quick_search: None, unseen_bars: None, change: Callable[[Rows], Rows]
) -> None:
    home, settings = tmp_path / "home", {"SCENARIO": "s", "FEED": "none"}

    async def consensus(desk: Bench) -> int | None:
        found: int | None = await desk.desk.trading.records.read(
            lambda view: queries.latest_consensus(view, BTC, "local", COSTS)
        )
        return found

    imported(home, first=FIRST)
    async with bench_as_found(home, FOUND, **settings) as desk:
        await submitted(desk, "BUYS_LOW")
        await ranked(desk)
    async with bench_as_found(home, FOUND, **settings) as desk:
        await ranked(desk)
        assert await consensus(desk) is not None
    imported(home, change, first=FIRST)
    async with bench_as_found(home, FOUND, **settings) as desk:
        await desk.desk.strategies.searching.ensure("local", Series(parse(BTC), Timeframe.D1))
        assert await consensus(desk) is None, "all its voters are retired"
    async with bench_as_found(home, FOUND, **settings) as desk:
        statuses = {each["status"] for each in (await ranked(desk)).values()}
        assert (await consensus(desk) is not None) == ("VALIDATED" in statuses)


# Bars that change between a search and the next one


@awaited
async def test_strategies_whose_bars_have_changed_have_no_vote_until_they_are_judged_again(
    tmp_path: Path, quick_search: None, unseen_bars: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, may_search = tmp_path / "home", threading.Event()

    def waits(*given: Any) -> Any:
        assert may_search.wait(PATIENCE)
        return searches.search(*given)

    async def consensus() -> int | None:
        found: int | None = await records.read(lambda view: queries.latest_consensus(view, BTC, "local", COSTS))
        return found

    monkeypatch.setattr("openbell.desk.research.strategies.strategy_advice._PATIENCE", 0.05)
    imported(home)
    async with bench_as_found(home, FEED="none") as desk:
        records, follower = desk.desk.trading.records, desk.desk.strategies.follower
        await submitted(desk, "BUYS_LOW")
        await desk.ask("strategy", "get_strategy_consensus", symbol=BTC)
        (made,) = await listed(desk, "BUYS_LOW")
        await follower.step(None, desk.desk.bars.closed_until())
        assert await consensus() is not None

        monkeypatch.setattr(searching, "search", waits)
        imported(home, corrected)
        signal = await desk.ask("strategy", "get_strategy_signal", strategy_id=made, symbol=BTC, force_refresh=True)
        assert "VALIDATED" in signal["note"]
        assert "being judged again" in signal["note"]
        # There is nothing valid to answer with: the call waits for the search.
        asked = desk.reply("strategy", "get_strategy_consensus", {"symbol": BTC, "force_refresh": True})
        asking = asyncio.ensure_future(asked)
        page = await desk.ask("strategy-db", "get_implementations", spec_id="BUYS_LOW", force_refresh=True)
        assert "being judged again" in page["note"]
        specs = await desk.reply("strategy-db", "get_top_specs", {"force_refresh": True})
        assert "being judged again" in specs.truth["note"]
        await follower.step(None, desk.desk.bars.closed_until())
        assert await consensus() is None

        assert not asking.done()
        may_search.set()
        answer = (await asking).payload
        assert "being judged again" not in str(answer)
        async with asyncio.timeout(PATIENCE):
            while (await listed(desk, "BUYS_LOW"))[made]["status"] != "RETIRED":
                await asyncio.sleep(0.01)
        found = await desk.ask(
            "strategy-db", "get_implementations", spec_id="BUYS_LOW", status="ALL", force_refresh=True
        )
        assert "being judged again" not in found["note"]


@awaited
async def test_with_a_fixed_clock_the_first_answer_after_a_correction_is_the_last_one(
    tmp_path: Path, quick_search: None
) -> None:
    home, settings = tmp_path / "home", {"SCENARIO": "s", "FEED": "none"}
    imported(home, first=FIRST)
    async with bench_as_found(home, FOUND, **settings) as desk:
        await ranked(desk)
        before = await listed(desk, "SMA_RSI")
    imported(home, corrected, first=FIRST)
    async with bench_as_found(home, FOUND, **settings) as desk:
        (made,) = before
        signals = [
            await desk.ask("strategy", "get_strategy_signal", strategy_id=made, symbol=BTC, force_refresh=True)
            for _ in range(2)
        ]
        assert signals[0] == signals[1]
        assert "RETIRED" in signals[0]["note"]
    imported(home, same, first=FIRST)
    async with bench_as_found(home, FOUND, **settings) as desk:
        assert [len(await listed(desk, "SMA_RSI")) for _ in range(2)] == [3, 3]
