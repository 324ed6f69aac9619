"""The quotes API as an HTTP client sees it: tokens, envelopes, validators, methods."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from openbell.gateway.quotes.endpoint import matches
from tests.gateway.guard.serving import Answer
from tests.gateway.quotes.conftest import AS_OF
from tests.gateway.streamable.gateways import Inside
from tests.servers.desks import awaited, bench_as_found
from tests.waiting import wait_for

LIVE = "/v2/quotes?tickers="
DAYS = "/v2/quotes/historical?tickers=BTC/USD&from=2026-01-01&to=2026-01-06&interval=1d"


def fault(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """The error of a response, in the one form that there is."""
    assert (answer.status, answer["content-type"]) == (status, "application/json"), answer.body
    assert answer["cache-control"] == "no-store"
    assert set(answer.json) == {"error"}
    found: dict[str, Any] = answer.json["error"]
    assert set(found) == {"code", "http_status", "message", "details", "trace_id"}
    assert (found["code"], found["http_status"], found["trace_id"]) == (code, status, answer["x-request-id"])
    assert found["message"]
    assert isinstance(found["details"], list)
    return found


# Answers


def test_live_quotes(gateway: Inside) -> None:
    answer = gateway.request("GET", f"{LIVE}aapl,BTC-USD")
    assert (answer.status, answer["content-type"]) == (200, "application/json")
    assert [each["ticker"] for each in answer.json["data"]["items"]] == ["AAPL", "BTC/USD"]
    assert answer["cache-control"] == "private, max-age=5"
    truth = json.loads(answer["x-openbell-truth"] or "")
    assert (truth["data"], truth["feed"], truth["as_of"]) == ("simulated", "sim", "2026-01-07T15:30:20+00:00")
    partial = gateway.request("GET", f"{LIVE}AAPL,NOPE")
    assert (partial.status, partial.json["data"]["missing"][0]["ticker"]) == (206, "NOPE")


def test_historical_bars(gateway: Inside) -> None:
    whole = gateway.request("GET", DAYS).json
    assert (whole["page"], whole["page_size"], whole["total"], len(whole["items"])) == (1, 50, 6, 6)
    pages = [gateway.request("GET", f"{DAYS}&page={page}&page_size=4").json["items"] for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [4, 2, 0]
    assert pages[0] + pages[1] == whole["items"]


@awaited
async def test_the_tools_of_another_process_have_the_same_answers(gateway: Inside, tmp_path: Path) -> None:
    """In a home of its own, so that nothing but the simulated market is shared."""
    live, days = gateway.request("GET", f"{LIVE}AAPL,BTC/USD").json, gateway.request("GET", DAYS).json
    async with bench_as_found(tmp_path, AS_OF) as bench:
        quotes = await bench.ask("arche", "quotes.live", tickers=["AAPL", "BTC/USD"])
        given: dict[str, Any] = {"tickers": ["BTC/USD"], "from": "2026-01-01", "to": "2026-01-06", "interval": "1d"}
        page = await bench.ask("arche", "quotes.historical", **given)
    assert quotes["quotes"] == live["data"]["items"]
    assert {name: page[name] for name in days} == days


def test_the_server_arche_is_served_too_and_asks_no_other_process(gateway: Inside) -> None:
    found = gateway.ask("quotes.live", path="/arche/mcp", tickers=["AAPL", "nope"])
    assert (found["source_status"], [each["ticker"] for each in found["quotes"]]) == (206, ["AAPL"])
    assert found["quotes"] == gateway.request("GET", f"{LIVE}AAPL").json["data"]["items"]
    assert gateway.desk.arche.is_gateway


def test_the_request_id_comes_back_and_is_the_trace_of_errors(gateway: Inside) -> None:
    assert gateway.request("GET", f"{LIVE}AAPL", X_Request_ID="mine-1")["x-request-id"] == "mine-1"
    assert fault(gateway.request("GET", LIVE, X_Request_ID="mine-2"), 400, "VALIDATION_ERROR")["trace_id"] == "mine-2"
    made = gateway.request("GET", f"{LIVE}AAPL", X_Request_ID="not good")["x-request-id"]
    assert made
    assert made != "not good"


# Mistakes


@pytest.mark.parametrize(
    "query",
    ["", "?", "?tickers", "?tickers=", "?tickers=%FF", "?tickers=AAPL&tickers=MSFT", "?tickers=AAPL&x=1", "?ticker=AAPL",
     "?tickers=%00", "?tickers=AAPL%2C%2C", "?tickers=" + ",".join(["A"] * 51), "?" + "&".join(["tickers=A"] * 60),
     "?tickers=" + "A" * 4000, "?tickers[]=AAPL", "?tickers=AAPL;MSFT", "?TICKERS=AAPL", "?tickers=%"],
)  # fmt: skip
def test_a_bad_query_is_a_validation_error_and_never_a_server_error(gateway: Inside, query: str) -> None:
    """Elsewhere bad parameters were answered with 500."""
    fault(gateway.request("GET", f"/v2/quotes{query}"), 400, "VALIDATION_ERROR")
    fault(gateway.request("GET", f"/v2/quotes/historical{query}"), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("from=2026-01-07", "from"),
        ("from=2025-01-05", "to"),
        ("to=2026-02-30", "to"),
        ("interval=1w", "interval"),
        ("page=0", "page"),
        ("page_size=201", "page_size"),
        ("tickers=" + ",".join(f"A{a}" for a in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 2), "tickers"),
    ],
)
def test_the_limits_of_a_range_hold_and_the_field_is_named(gateway: Inside, change: str, field: str) -> None:
    """Elsewhere neither the length of a range nor the number of tickers was checked."""
    name = change.partition("=")[0]
    given = dict(pair.split("=") for pair in DAYS.partition("?")[2].split("&"))
    query = "&".join(f"{each}={value}" for each, value in {**given, name: change.partition("=")[2]}.items())
    found = fault(gateway.request("GET", f"/v2/quotes/historical?{query}"), 400, "VALIDATION_ERROR")
    assert [each["field"] for each in found["details"]] == [field]
    assert all(each["reason"] for each in found["details"])


def test_unknown_tickers_paths_and_methods(gateway: Inside) -> None:
    fault(gateway.request("GET", f"{LIVE}NOPE"), 404, "SYMBOL_NOT_FOUND")
    fault(gateway.request("GET", "/v2/quotes/historical/more"), 404, "NOT_FOUND")
    fault(gateway.request("GET", "/v2/"), 404, "NOT_FOUND")
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in (f"{LIVE}AAPL", DAYS, "/v2/openapi.json"):
            answer = gateway.request(method, path)
            fault(answer, 405, "METHOD_NOT_ALLOWED")
            assert answer["allow"] == "GET"
    assert gateway.request("GET", "/v2").status == 404


def test_refusals_of_the_guard_have_the_envelope_too(gateway: Inside) -> None:
    fault(gateway.request("GET", f"{LIVE}{'A' * 9000}"), 414, "VALIDATION_ERROR")
    fault(gateway.request("GET", f"{LIVE}AAPL", Host="evil.example"), 421, "VALIDATION_ERROR")
    fault(gateway.request("GET", f"{LIVE}AAPL", Origin="https://evil.example"), 403, "FORBIDDEN")
    fault(gateway.request("GET", f"{LIVE}AAPL", Content_Length=str(2**30)), 413, "VALIDATION_ERROR")
    other = gateway.request("GET", "/mcp", Host="evil.example")
    assert (other.status, other.json["error"]) == (421, "host_not_allowed")


# Tokens


def test_a_bearer_token_or_a_key_is_needed(gateway: Inside) -> None:
    key = gateway.tokens["reader"]
    for path in (f"{LIVE}AAPL", DAYS):
        assert gateway.request("GET", path, "reader").status == 200
        assert gateway.request("GET", path, None, X_Api_Key=key).status == 200
        assert gateway.request("GET", path, "reader", X_Api_Key=key).status == 200
        answer = gateway.request("GET", path, None)
        fault(answer, 401, "UNAUTHENTICATED")
        resource = f"http://127.0.0.1:{gateway.port}/.well-known/oauth-protected-resource/v2/quotes"
        assert answer["www-authenticate"] == f'Bearer scope="read", resource_metadata="{resource}"'
    found = gateway.request("GET", "/.well-known/oauth-protected-resource/v2/quotes", None)
    assert found.json["resource"] == f"http://127.0.0.1:{gateway.port}/v2/quotes"


def test_wrong_and_contradicting_tokens_are_refused(gateway: Inside) -> None:
    mine, other = gateway.tokens["alice"], gateway.tokens["bob"]
    for headers in (
        {"X_Api_Key": "wrong"},
        {"X_Api_Key": ""},
        {"X_Api_Key": f"{mine} {mine}"},
        {"X_Api_Key": other, "Authorization": f"Bearer {mine}"},
        {"X_Api_Key": mine, "Authorization": "Basic YTpi"},
        {"X_Api_Key": mine, "Authorization": "Bearer"},
        {"Authorization": f"Basic {mine}"},
        {"X_Api_Key": mine[:-1]},
    ):
        fault(gateway.request("GET", f"{LIVE}AAPL", None, **headers), 401, "UNAUTHENTICATED")
    twice = gateway.bytes_of("GET", f"{LIVE}AAPL", None, None, X_Api_Key=mine)
    twice = twice.replace(b"\r\nX-Api-Key", f"\r\nX-Api-Key: {mine}\r\nX-Api-Key".encode(), 1)
    fault(gateway.send(twice), 401, "UNAUTHENTICATED")


def test_the_scope_read_is_needed(gateway: Inside) -> None:
    fault(gateway.request("GET", f"{LIVE}AAPL", "keeper"), 403, "FORBIDDEN")
    fault(gateway.request("GET", f"{LIVE}AAPL", "nothing"), 401, "UNAUTHENTICATED")


def test_a_key_is_no_token_for_mcp(gateway: Inside) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert gateway.post(body, None, X_Api_Key=gateway.tokens["alice"]).status == 401


def test_this_machine_may_read_without_a_token_by_setting(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF, OPEN_READING="1") as gateway:
        assert gateway.request("GET", f"{LIVE}BTC/USD", None).status == 200
        fault(gateway.request("GET", f"{LIVE}BTC/USD", None, X_Api_Key="wrong"), 401, "UNAUTHENTICATED")


# Validators


def test_a_client_that_has_the_answer_gets_304(gateway: Inside) -> None:
    for path in (f"{LIVE}AAPL", f"{LIVE}AAPL,NOPE", DAYS):
        tag = gateway.request("GET", path)["etag"]
        assert tag
        for condition in (tag, f"W/{tag}", "*", f'"other", {tag}', f'"a,b" , W/"c",{tag},'):
            answer = gateway.request("GET", path, If_None_Match=condition, Connection="close")
            assert (answer.status, answer.body, answer["etag"]) == (304, b"", tag), condition
            assert answer["cache-control"]
            assert answer["content-type"] is None
        for condition in ('"other"', tag.strip('"'), "", f"{tag}x", '"', "W/"):
            assert gateway.request("GET", path, If_None_Match=condition, Connection="close").status in {200, 206}, (
                condition
            )
    fault(gateway.request("GET", f"{LIVE}NOPE", If_None_Match="*"), 404, "SYMBOL_NOT_FOUND")


def test_the_tag_is_of_the_content_and_not_of_the_tickers(gateway: Inside) -> None:
    """Elsewhere it was a hash of the tickers alone, so that no price was ever sent again."""
    first = gateway.request("GET", f"{LIVE}AAPL")
    assert gateway.request("GET", f"{LIVE}aapl,AAPL", X_Request_ID="other")["etag"] == first["etag"]
    assert gateway.request("GET", f"{LIVE}AAPL,NOPE")["etag"] != first["etag"]
    assert gateway.request("GET", f"{LIVE}MSFT")["etag"] != first["etag"]
    assert gateway.request("GET", f"{DAYS}&page=2")["etag"] != gateway.request("GET", DAYS)["etag"]
    assert gateway.request("GET", f"{DAYS}&page_size=6")["etag"] != gateway.request("GET", DAYS)["etag"]


def test_conditions_are_read_as_lists_of_tags() -> None:
    assert matches('"a"', '"a"')
    assert matches(' W/"a" ,', '"a"')
    assert matches('"x","a"', '"a"')
    assert matches("*", '"a"')
    assert not matches('"a" "b"', '"b"')
    assert not matches('a, "a"', '"a"')
    assert not matches('"x, "a"', '"a"')
    assert not matches("", '"a"')


# What is recorded


def test_requests_are_in_the_audit_log_and_in_the_metrics(gateway: Inside) -> None:
    gateway.request("GET", f"{LIVE}AAPL", "bob", X_Request_ID="audited-1")
    gateway.request("GET", f"{LIVE}secret-ticker?", "bob", X_Request_ID="audited-2")
    gateway.request("GET", DAYS, "keeper", X_Request_ID="audited-3")
    log = gateway.settings.home / "audit.log"

    def lines() -> dict[str, Any]:
        found = [json.loads(line) for line in log.read_text().splitlines()]
        return {each["request"]: each for each in found if each.get("request", "").startswith("audited")}

    wait_for(lambda: len(lines()) == 3, "the audit log")
    first, second, third = (lines()[f"audited-{number}"] for number in (1, 2, 3))
    assert (first["principal"], first["server"], first["tool"], first["outcome"]) == ("bob", "quotes", "live", "ok")
    assert (second["outcome"], third["outcome"], third["tool"]) == ("error", "refused", "historical")
    assert "secret-ticker" not in log.read_text()
    metrics = gateway.request("GET", "/metrics", None).body.decode()
    assert 'openbell_calls_total{server="quotes",tool="live",outcome="ok"}' in metrics


# Health


def test_health_says_degraded_and_stays_alive(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF, RATE_HEALTH="0") as gateway:
        assert gateway.request("GET", "/healthz", None).json == {"status": "ok"}
        health = gateway.desk.arche.local.health

        async def fail() -> None:
            raise OSError("torn")

        async def hang() -> None:
            await asyncio.Event().wait()

        for check, failing in ((fail, ["bars"]), (hang, ["checks"])):
            health._checks["bars"] = check
            health._checked_at = 0.0
            began = time.monotonic()
            answer = gateway.request("GET", "/healthz", None)
            assert (answer.status, answer.json) == (200, {"status": "degraded", "failing": failing})
            assert time.monotonic() - began < 2.5, "a probe does not wait for a store that hangs"
