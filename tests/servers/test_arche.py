"""The server arche: the manifest's methods over the protocol, on this desk's own data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from openbell.desk.quotes.arche import requests
from openbell.market.errors import StoreError
from openbell.market.instruments import parse
from openbell.protocol.tool import schema_of
from openbell.servers import load
from openbell.servers.arche.shapes import ErrorObject
from tests.client import OPENBELL, Client, run
from tests.desk.scripted import ScriptedFeed
from tests.servers.desks import Bench, awaited, bench_as_found, payload

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = json.loads((ROOT / "mcp" / "manifest" / "released" / "1.0.0.json").read_text())
METHODS = {each["name"]: each for each in MANIFEST["methods"]}
AS_OF = "2026-01-07T15:30:20Z"
RANGE: dict[str, Any] = {"tickers": ["BTC/USD"], "from": "2026-01-05", "to": "2026-01-07", "interval": "1d"}
GOOD: list[tuple[str, dict[str, Any]]] = [
    ("quotes.live", {"tickers": ["AAPL"]}),
    ("quotes.live", {"tickers": ["btc-usd", "EURUSD", "nope", "AAPL", "aapl"]}),
    ("quotes.historical", RANGE),
    ("quotes.historical", {**RANGE, "interval": "1m", "page": 3, "page_size": 200}),
    ("quotes.historical", {**RANGE, "tickers": ["EUR/USD", "NOPE"], "page": 2.0}),
    ("quotes.historical", {**RANGE, "from": "2027-01-01", "to": "2027-06-30"}),
    ("system.health", {}),
    ("system.metadata", {}),
]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("quotes.live", {}, "VALIDATION_ERROR"),
    ("quotes.live", {"tickers": ["AAPL", 5]}, "VALIDATION_ERROR"),
    ("quotes.live", {"tickers": ["A" * 70]}, "VALIDATION_ERROR"),
    ("quotes.live", {"tickers": ["?"]}, "VALIDATION_ERROR"),
    ("quotes.live", {"tickers": ["NOPE", "ZZZZZZ"]}, "SYMBOL_NOT_FOUND"),
    ("quotes.historical", {**RANGE, "from": "2026-01-08"}, "VALIDATION_ERROR"),
    ("quotes.historical", {**RANGE, "from": "2025-01-07"}, "VALIDATION_ERROR"),
    ("quotes.historical", {**RANGE, "to": "tomorrow"}, "VALIDATION_ERROR"),
    ("quotes.historical", {**RANGE, "interval": "1M"}, "VALIDATION_ERROR"),
    ("quotes.historical", {**RANGE, "page": 1.5}, "VALIDATION_ERROR"),
    ("quotes.historical", {**RANGE, "page": 10**30}, "VALIDATION_ERROR"),
    ("quotes.historical", {**RANGE, "tickers": [f"A{n}" for n in range(51)]}, "VALIDATION_ERROR"),
    ("quotes.historical", {**RANGE, "tickers": ["NOPE"]}, "SYMBOL_NOT_FOUND"),
    ("system.health", {"deep": True}, "VALIDATION_ERROR"),
    ("system.metadata", {"deep": True}, "VALIDATION_ERROR"),
]


async def error_of(bench: Bench, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The error object of a call, which the manifest allows."""
    reply = await bench.reply("arche", tool, arguments)
    assert reply.is_error, reply.payload
    jsonschema_rs.validate(MANIFEST["errors"]["schema"], reply.payload)
    payload: dict[str, Any] = reply.payload
    return payload


@awaited
async def test_every_result_is_of_the_manifests_schema_and_every_error_of_its_own(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF) as bench:
        for tool, arguments in GOOD:
            reply = await bench.reply("arche", tool, arguments)
            assert not reply.is_error, (tool, arguments, reply.payload)
            jsonschema_rs.validate(METHODS[tool]["result_schema"], reply.payload)
            jsonschema.validate(
                {**arguments, "page": 2} if "page" in arguments else arguments, METHODS[tool]["input_schema"]
            )
        for tool, arguments, kind in WRONG:
            found = await error_of(bench, tool, arguments)
            assert (found["type"], found["retryable"]) == (kind, False), (tool, arguments, found)


def with_lists_of_types(schema: Any) -> Any:
    """A schema as the manifest writes it: not every client supports its lists of types, so that they are sent as anyOf."""
    if isinstance(schema, list):
        return [with_lists_of_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: with_lists_of_types(each) for name, each in schema.items() if name != "anyOf"}
    return kept | ({"type": [each["type"] for each in schema["anyOf"]]} if "anyOf" in schema else {})


def test_the_methods_are_served_over_json_rpc_with_the_manifests_schemas(tmp_path: Path) -> None:
    """Elsewhere a server of this manifest was no JSON-RPC server at all."""
    with Client(tmp_path, command=[*OPENBELL, "mcp", "arche"], AS_OF=AS_OF) as client:
        hello = client.initialize()
        assert hello["serverInfo"]["name"] == MANIFEST["name"]
        offered = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
        assert list(offered) == list(METHODS)
        for name, method in METHODS.items():
            assert offered[name]["inputSchema"] == method["input_schema"]
            assert with_lists_of_types(offered[name]["outputSchema"]) == method["result_schema"]
            assert offered[name]["description"] == method["description"]
        assert schema_of(ErrorObject) == MANIFEST["errors"]["schema"]
        answer = client.call("quotes.live", {"tickers": ["AAPL", "nope"]})
        result = answer["result"]
        assert (answer["jsonrpc"], result["isError"]) == ("2.0", False)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert result["structuredContent"]["source_status"] == 206
        assert result["_meta"]["openbell/truth"]["data"] == "simulated"
        refused = client.call("quotes.live", {"tickers": []})["result"]
        assert refused["isError"] is True
        assert payload(refused)["type"] == "VALIDATION_ERROR"
        assert refused["_meta"]["openbell/truth"]["feed"] == "sim"
        assert client.call("quotes_live", {"tickers": ["AAPL"]})["error"]["code"] == -32602


def test_names_with_underscores_are_there_by_setting(tmp_path: Path) -> None:
    names = [name.replace(".", "_") for name in METHODS]
    with Client(tmp_path, command=[*OPENBELL, "mcp", "arche"], AS_OF=AS_OF, UNDERSCORE_NAMES="true") as client:
        client.initialize()
        assert [tool["name"] for tool in client.request("tools/list")["result"]["tools"]] == [*METHODS, *names]
        with_dots, with_underscores = (
            client.call(name, {"tickers": ["AAPL"]})["result"]["structuredContent"]["quotes"]
            for name in ("quotes.live", "quotes_live")
        )
        assert with_dots == with_underscores != []
    done = run(tmp_path, "call", "arche", "system_metadata", UNDERSCORE_NAMES="1")
    assert json.loads(done.stdout)["mcp_version"] == MANIFEST["version"]
    assert all("." not in tool.name for tool in load("market-data", underscore_names=True).tools)
    assert len(load("market-data", underscore_names=True).tools) == len(load("market-data").tools)


@awaited
async def test_metadata_has_the_limits_that_hold(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF) as bench:
        found = await bench.ask("arche", "system.metadata")
        assert found == {
            "mcp_version": MANIFEST["version"],
            "api_version": "v2",
            "quotes_contract_version": "v1",
            "supported_intervals": ["1d", "1m"],
            "max_page_size": 200,
            "max_range_days": 365,
            "max_tickers_per_request": 50,
        }
        assert requests.LIVE.startswith(f"/{found['api_version']}/")
        given = METHODS["quotes.historical"]["input_schema"]["properties"]
        assert given["interval"]["enum"] == found["supported_intervals"]
        assert given["page_size"]["maximum"] == found["max_page_size"]
        assert given["tickers"]["maxItems"] == found["max_tickers_per_request"]


# Health


@awaited
async def test_health_is_degraded_while_the_feed_fails_and_ok_when_it_answers_again(tmp_path: Path) -> None:
    feed = ScriptedFeed()
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as bench:
        bench.desk.__dict__["feed"] = feed
        assert (await bench.ask("arche", "system.health"))["status"] == "ok"
        feed.down = True
        found = await error_of(bench, "quotes.live", {"tickers": ["BTC/USD"]})
        assert (found["type"], found["retryable"], found["http_status"]) == ("MARKET_DATA_UNAVAILABLE", True, 503)
        health = bench.desk.arche.local.health
        health._checked_at = 0.0
        assert (await bench.ask("arche", "system.health"))["status"] == "degraded"
        feed.down = False
        await error_of(bench, "quotes.live", {"tickers": ["BTC/USD"]})
        health._checked_at = 0.0
        assert (await bench.ask("arche", "system.health"))["status"] == "ok"


@awaited
async def test_health_is_degraded_if_the_store_fails(tmp_path: Path) -> None:
    settings = {"INFLUX_URL": "http://127.0.0.1:9", "POOL_INFLUX_CONNECT": "1"}
    async with bench_as_found(tmp_path, AS_OF, **settings) as bench:
        found = await bench.ask("arche", "system.health")
        assert (found["status"], found["source_status"]) == ("degraded", 200)


# Failures inside


@pytest.mark.parametrize(
    ("failure", "kind"), [(RuntimeError("boom"), "INTERNAL_ERROR"), (StoreError("torn"), "MARKET_DATA_UNAVAILABLE")]
)
@awaited
async def test_a_bug_is_an_internal_error_without_its_details(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Exception, kind: str
) -> None:
    async with bench_as_found(tmp_path, AS_OF) as bench:

        async def fail(*_: object) -> None:
            raise failure

        monkeypatch.setattr(bench.desk.bars, "latest_of", fail)
        found = await error_of(bench, "quotes.live", {"tickers": ["AAPL"]})
        assert (found["type"], found["retryable"]) == (kind, True)
        if kind == "INTERNAL_ERROR":
            assert "boom" not in found["message"]
            assert found["trace_id"] in caplog.text


@awaited
async def test_part_of_the_history_is_answered_while_the_feed_fails(tmp_path: Path) -> None:
    """What is stored is shown with a note, and a ticker of which nothing is stored is missing."""
    feed = ScriptedFeed(known=[parse("BTC/USD"), parse("ETH/USD")])
    start = 1_767_571_200
    feed.table[parse("BTC/USD")] = {start + 60 * minute: 100.0 + minute for minute in range(600)}
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as bench:
        bench.desk.__dict__["feed"] = feed
        given = {**RANGE, "interval": "1m", "to": "2026-01-05", "page_size": 200}
        first = await bench.ask("arche", "quotes.historical", **given)
        assert first["total"] == 600
        feed.down = True
        both = {**given, "tickers": ["ETH/USD", "BTC/USD"], "to": "2026-01-06"}
        reply = await bench.reply("arche", "quotes.historical", both)
        assert (reply.payload["source_status"], reply.payload["total"]) == (206, 600)
        stored = "the vendor does not answer; the bars are those that were stored"
        assert reply.truth["note"] == f"{stored}; no answer for ETH/USD: the vendor does not answer"
        alone = await error_of(bench, "quotes.historical", {**given, "tickers": ["ETH/USD"]})
        assert (alone["type"], alone["http_status"]) == ("MARKET_DATA_UNAVAILABLE", 503)


def test_a_range_has_the_same_pages_whatever_other_clocks_have_stored(tmp_path: Path) -> None:
    """The simulator has a year of minutes: those that an earlier clock has stored are not shown."""
    given = json.dumps({"tickers": ["BTC/USD"], "from": "2025-01-01", "to": "2025-01-02", "interval": "1m"})

    def total(as_of: str) -> int:
        done = run(tmp_path, "call", "arche", "quotes.historical", given, AS_OF=as_of)
        found: int = json.loads(done.stdout)["total"]
        return found

    late = "2026-03-02T15:00:00Z"
    assert [total(late), total("2025-01-03T00:00:00Z"), total(late)] == [0, 2880, 0]


def test_tickers_are_not_changed_into_others(tmp_path: Path) -> None:
    """The upper case of some letters is another letter in ASCII."""
    done = run(tmp_path, "call", "arche", "quotes.live", json.dumps({"tickers": ["\u017fPY"]}), AS_OF=AS_OF)
    assert (done.returncode, json.loads(done.stdout)["type"]) == (1, "VALIDATION_ERROR")


def test_a_ticker_without_an_answer_is_named_beside_the_result(tmp_path: Path) -> None:
    done = run(tmp_path, "call", "arche", "quotes.live", '{"tickers": ["BTC/USD", "NOPE1"]}', AS_OF=AS_OF)
    assert json.loads(done.stdout)["source_status"] == 206
    assert "not found: NOPE1" in done.stderr


def test_a_second_text_block_says_what_prices_are_how_old_and_which_tickers_are_not_found(tmp_path: Path) -> None:
    with Client(tmp_path, command=[*OPENBELL, "mcp", "arche"], AS_OF=AS_OF) as client:
        client.initialize()
        live = client.call("quotes.live", {"tickers": ["AAPL", "APPL", "nope1"]})["result"]
        assert [each["type"] for each in live["content"]] == ["text", "text"]
        assert json.loads(live["content"][0]["text"]) == live["structuredContent"]
        assert live["content"][1]["text"] == (
            "Prices are SIMULATED, not real; the oldest is 20 s old. Not found: NOPE1, APPL (did you mean 'AAPL'?)."
        )
        page = client.call("quotes.historical", RANGE)["result"]
        assert page["content"][1]["text"] == (
            "Prices are SIMULATED, not real; the newest bar here closed 15 hours and 30 minutes ago."
        )
        assert len(client.call("system.health", {})["result"]["content"]) == 1
        assert len(client.call("quotes.live", {"tickers": ["NOPE1"]})["result"]["content"]) == 1


def test_the_second_text_block_is_on_standard_error_and_one_object_on_standard_output(tmp_path: Path) -> None:
    done = run(tmp_path, "call", "arche", "quotes.live", '{"tickers": ["AAPL", "APPL"]}', AS_OF=AS_OF)
    assert set(json.loads(done.stdout)) == {"quotes", "request_id", "source_status"}
    assert done.stderr.splitlines()[-1] == (
        "Prices are SIMULATED, not real; the oldest is 20 s old. Not found: APPL (did you mean 'AAPL'?)."
    )


def test_the_code_of_an_http_error_is_the_phrase_of_its_status(tmp_path: Path) -> None:
    given = json.dumps({**RANGE, "from": "2026-01-08"})
    found = json.loads(run(tmp_path, "call", "arche", "quotes.historical", given, AS_OF=AS_OF).stdout)
    assert (found["type"], found["http_status"], found["http_code"]) == ("VALIDATION_ERROR", 400, "Bad Request")
    found = json.loads(run(tmp_path, "call", "arche", "quotes.live", '{"tickers": ["NOPE1"]}', AS_OF=AS_OF).stdout)
    assert (found["type"], found["http_status"], found["http_code"]) == ("SYMBOL_NOT_FOUND", 404, "Not Found")
