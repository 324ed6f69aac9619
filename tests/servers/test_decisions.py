"""The decisions contract: over real pipes on SQLite and on a real PostgreSQL, and in process where a pipe adds nothing."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from openbell.desk.orders.decisions import LONGEST_REASONING
from tests.client import OPENBELL, Client, run
from tests.servers.desks import (
    OTHER,
    ask,
    awaited,
    bench,
    bench_as_found,
    check_against_contract,
    data,
    error,
    fresh_database,
    metadata,
)
from tests.servers.desks import (
    payload as written,
)
from tests.servers.test_sizes import MOST, tokens
from tests.stores.records.postgres_server import PASSWORD, NotHere, PostgresServer

CONTRACT = json.loads((Path(__file__).parent / "contracts" / "decisions.json").read_text())
COMMAND = [*OPENBELL, "mcp", "decisions"]
SQL = "'; DROP TABLE decisions; DELETE FROM ledger; --"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    settings = {"TIMEOUT": "60", "LOG_LEVEL": "debug"}
    if request.param == "postgresql":
        settings["DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"))
    with Client(tmp_path_factory.mktemp("journal"), command=COMMAND, **settings) as made:
        made.initialize()
        made.aside = [{"store": request.param}]
        yield made


def decision(symbol: str = "BTC/USD", **given: Any) -> dict[str, Any]:
    return {"symbol": symbol, "action": "HOLD", "confidence": 0.5, "reasoning": "because", **given}


def save(client: Client, symbol: str, **given: Any) -> str:
    saved = data(client, "save_decision", **decision(symbol, **given))
    assert saved["saved"] is True
    return str(saved["decision_id"])


def recent(client: Client, **given: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = data(client, "get_recent_decisions", force_refresh=True, **given)["items"]
    return found


# The contract


def test_names_schemas_enums_limits_and_defaults_are_the_contracts(client: Client) -> None:
    check_against_contract(client, CONTRACT)


def test_results_fit_the_contract_and_say_where_they_come_from(client: Client) -> None:
    returns = {tool["name"]: tool["returns"] for tool in CONTRACT}
    schemas = {tool["name"]: tool["outputSchema"] for tool in client.request("tools/list")["result"]["tools"]}
    saved = ask(
        client, "save_decision", **decision("NFLX", opportunity_score=7.5, tool_calls=[{"name": "get_candles"}])
    )
    listed = ask(client, "get_recent_decisions", symbol="NFLX")
    for name, answer in (("save_decision", saved), ("get_recent_decisions", listed)):
        payload = answer["structuredContent"]
        jsonschema.validate(payload, schemas[name])
        jsonschema.validate(payload["data"], returns[name])
        assert set(payload["data"]) == set(returns[name]["properties"])
        assert payload["_metadata"]["source"] == client.aside[0]["store"]
        assert payload["_metadata"]["cached"] is False
        assert payload["_metadata"]["cache_ttl_remaining"] is None
        assert payload["_metadata"]["latency_ms"] > 0
    (item,) = listed["structuredContent"]["data"]["items"]
    fields = returns["get_recent_decisions"]["properties"]["items"]["items"]["properties"]
    assert set(item) == {*fields, "from", "trusted"}
    assert (item["from"], item["trusted"]) == ("local", False), "whoever wrote the reasoning, it is no instruction"
    assert (item["decision_id"], item["symbol"]) == (saved["structuredContent"]["data"]["decision_id"], "NFLX")
    assert (item["action"], item["confidence"], item["opportunity_score"]) == ("HOLD", 0.5, 7.5)


def test_a_score_that_was_not_given_is_null(client: Client) -> None:
    save(client, "INTC")
    (item,) = recent(client, symbol="INTC")
    assert item["opportunity_score"] is None


def test_a_long_reasoning_is_cut_in_a_list_and_whole_on_its_own(client: Client) -> None:
    long, short = "Because the trend holds. " * 600, "because"
    save(client, "CRWD", reasoning=short)
    save(client, "CRWD", reasoning=long)
    reply = ask(client, "get_recent_decisions", symbol="CRWD", force_refresh=True)["structuredContent"]
    assert tokens(reply) <= MOST
    newest, older = reply["data"]["items"]
    assert long.startswith(newest["reasoning"].removesuffix(" …"))
    assert len(newest["reasoning"]) > 2500
    assert newest["reasoning_length"] == len(long)
    assert (older["reasoning"], "reasoning_length" in older) == (short, False)
    (whole,) = recent(client, symbol="CRWD", limit=1)
    assert (whole["reasoning"], "reasoning_length" in whole) == (long, False)


def test_a_full_page_of_long_reasonings_is_short(client: Client) -> None:
    for number in range(10):
        save(client, "SHOP", reasoning=f"{number} " + "word " * 300)
    reply = ask(client, "get_recent_decisions", symbol="SHOP", force_refresh=True)["structuredContent"]
    assert tokens(reply) <= MOST
    assert len({len(each["reasoning"]) // 10 for each in reply["data"]["items"]}) == 1, "each has the same share"


def test_the_server_calls_itself_as_in_the_contract(client: Client) -> None:
    assert client.initialize()["serverInfo"]["name"] == "decisions-mcp"


def test_symbols_are_answered_in_their_canonical_form_and_found_by_any(client: Client) -> None:
    save(client, "solusdt")
    for spelling in ("SOLUSDT", "sol-usdt", "BINANCE:SOLUSDT", "SOL/USDT"):
        (item,) = recent(client, symbol=spelling)
        assert item["symbol"] == "SOL/USDT"


# Errors


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (decision("???"), "INVALID_SYMBOL"),
        (decision(""), "INVALID_SYMBOL"),
        (decision("BTC\u0000USD"), "INVALID_SYMBOL"),
        (decision(action="long"), "INVALID_ACTION"),
        (decision(action="STRONG_BUY"), "INVALID_ACTION"),
        (decision(action=""), "INVALID_ACTION"),
        (decision(action=None), "INVALID_PARAMETER"),
        (decision(confidence=1.0000001), "INVALID_CONFIDENCE"),
        (decision(confidence=-0.1), "INVALID_CONFIDENCE"),
        (decision(confidence=87), "INVALID_CONFIDENCE"),
        (decision(confidence="0.5"), "INVALID_PARAMETER"),
        (decision(confidence="NaN"), "INVALID_PARAMETER"),
        (decision(confidence=True), "INVALID_PARAMETER"),
        (decision(confidence=None), "INVALID_PARAMETER"),
        (decision(reasoning="x" * 16_385), "REASONING_TOO_LONG"),
        (decision(reasoning="ⓧ" * 16_385), "REASONING_TOO_LONG"),
        (decision(reasoning="a\u0000b"), "INVALID_PARAMETER"),
        (decision(reasoning=7), "INVALID_PARAMETER"),
        (decision(opportunity_score="high"), "INVALID_PARAMETER"),
        (decision(tool_calls={}), "INVALID_PARAMETER"),
        (decision(tool_calls=["a\u0000b"]), "INVALID_PARAMETER"),
        (decision(tool_calls=[{"\u0000": 1}]), "INVALID_PARAMETER"),
        (decision(tool_calls=["\\\u0000"]), "INVALID_PARAMETER"),
        (decision(tool_calls=["x" * 300_000]), "INVALID_PARAMETER"),
        (decision(nonsense=1), "INVALID_PARAMETER"),
        ({"symbol": "AAPL"}, "INVALID_PARAMETER"),
    ],
)
def test_a_bad_decision_has_its_code_and_is_not_kept(client: Client, arguments: dict[str, Any], expected: str) -> None:
    before = data(client, "get_recent_decisions", force_refresh=True)["pagination"]["total"]
    assert error(client, "save_decision", **arguments)["code"] == expected
    assert data(client, "get_recent_decisions", force_refresh=True)["pagination"]["total"] == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"symbol": "???"}, "INVALID_SYMBOL"),
        ({"symbol": SQL}, "INVALID_SYMBOL"),
        ({"action": "long"}, "INVALID_ACTION"),
        ({"action": SQL}, "INVALID_ACTION"),
        ({"limit": 101}, "INVALID_PARAMETER"),
        ({"limit": 0}, "INVALID_PARAMETER"),
        ({"limit": "10"}, "INVALID_PARAMETER"),
        ({"limit": True}, "INVALID_PARAMETER"),
        ({"offset": -1}, "INVALID_PARAMETER"),
        ({"offset": 10**18}, "INVALID_PARAMETER"),
        ({"force_refresh": "yes"}, "INVALID_PARAMETER"),
        ({"nonsense": 1}, "INVALID_PARAMETER"),
    ],
)
def test_a_bad_question_has_its_code(client: Client, arguments: dict[str, Any], expected: str) -> None:
    assert error(client, "get_recent_decisions", **arguments)["code"] == expected


def test_the_longest_reasoning_is_16384_characters_of_any_kind(client: Client) -> None:
    for text in ("x" * LONGEST_REASONING, "😀" * LONGEST_REASONING):
        assert len(text) == 16_384
        save(client, "ORCL", reasoning=text)
        assert recent(client, symbol="ORCL", limit=1)[0]["reasoning"] == text
    details = error(client, "save_decision", **decision(reasoning="x" * 16_385))["details"]
    assert details == {"length": 16_385, "maximum": 16_384}


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, 0.3333333333333333, 5e-324])
def test_the_bounds_of_confidence_belong_to_it_and_whole_numbers_are_numbers(client: Client, confidence: float) -> None:
    save(client, "AMD", confidence=confidence)
    assert recent(client, symbol="AMD", limit=1)[0]["confidence"] == confidence


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
@pytest.mark.parametrize("place", ["confidence", "opportunity_score", "tool_calls"])
def test_a_number_that_is_none_is_refused_wherever_it_stands(client: Client, place: str, number: str) -> None:
    value: Any = ["HERE"] if place == "tool_calls" else "HERE"
    arguments = decision(**{place: value})
    call = {"name": "save_decision", "arguments": arguments}
    line = json.dumps({"jsonrpc": "2.0", "id": "number", "method": "tools/call", "params": call})
    client.send_raw(line.replace('"HERE"', number).encode())
    answer = written(client.response("number")["result"])
    expected = "INVALID_CONFIDENCE" if place == "confidence" else "INVALID_PARAMETER"
    assert answer["error"]["code"] == expected


def test_half_a_character_and_endless_nesting_are_refused_and_the_server_lives_on(client: Client) -> None:
    deep = "[" * 5000 + "]" * 5000
    for text in (r'"\ud800"', deep):
        arguments = json.dumps(decision("WMT", tool_calls=["HERE"])).replace('"HERE"', text)
        call = f'{{"name": "save_decision", "arguments": {arguments}}}'
        client.send_raw(f'{{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {call}}}'.encode())
        answer = client.receive()
        assert answer["error"]["code"] == -32600
        assert "half a surrogate pair" in answer["error"]["message"]
    assert recent(client, symbol="WMT") == []


def test_the_command_line_refuses_them_too(tmp_path: Path) -> None:
    for text in (r'{"symbol": "\ud800"}', '{"symbol": ' + "[" * 3000 + "]" * 3000 + "}"):
        done = run(tmp_path, "call", "decisions", "save_decision", text)
        assert done.returncode == 2
        assert done.stderr.startswith("openbell: the arguments are not JSON")
        assert done.stderr.count("\n") == 1


def test_nesting_as_deep_as_a_message_may_be_is_kept(client: Client) -> None:
    nested: Any = "bottom"
    for _ in range(150):
        nested = {"in": [nested]} if isinstance(nested, str) else [nested]
    save(client, "CSCO", tool_calls=[nested])


@awaited
async def test_nesting_beyond_what_can_be_written_is_a_bad_argument(tmp_path: Path) -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    async with bench(tmp_path) as desk:
        refused = await desk.refused("decisions", "save_decision", **decision(tool_calls=nested))
        assert refused["code"] == "INVALID_PARAMETER"
        while nested:  # freed from the inside, so that nothing recurses
            nested = nested[0]


def test_any_other_text_is_returned_without_what_nobody_sees(client: Client) -> None:
    for text, seen in (
        ("naïve – \u202eright to left\u202c 😀 \u2028 \x1b[31m\x7f \t\r\n", "naïve – right to left 😀 \n  \t\n"),
        (SQL, SQL),
        ("%s %(x)s {0} $1 :p ?", "%s %(x)s {0} $1 :p ?"),
        ('"\\"', '"\\"'),
        ("", ""),
    ):
        save(client, "KO", reasoning=text, tool_calls=[text, {text: text}, r"\u0000"])
        assert recent(client, symbol="KO", limit=1)[0]["reasoning"] == seen


def test_sql_in_a_text_changes_nothing(client: Client) -> None:
    before = data(client, "get_recent_decisions", force_refresh=True)["pagination"]["total"]
    for argument in ("symbol", "action"):
        error(client, "save_decision", **decision(**{argument: SQL}))
        error(client, "get_recent_decisions", **{argument: SQL})
    save(client, "BA", reasoning=SQL, tool_calls=[{SQL: SQL}])
    assert data(client, "get_recent_decisions", force_refresh=True)["pagination"]["total"] == before + 1


def test_the_databases_password_is_not_in_the_log(client: Client) -> None:
    save(client, "PFE")
    log = b"".join(client.errors).decode()
    assert "DEBUG" in log
    assert PASSWORD not in log


# Pages


def test_pages_count_from_the_newest_and_put_together_are_the_whole(client: Client) -> None:
    made = [save(client, "TSLA", reasoning=str(n), confidence=(n * 7 % 11) / 11) for n in range(23)]
    whole = recent(client, symbol="TSLA", limit=100)
    assert [item["decision_id"] for item in whole] == made[::-1]
    parts: list[dict[str, Any]] = []
    for offset in range(0, 30, 5):
        page = data(client, "get_recent_decisions", symbol="TSLA", limit=5, offset=offset)
        parts += page["items"]
        wanted = {"offset": offset, "limit": 5, "total": 23, "has_more": offset + 5 < 23}
        assert page["pagination"] == wanted
    assert parts == whole
    assert len(recent(client, symbol="TSLA")) == 10, "the default"


def test_filters_work_alone_and_together(client: Client) -> None:
    for action in ("BUY", "SELL", "HOLD", "BUY"):
        save(client, "QQQ", action=action)
    found = data(client, "get_recent_decisions", symbol="QQQ", action="BUY")
    assert [item["action"] for item in found["items"]] == ["BUY", "BUY"]
    assert found["pagination"]["total"] == 2
    assert {item["action"] for item in recent(client, action="SELL", limit=100)} == {"SELL"}
    assert recent(client, symbol="ZZZZZ") == []


@awaited
async def test_old_decisions_are_listed_and_sorted_by_time_not_by_score(tmp_path: Path) -> None:
    """In the wild only the last 24 hours were, by their score."""
    days = ("2025-06-01T12:00:00Z", "2025-12-30T12:00:00Z", "2026-01-07T15:00:00Z")
    for day, (score, confidence) in zip(days, ((9.0, 0.9), (1.0, 0.1), (5.0, 0.5)), strict=True):
        async with bench(tmp_path, day) as desk:
            await desk.ask(
                "decisions", "save_decision", **decision(opportunity_score=score, confidence=confidence, reasoning=day)
            )
    async with bench(tmp_path, "2026-01-07T15:00:00Z") as desk:
        items = (await desk.ask("decisions", "get_recent_decisions"))["items"]
        assert [item["reasoning"] for item in items] == list(days[::-1])
        assert items[-1]["created_at"] == "2025-06-01T12:00:00+00:00"
    async with bench(tmp_path, "2025-12-31T00:00:00Z") as desk:
        items = (await desk.ask("decisions", "get_recent_decisions"))["items"]
        assert [item["reasoning"] for item in items] == [days[1], days[0]], "nothing later is seen"


@awaited
async def test_under_a_fixed_clock_the_decision_saved_last_comes_first(tmp_path: Path) -> None:
    async with bench(tmp_path, "2026-01-07T15:00:00Z") as desk:
        for n in range(12):
            await desk.ask("decisions", "save_decision", **decision(reasoning=str(n)))
        items = (await desk.ask("decisions", "get_recent_decisions", limit=12))["items"]
        assert [item["reasoning"] for item in items] == [str(n) for n in range(11, -1, -1)]


# The cache


def test_the_same_question_is_cached_and_every_other_one_is_not(client: Client) -> None:
    save(client, "SPY", action="BUY")
    questions: list[dict[str, Any]] = [
        {"symbol": "SPY"},
        {"symbol": "SPY", "limit": 11},
        {"symbol": "SPY", "offset": 1},
        {"symbol": "SPY", "action": "BUY"},
        {"symbol": "SPY", "action": "SELL"},
        {"symbol": "IWM"},
        {},
    ]
    for question in questions:
        first, again = (metadata(client, "get_recent_decisions", **question) for _ in range(2))
        assert (first["cached"], first["cache_ttl_remaining"]) == (False, None), question
        assert again["cached"] is True
        assert 27 < again["cache_ttl_remaining"] <= 30
        assert again["source"] == client.aside[0]["store"]


@awaited
async def test_force_refresh_bypasses_and_refills(tmp_path: Path) -> None:
    async with bench(tmp_path) as one, bench(tmp_path) as other:

        async def seen(**given: Any) -> tuple[int, bool]:
            payload = (await one.reply("decisions", "get_recent_decisions", given)).payload
            return len(payload["data"]["items"]), payload["_metadata"]["cached"]

        assert await seen() == (0, False)
        await other.ask("decisions", "save_decision", **decision())
        assert await seen() == (0, True), "what another process writes is seen when the cache's time is over"
        assert await seen(force_refresh=True) == (1, False)
        assert await seen() == (1, True)


def test_a_saved_decision_is_seen_at_once(client: Client) -> None:
    for question in ({"symbol": "GME"}, {"symbol": "GME", "action": "HOLD"}, {}):
        data(client, "get_recent_decisions", **question)
    made = save(client, "GME")
    for question in ({"symbol": "GME"}, {"symbol": "GME", "action": "HOLD"}, {}):
        assert data(client, "get_recent_decisions", **question)["items"][0]["decision_id"] == made


@awaited
async def test_an_answer_that_was_on_its_way_when_something_was_saved_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path) as desk:
        journal = desk.desk.trading.decisions
        read, go = asyncio.Event(), asyncio.Event()
        recently = journal.recent

        async def slowly(*given: Any) -> Any:
            found = await recently(*given)
            read.set()
            await go.wait()
            return found

        monkeypatch.setattr(journal, "recent", slowly)
        early = asyncio.create_task(desk.ask("decisions", "get_recent_decisions"))
        await read.wait()
        await desk.ask("decisions", "save_decision", **decision())
        late = asyncio.create_task(desk.ask("decisions", "get_recent_decisions"))
        await asyncio.sleep(0)
        go.set()
        assert len((await early)["items"]) == 0
        assert len((await late)["items"]) == 1
        assert len((await desk.ask("decisions", "get_recent_decisions"))["items"]) == 1


@awaited
async def test_a_cache_of_no_seconds_keeps_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path, CACHE_DECISIONS="0") as desk:
        for _ in range(2):
            reply = await desk.reply("decisions", "get_recent_decisions", {})
            assert reply.payload["_metadata"]["cached"] is False
    async with bench(tmp_path, CACHE_DECISIONS="7") as desk:
        for _ in range(2):
            reply = await desk.reply("decisions", "get_recent_decisions", {})
        assert 5 < reply.payload["_metadata"]["cache_ttl_remaining"] <= 7


@awaited
async def test_nobody_sees_anothers_decisions_not_even_in_the_cache(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        await desk.ask("decisions", "save_decision", **decision())
        assert len((await desk.ask("decisions", "get_recent_decisions"))["items"]) == 1
        found = await desk.ask("decisions", "get_recent_decisions", OTHER)
        assert (found["items"], found["pagination"]["total"]) == ([], 0)
        await desk.ask("decisions", "save_decision", OTHER, **decision(reasoning="other"))
        assert [
            item["reasoning"] for item in (await desk.ask("decisions", "get_recent_decisions", OTHER))["items"]
        ] == ["other"]


# Refusals and failures


@awaited
async def test_a_read_only_desk_reads_and_refuses_to_save(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        await desk.ask("decisions", "save_decision", **decision())
    async with bench_as_found(tmp_path, READ_ONLY="1") as desk:
        refused = await desk.refused("decisions", "save_decision", **decision())
        assert refused["code"] == "UNAUTHORIZED"
        assert "--read-only" in refused["message"]
        assert len((await desk.ask("decisions", "get_recent_decisions"))["items"]) == 1
        assert await desk.entries() == 1


@awaited
async def test_a_database_that_fails_is_a_database_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / "simulated").mkdir(parents=True)
    (broken / "simulated" / "records.sqlite").write_bytes(b"no database at all, but long enough to be one" * 100)
    for home, settings in (
        (broken, {}),
        (tmp_path / "gone", {"DATABASE_URL": "postgresql://me:hidden-word@127.0.0.1:1/desk"}),
    ):
        async with bench_as_found(home, **settings) as desk:
            for tool, arguments in (("save_decision", decision()), ("get_recent_decisions", {})):
                refused = await desk.refused("decisions", tool, **arguments)
                assert refused["code"] == "DATABASE_ERROR"
                assert "hidden-word" not in json.dumps(refused)


@awaited
async def test_a_locked_database_is_a_time_out_and_what_was_asked_is_done_once(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        await desk.ask("decisions", "save_decision", **decision())
    lock = sqlite3.connect(tmp_path / "simulated" / "records.sqlite", isolation_level=None)
    async with bench_as_found(tmp_path, TIMEOUT="0.2") as desk:
        lock.execute("BEGIN IMMEDIATE")
        refused = await desk.refused("decisions", "save_decision", **decision(reasoning="late"))
        assert refused["code"] == "TIMEOUT"
        assert refused["details"] == {"timeout_s": 0.2}
        lock.execute("ROLLBACK")
        lock.close()
    async with bench(tmp_path) as desk:
        items = (await desk.ask("decisions", "get_recent_decisions"))["items"]
        assert [item["reasoning"] for item in items] == ["late", "because"]


def test_a_server_that_hangs_dies_and_comes_back(tmp_path: Path) -> None:
    try:
        own = PostgresServer()
    except NotHere as missing:
        pytest.skip(f"NOT TESTED: {missing}")
    questions: list[tuple[str, str, dict[str, Any]]] = [
        ("decisions", "get_recent_decisions", {"force_refresh": True}),
        ("decisions", "save_decision", decision()),
        ("portfolio", "get_balance", {}),
        ("portfolio", "get_positions", {}),
    ]

    @awaited
    async def whole() -> None:
        import asyncpg  # type: ignore[import-untyped]

        settings = {"DATABASE_URL": own.url, "POOL_POSTGRES_TIMEOUT": "0.3", "POOL_POSTGRES_CONNECT": "0.5"}
        async with bench(tmp_path, **settings) as desk:
            await desk.ask("decisions", "save_decision", **decision())
            other = await asyncpg.connect(own.url)
            await other.execute("BEGIN")
            for table in ("decisions", "accounts"):
                await other.execute(f"LOCK TABLE openbell_simulated_7.{table} IN ACCESS EXCLUSIVE MODE")
            for server, tool, arguments in questions:
                assert (await desk.refused(server, tool, **arguments))["code"] == "TIMEOUT", tool
            await other.close()
            own.kill()
            for server, tool, arguments in questions:
                assert (await desk.refused(server, tool, **arguments))["code"] == "DATABASE_ERROR", tool
            own.start()
            for server, tool, arguments in questions:
                await desk.ask(server, tool, **arguments)

    try:
        whole()
    finally:
        own.close()
