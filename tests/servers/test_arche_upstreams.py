"""The server arche in front of a quotes API that refuses, fails or misbehaves: each is the right error object."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from openbell.desk.quotes.arche.upstreams import LARGEST
from openbell.protocol.tool import schema_of
from openbell.servers.arche.answers import retry_after
from openbell.servers.arche.shapes import ErrorObject
from tests.servers.desks import Bench, awaited, bench_as_found
from tests.servers.quotes_server import (
    BAR,
    LIVE,
    PAGE,
    QUOTE,
    QuotesServer,
    Work,
    failure,
    forever,
    reply,
    silent,
)

KEY = "s3cret-key-of-the-api"
RANGE: dict[str, Any] = {"tickers": ["AAPL"], "from": "2025-11-21", "to": "2025-11-21", "interval": "1d"}
ERROR = jsonschema_rs.validator_for(schema_of(ErrorObject))
FIELDS = {"type", "message", "retryable", "http_status", "http_code", "trace_id", "retry_after_s"}
HTML = b"<html><body>502 Bad Gateway</body></html>"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def api() -> Iterator[QuotesServer]:
    with QuotesServer() as made:
        yield made


@asynccontextmanager
async def arche(home: Path, url: str, **settings: str) -> AsyncIterator[Bench]:
    """A desk that asks the API."""
    given = {"ARCHE_URL": url, "ARCHE_KEY": KEY, "POOL_ARCHE_TIMEOUT": "20", **settings}
    async with bench_as_found(home, **given) as made:
        yield made


async def error(bench: Bench, tool: str = "quotes.live", **arguments: Any) -> dict[str, Any]:
    """The error object of a call. It is the manifest's, has all of its fields, and never the key."""
    given = arguments or ({"tickers": ["AAPL"]} if tool == "quotes.live" else RANGE)
    found = await bench.reply("arche", tool, given)
    assert found.is_error, found.payload
    ERROR.validate(found.payload)
    assert set(found.payload) == FIELDS
    assert KEY not in json.dumps(found.payload)
    assert len(found.payload["message"]) <= 600
    assert found.payload["message"].isprintable()
    payload: dict[str, Any] = found.payload
    return payload


def same(found: dict[str, Any], **wanted: Any) -> bool:
    return {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("status", "code", "kind", "retryable"),
    [
        (400, "VALIDATION_ERROR", "VALIDATION_ERROR", False),
        (422, "VALIDATION_ERROR", "VALIDATION_ERROR", False),
        (418, None, "VALIDATION_ERROR", False),
        (401, "UNAUTHENTICATED", "UNAUTHENTICATED", False),
        (401, "UNAUTHORIZED", "UNAUTHENTICATED", False),
        (402, "PROVIDER_QUOTA_EXCEEDED", "PROVIDER_QUOTA_EXCEEDED", False),
        (403, "FORBIDDEN", "FORBIDDEN", False),
        (404, "SYMBOL_NOT_FOUND", "SYMBOL_NOT_FOUND", False),
        (404, "NOT_FOUND", "UPSTREAM_SCHEMA_ERROR", False),
        (429, "RATE_LIMITED", "RATE_LIMITED", True),
        (500, "INTERNAL_ERROR", "INTERNAL_ERROR", True),
        (500, None, "UPSTREAM_ERROR", True),
        (501, None, "UPSTREAM_ERROR", False),
        (502, "UPSTREAM_SCHEMA_ERROR", "UPSTREAM_SCHEMA_ERROR", True),
        (503, "MARKET_DATA_UNAVAILABLE", "MARKET_DATA_UNAVAILABLE", True),
        (503, "SOMETHING_NEW", "UPSTREAM_ERROR", True),
        (502, None, "UPSTREAM_ERROR", True),
        (504, None, "UPSTREAM_ERROR", True),
    ],
)
@awaited
async def test_a_reported_error_keeps_its_type_and_status(
    tmp_path: Path, api: QuotesServer, status: int, code: str | None, kind: str, retryable: bool
) -> None:
    api.plan = failure(status, code)
    async with arche(tmp_path, api.url) as bench:
        for tool in ("quotes.live", "quotes.historical"):
            found = await error(bench, tool)
            assert same(found, type=kind, retryable=retryable, http_status=status, message="because")
            assert (found["trace_id"], found["retry_after_s"]) == ("trace-1", None)
            assert found["http_code"] == HTTPStatus(status).phrase


def _cases() -> dict[str, tuple[bytes | Work, dict[str, Any]]]:
    """What the API does, and the error that it becomes."""
    plain = {"type": "NON_JSON_RESPONSE", "retryable": False, "http_status": 200}
    other = {"type": "UPSTREAM_SCHEMA_ERROR", "retryable": False, "http_status": 200}
    gone = {"type": "NETWORK_ERROR", "retryable": True, "http_status": None}
    whole = json.dumps(LIVE).encode()
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"

    def changed(**fields: Any) -> bytes:
        return reply(200, {"data": {"items": [{**QUOTE, **fields}]}})

    without = {name: value for name, value in QUOTE.items() if name != "price"}
    return {
        "an HTML page": (reply(200, HTML, "text/html"), plain),
        "an HTML page with 503": (
            reply(503, HTML, "text/html", Retry_After="7"),
            {"type": "UPSTREAM_ERROR", "http_status": 503, "retryable": True, "retry_after_s": 7.0},
        ),
        "an HTML page with 404": (reply(404, HTML, "text/html"), {**plain, "http_status": 404}),
        "an HTML page with 401": (
            reply(401, HTML, "text/html"),
            {"type": "UNAUTHENTICATED", "http_status": 401, "http_code": "Unauthorized", "retryable": False},
        ),
        "an HTML page with 429": (reply(429, HTML), {"type": "RATE_LIMITED", "http_status": 429, "retryable": True}),
        "truncated JSON": (reply(200, whole[:-20]), plain),
        "an empty body": (reply(200, b""), plain),
        "compressed JSON that nobody has asked for": (reply(200, gzip.compress(whole), Content_Encoding="gzip"), plain),
        "deep nesting": (reply(200, b"[" * 100_000), plain),
        "a list": (reply(200, []), other),
        "null": (reply(200, None), other),
        "no data": (reply(200, {"quotes": []}), other),
        "the quotes as an object": (reply(200, {"data": {"items": {}}}), other),
        "a quote without a price": (reply(200, {"data": {"items": [without]}}), other),
        "a price that is a number": (changed(price=225.12), other),
        "a price with an exponent": (changed(price="2e2"), other),
        "a price that is no number": (changed(price="NaN"), other),
        "a volume that is a text": (changed(volume="1"), other),
        "a volume with a fraction": (changed(volume=1.5), other),
        "a time that is none": (changed(as_of="yesterday"), other),
        "a ticker of a thousand letters": (changed(ticker="A" * 1000), other),
        "too many quotes": (reply(200, {"data": {"items": [QUOTE] * 51}}), other),
        "a success that is none": (reply(204, b""), {"type": "NON_JSON_RESPONSE", "http_status": 204}),
        "a redirect": (
            reply(302, {}, Location="http://127.0.0.1:9/"),
            {"type": "UPSTREAM_SCHEMA_ERROR", "http_status": 302, "retryable": False},
        ),
        "a declared size over the limit": (
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (LARGEST + 1),
            other,
        ),
        "an endless body": (forever(CHUNKED, chunk), other),
        "a body that breaks off": (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + whole[:50], gone),
        "chunks that break off": (CHUNKED + b'5\r\n{"dat', gone),
        "a closed connection": (b"", gone),
        "something that is not HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", gone),
        "headers without end": (forever(b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 8000 + b"\r\n"), gone),
    }


@pytest.mark.parametrize("case", list(_cases()))
@awaited
async def test_a_wrong_response_is_the_right_error(tmp_path: Path, api: QuotesServer, case: str) -> None:
    plan, wanted = _cases()[case]
    api.plan = plan
    async with arche(tmp_path, api.url) as bench:
        found = await error(bench)
        assert same(found, **wanted), found


@pytest.mark.parametrize(
    "body",
    [
        {**PAGE, "items": None},
        {**PAGE, "total": -1},
        {**PAGE, "total": "1"},
        {**PAGE, "page": 0},
        {**PAGE, "page_size": 201},
        {**PAGE, "items": [BAR] * 201},
        {**PAGE, "items": [{**BAR, "open": 1.5}]},
        {**PAGE, "items": [{**BAR, "volume": 100}]},
        {**PAGE, "items": [{name: value for name, value in BAR.items() if name != "interval"}]},
        {"items": [BAR]},
        {"data": PAGE},
    ],
)
@awaited
async def test_a_page_of_another_shape_is_a_schema_error(tmp_path: Path, api: QuotesServer, body: Any) -> None:
    api.plan = reply(200, body)
    async with arche(tmp_path, api.url) as bench:
        assert (await error(bench, "quotes.historical"))["type"] == "UPSTREAM_SCHEMA_ERROR"


@awaited
async def test_an_api_that_never_answers_is_a_network_error_in_time(tmp_path: Path, api: QuotesServer) -> None:
    drip = forever(CHUNKED, b"1\r\n \r\n", pause=0.05)
    async with arche(tmp_path, api.url, POOL_ARCHE_TIMEOUT="0.4") as bench:
        for plan in (silent, drip):
            api.plan = plan
            began = time.monotonic()
            found = await error(bench)
            assert same(found, type="NETWORK_ERROR", retryable=True, http_status=None)
            assert "did not answer in 0.4 s" in found["message"]
            assert time.monotonic() - began < 15


@awaited
async def test_a_port_on_which_nothing_listens_is_a_network_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        async with arche(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}") as bench:
            assert same(await error(bench), type="NETWORK_ERROR", retryable=True, http_status=None)
            health = await bench.ask("arche", "system.health")
            assert (health["status"], "source_status" in health) == ("down", False)


# What is passed on


@awaited
async def test_good_answers_are_passed_on_without_other_fields(tmp_path: Path, api: QuotesServer) -> None:
    async with arche(tmp_path, api.url) as bench:
        api.plan = reply(206, {"data": {"items": [{**QUOTE, "exchange": "X"}], "more": 1}}, X_Request_ID="theirs")
        live = await bench.ask("arche", "quotes.live", tickers=["aapl", "AAPL", "nope"])
        assert live == {"quotes": [QUOTE], "request_id": "theirs", "source_status": 206}
        api.plan = reply(200, {**PAGE, "items": [{**BAR, "adjusted": True}], "next": None})
        page = await bench.ask("arche", "quotes.historical", **RANGE)
        assert {name: page[name] for name in PAGE} == PAGE
        sent = api.seen[-2:]
        assert sent[0].target == "/v2/quotes?tickers=AAPL%2CAAPL%2CNOPE"
        assert page["request_id"] == sent[1].headers["x-request-id"], "ours, because theirs is missing"
        assert {each.headers["x-api-key"] for each in sent} == {KEY.lower()}
        assert "from=2025-11-21&to=2025-11-21&interval=1d&page=1&page_size=50" in sent[1].target


@awaited
async def test_a_message_is_bounded_clean_and_without_the_key(tmp_path: Path, api: QuotesServer) -> None:
    async with arche(tmp_path, api.url) as bench:
        api.plan = failure(400, "VALIDATION_ERROR", f"the key {KEY} \x1b[31m is\nwrong " + "x" * 100_000)
        found = await error(bench)
        assert found["message"].startswith("the key [key] is wrong xxx")
        for code, message in (("A" * 100, None), ({"no": 1}, ["text"]), ("<script>", 5)):
            api.plan = failure(500, code, message)
            found = await error(bench)
            assert same(found, type="UPSTREAM_ERROR", http_code="Internal Server Error")
            assert found["message"] == "The quotes API answered with status 500"
        api.plan = reply(500, {"error": {"trace_id": f"{KEY}\r\n"}}, X_Request_ID="their-id")
        assert (await error(bench))["trace_id"] == "their-id"
        api.plan = reply(500, {"error": {"trace_id": KEY, "code": KEY, "message": KEY}}, X_Request_ID=KEY)
        found = await error(bench)
        assert (found["trace_id"], found["message"]) == (api.seen[-1].headers["x-request-id"], "[key]")
        api.plan = reply(200, LIVE, X_Request_ID=KEY)
        assert KEY not in str(await bench.ask("arche", "quotes.live", tickers=["AAPL"]))


@awaited
async def test_retry_after_is_read_in_seconds_and_as_a_date(tmp_path: Path, api: QuotesServer) -> None:
    async with arche(tmp_path, api.url) as bench:
        api.plan = failure(429, "RATE_LIMITED", Retry_After="17")
        assert (await error(bench))["retry_after_s"] == 17.0
        later = datetime.now(UTC) + timedelta(seconds=90)
        api.plan = failure(503, None, Retry_After=format_datetime(later, usegmt=True))
        wait = (await error(bench))["retry_after_s"]
        assert 30 < wait <= 90
    now = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
    assert retry_after("Mon, 05 Jan 2026 12:00:30 GMT", now) == 30.0
    assert retry_after("Mon, 05 Jan 2026 11:00:00 GMT", now) == 0.0
    assert retry_after("1e9", now) is None
    assert retry_after("9" * 400, now) is None
    assert retry_after("99999999", now) == 86_400.0
    for text in ("", "soon", "-5", "nan", "inf", "1,5", "0x10", "Mon, 99 Jan 2026", "١"):
        assert retry_after(text, now) is None, text


@awaited
async def test_health_is_what_the_api_reports_and_down_without_an_answer(tmp_path: Path, api: QuotesServer) -> None:
    plans: list[tuple[bytes | Work, str, int | None]] = [
        (reply(200, {"status": "ok"}), "ok", 200),
        (reply(200, {"status": "degraded"}), "degraded", 200),
        (reply(503, {"status": "down"}), "down", 503),
        (reply(200, {"status": "healthy"}), "ok", 200),
        (reply(500, HTML), "down", 500),
        (b"", "down", None),
        (silent, "down", None),
    ]
    async with arche(tmp_path, api.url, POOL_ARCHE_TIMEOUT="0.4") as bench:
        for plan, status, http in plans:
            api.plan = plan
            found = await bench.ask("arche", "system.health")
            assert (found["status"], found.get("source_status")) == (status, http)
        api.plan = failure(401, "UNAUTHENTICATED")
        refused = await bench.reply("arche", "system.health", {})
        assert refused.is_error
        assert refused.payload["type"] == "UNAUTHENTICATED"
        api.plan = reply(200, HTML)
        assert (await bench.reply("arche", "system.health", {})).payload["type"] == "NON_JSON_RESPONSE"


@awaited
async def test_arguments_are_checked_before_the_api_is_asked(tmp_path: Path, api: QuotesServer) -> None:
    api.plan = reply(200, LIVE)
    before = len(api.seen)
    async with arche(tmp_path, api.url) as bench:
        wrong: list[dict[str, Any]] = [
            {"tickers": []},
            {"tickers": ["AAPL"] * 51},
            {"tickers": ["AAPL,MSFT"]},
            {"tickers": [" "]},
            {"tickers": "AAPL"},
            {"tickers": ["AAPL"], "more": 1},
            {"symbols": ["AAPL"]},
        ]
        for arguments in wrong:
            found = await error(bench, **arguments)
            assert same(found, type="VALIDATION_ERROR", retryable=False, http_status=None, trace_id=None)
        for changed in ({"interval": "1h"}, {"page": 0}, {"page_size": 201}, {"tickers": ["A"] * 51}):
            assert (await error(bench, "quotes.historical", **{**RANGE, **changed}))["type"] == "VALIDATION_ERROR"
    assert len(api.seen) == before


# Truth


@awaited
async def test_the_truth_of_a_remote_api_is_not_this_desks(tmp_path: Path, api: QuotesServer) -> None:
    async with arche(tmp_path, api.url) as bench:
        for plan in (reply(200, LIVE), failure(500)):
            api.plan = plan
            found = await bench.reply("arche", "quotes.live", {"tickers": ["AAPL"]})
            assert (found.truth["data"], found.truth["feed"]) == ("remote", f"arche:127.0.0.1:{api.port}")
            assert "not from this desk's feed" in found.truth["note"]


@awaited
async def test_what_a_remote_api_leaves_out_is_named_beside_its_prices(tmp_path: Path, api: QuotesServer) -> None:
    async with arche(tmp_path, api.url) as bench:
        api.plan = reply(206, LIVE)
        live = await bench.reply("arche", "quotes.live", {"tickers": ["aapl", "nope", "btc-usd"]})
        assert live.note is not None
        assert live.note.startswith("Prices are those of another service; the oldest is ")
        assert live.note.endswith("not from this desk's feed; not answered: NOPE, BTC-USD.")
        assert live.truth["age_s"] > 0
        api.plan = reply(206, PAGE)
        page = await bench.reply("arche", "quotes.historical", RANGE)
        assert page.note is not None
        assert "the newest bar here closed" in page.note
        assert page.note.endswith("some tickers have no answer.")


@awaited
async def test_a_desk_with_a_clock_of_its_own_does_not_ask_a_remote_api(tmp_path: Path, api: QuotesServer) -> None:
    before = len(api.seen)
    async with bench_as_found(tmp_path, "2026-01-07T15:00:00Z", ARCHE_URL=api.url) as bench:
        found = await error(bench)
        assert same(found, type="FORBIDDEN", retryable=False, http_status=None)
        assert "answers as of now" in found["message"]
    assert len(api.seen) == before


@awaited
async def test_many_calls_at_once_are_answered_each(tmp_path: Path, api: QuotesServer) -> None:
    api.plan = reply(200, LIVE)
    async with arche(tmp_path, api.url) as bench:
        calls: list[Callable[[], Any]] = [lambda: bench.ask("arche", "quotes.live", tickers=["AAPL"])] * 30
        found = await asyncio.gather(*(call() for call in calls))
    assert len({each["request_id"] for each in found}) == 30
