"""No request stops the event loop: hostile arguments of every tool of every server, and hostile JSON."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from openbell.desk.settings import Settings
from openbell.servers import NAMES, load
from openbell.stores.records.journal import Journal
from openbell.stores.records.webhooks import deliver_to_inbox
from openbell.trading.alerts import Alert, Type
from tests.gateway.guard.loop_time import LONGEST, LoopTime, measured
from tests.gateway.guard.serving import Answer
from tests.gateway.streamable.gateways import Inside, message

LIMIT = 1_048_576
"""Bytes of a body."""


class Watched:
    """A gateway whose loop is measured."""

    def __init__(self, gateway: Inside, time: LoopTime) -> None:
        self.gateway = gateway
        self._time = time
        self.slow: list[str] = []

    def post(self, body: Any, path: str, what: str, **headers: str) -> Answer:
        """The answer to a message; one that stops the loop is noted."""
        return self.watch(lambda: self.gateway.post(body, path=path, **headers), what)

    def watch(self, send: Callable[[], Answer], what: str) -> Answer:
        """The answer to a request; one that stops the loop is noted."""
        # The first use of a part loads it, once in the life of a process, and what a call leaves to do counts with the next.
        for _ in range(3):
            self._time.take()
            answer = send()
            seconds, callback = self._time.take()
            if seconds < LONGEST:
                return answer
        self.slow.append(f"{what}: {seconds * 1000:.0f} ms in {callback}")
        return answer


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with Inside(tmp_path_factory.mktemp("watched"), CHART_SIGNALS_HTTP="1") as gateway:
        for name in NAMES:  # what is loaded at first use is no attack
            for tool in load(name).tools:
                gateway.post(_call(tool.name, {"x": 1}), path=_path(name))
        with measured(gateway.loop) as time:
            yield Watched(gateway, time)


@pytest.fixture(autouse=True)
def nothing_slow(watched: Watched) -> Iterator[None]:
    """No request of the test may have stopped the loop."""
    watched.slow.clear()
    yield
    assert not watched.slow, "\n".join(watched.slow)


def _path(server: str) -> str:
    return "/mcp" if server == "chartgen" else f"/{server}/mcp"


def _call(tool: str, arguments: Any) -> dict[str, Any]:
    return message("tools/call", {"name": tool, "arguments": arguments})


def _nested(depth: int, value: Any) -> Any:
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


VALUES: dict[str, Any] = {
    "wrong entries": [number % 2 or {} for number in range(4_900)],
    "texts": [f"t{number}" for number in range(4_900)],
    "objects of unknown fields": [{f"k{number}": 1 for number in range(60)} for _ in range(40)],
    "objects of wrong fields": [{"name": "rsi", **{f"k{number}": [] for number in range(60)}} for _ in range(40)],
    "named objects": [{"name": "rsi", "type": "EMA", "id": str(number)} for number in range(1_200)],
    "one object": {f"k{number}": number for number in range(64)},
    "near misses in objects": [{"name": "rsi", **{f"{'direction' * 9}{number}": [] for number in range(60)}}] * 40,
    "deep lists": [_nested(90, 1) for _ in range(50)],
    "deep texts": _nested(150, "x"),
    "a long text": "A" * 100_000,
    "many words": "buy NVDA rsi 4h " * 60,
    "a large number": 10**4_000,
    "large numbers": [10**4_000] * 100,
}


def _hostile(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    names = list(schema.get("properties", {})) or ["symbol"]
    yield "50,000 unknown arguments", {f"k{number}": 1 for number in range(50_000)}
    yield "40,000 near misses", {f"{names[number % len(names)]}{number}": 1 for number in range(40_000)}
    yield "64 near misses", {f"{(names[number % len(names)] * 9)[:90]}{number}": 1 for number in range(64)}
    yield "49,000 wrong entries", {names[0]: [{}] * 49_000}
    for name in names:
        yield f"{name}: 49,000 entries", {name: ["x"] * 49_000}
        yield f"{name}: 49,000 names", {name: {f"k{number}": 1 for number in range(49_000)}}
        yield f"{name}: a megabyte", {name: "A" * (LIMIT - 1_000)}
        for what, value in VALUES.items():
            yield f"{name}: {what}", {name: value}


@pytest.mark.parametrize("server", NAMES)
def test_attack_no_arguments_stop_the_event_loop(watched: Watched, server: str) -> None:
    """Every tool gets unknown names, near misses, and hostile values in each argument; nothing blocks others."""
    for tool in load(server).tools:
        for what, arguments in _hostile(tool.input_schema):
            answer = watched.post(_call(tool.name, arguments), _path(server), f"{server} {tool.name}, {what}")
            assert answer.status in {200, 400, 413}, (tool.name, what, answer.status)


SENTENCES = {
    "joined numbers": "twenty-one" * 100,
    "strange words": " ".join(f"{chr(97 + at % 26)}rbitrar{chr(97 + at // 26)}ly" for at in range(90)),
    "strange pairs": "/$a" * 333,
    "symbols": " ".join(f"ZQ{at}X" for at in range(190)),
    "dates": "from 2025-01-01 to " * 52,
    "prices": "line at 1.5 " * 83,
}


@pytest.mark.parametrize("what", SENTENCES)
def test_attack_no_sentence_stops_the_event_loop(watched: Watched, what: str) -> None:
    """Sentences for a chart that are expensive to read are read beside the loop."""
    arguments = {"naturalLanguage": SENTENCES[what][:1_000]}
    assert watched.post(_call("construct_chart_config", arguments), "/chart-image/mcp", what).status == 200


ROOM = LIMIT - 1_200
"""Bytes of JSON inside a message."""
BODIES = {
    "lists": b"[" + b"[]," * (ROOM // 3 - 2) + b"[]]",
    "numbers": b"[" + b"1," * (ROOM // 2 - 2) + b"1]",
    "objects": b"[" + b'{"a":1},' * (ROOM // 8 - 2) + b"{}]",
    "a number": b"[" + b"9" * (ROOM - 10) + b"]",
    "numbers of 4,000 digits": b"[" + (b"9" * 4_000 + b",") * 250 + b"1]",
    "quotes that look like keys": b'["' + b'\\":' * 30_000 + b'"]',
    "escapes": b'["' + b"\\u0041" * (ROOM // 6 - 4) + b'"]',
    "brackets": b"[" * (ROOM // 2) + b"]" * (ROOM // 2),
    "blanks": b" " * (ROOM - 10) + b"{}",
    "99,000 values": b"[" + b"[]," * 49_000 + b"[]]",
    "keys twice": b"{" + b'"a":1,' * 20_000 + b'"a":1}',
}


BATCHES = {"quotes that look like keys", "escapes"}
READ = {"numbers of 4,000 digits", "quotes that look like keys", "escapes", "blanks", "99,000 values"}
"""Those that are read, inside a message; the others have too many values, too many digits or a key twice."""


@pytest.mark.parametrize("what", BODIES)
def test_attack_no_json_stops_the_event_loop(watched: Watched, what: str) -> None:
    """Bodies up to the limit that are expensive to read, as a message, as parameters and as arguments, are answered."""
    # A list of one text is a batch whose only message is answered with an error.
    assert watched.post(BODIES[what], "/mcp", what).status == (200 if what in BATCHES else 400)
    for method in ("initialize", "ping", "tools/list", "notifications/cancelled", "no/such", "x" * 1_000):
        start = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"capabilities":{{}},"_meta":{{}},"a":'
        answer = watched.post(start.encode() + BODIES[what] + b"}}", "/mcp", f"{what} in {method}")
        assert answer.status == (200 if what in READ else 400), (method, answer.body[:200])


BATCH = {
    "get_candles": ("/market-data/mcp", {"symbol": "AAPL", "timeframe": "1d", "limit": 1_000}),
    "list_indicators": ("/mcp", {}),
    "construct_chart_config": ("/chart-image/mcp", {"naturalLanguage": "NVDA 4h with rsi and macd " * 30}),
}


@pytest.mark.parametrize("tool", BATCH)
def test_attack_no_batch_stops_the_event_loop(watched: Watched, tool: str) -> None:
    """Fifty calls that wait for nothing, because their answers are cached or quick, let others be served in between."""
    path, given = BATCH[tool]
    calls = [message("tools/call", {"name": tool, "arguments": given}, number) for number in range(50)]
    answer = watched.post(calls, path, f"50 × {tool}", MCP_Protocol_Version="2025-03-26")
    assert answer.status == 200 and len(answer.json) == 50


def _fill(journal: Journal) -> None:
    """Writes as much as alice may keep of what one answer lists, or more than that."""
    for number in range(Settings().quota_alerts):
        beyond = Decimal(10**6 + number)
        name = f"alert_{number}"
        alert = Alert(name, "alice", "AAPL", "AAPL", "1m", Type.PRICE_ABOVE, journal.at, beyond, updated_at=journal.at)
        journal.put("alert", alert, new=True)
    decision = {
        "principal": "alice",
        "symbol": "AAPL",
        "action": "BUY",
        "confidence": 0.5,
        "reasoning": "\x1b" * 16_384,
    }
    for number in range(100):
        journal.put("decision", {**decision, "id": f"dec_{number}", "created_at": journal.at}, new=True)
    received = {
        "source": "webhook",
        "webhook": "w",
        "trusted": False,
        "triggered_at": "2026-01-01T00:00:00Z",
        "fields": [{"name": f"field {number}", "value": "\u200b" * 490} for number in range(32)],
    }
    for number in range(400):
        deliver_to_inbox(journal, "alice", {**received, "alert_id": f"in_{number}"})


LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "list_alerts": ("/mcp", {"status": "all"}),
    "get_notifications": ("/mcp", {"limit": 1_000, "cursor": 0}),
    "get_recent_decisions": ("/decisions/mcp", {"limit": 100, "force_refresh": True}),
}


def test_attack_no_list_stops_the_event_loop(watched: Watched) -> None:
    """Lists of everything that a principal may keep, with texts that are expensive to clean."""
    records = watched.gateway.desk.trading.records
    watched.gateway.run(lambda: records.write(_fill))
    for tool, (path, given) in LISTS.items():
        answer = watched.post(_call(tool, given), path, tool)
        assert answer.status == 200 and answer.json["result"]["isError"] is False, answer.body[:300]


def test_attack_names_of_tools_and_methods_do_not_stop_the_event_loop(watched: Watched) -> None:
    """A name of a megabyte, as a tool, a method, an id or a session, is refused like any other."""
    long = "x" * (LIMIT - 200)
    for body in (_call(long, {}), message(long), message("ping", number=long), message("initialize", {long: 1})):
        assert watched.post(body, "/market-data/mcp", str(body)[:60]).status in {200, 400, 404}


FORM, JSON = {"Content_Type": "application/x-www-form-urlencoded"}, {"Content_Type": "application/json"}
CHART, QUOTES, INBOUND = "/v2/tradingview/advanced-chart", "/v2/quotes", f"/webhooks/in_{'0' * 32}"
NAMES_49 = {f"{'coordinates' * 3}{number}": 1 for number in range(49)}
STUDY = {"name": "Bollinger Bands", "input": NAMES_49, **NAMES_49}
DRAWING = {"name": "Trend Line", "input": NAMES_49, **NAMES_49}
CONFIG = {"symbol": "NASDAQ:AAPL", "interval": "1D"}
LARGE_TIME = urlsafe_b64encode(json.dumps({"nonce": "a", "expires_at": 10**400}).encode())


def _other_requests() -> Iterator[tuple[str, str, bytes | None, dict[str, str]]]:
    """Method, path, body and headers of requests that are no messages of MCP."""
    for name, entry in (("studies", STUDY), ("drawings", DRAWING)):
        yield "POST", CHART, json.dumps({**CONFIG, name: [entry] * 40}).encode(), JSON
        yield (
            "POST",
            CHART,
            json.dumps({**CONFIG, name: [{"name": f"{'Bollinger' * 8}{n}"} for n in range(50)]}).encode(),
            JSON,
        )
    yield (
        "POST",
        CHART,
        json.dumps({**CONFIG, **{f"{'timezone' * 4}{number}": 1 for number in range(2_000)}}).encode(),
        JSON,
    )
    yield "POST", CHART, json.dumps({**CONFIG, "timezone": "America/" * 20_000}).encode(), JSON
    yield "POST", CHART, b"[" * 4_900 + b"]" * 4_900, JSON
    for body in (
        b"[" * 8_000 + b"]" * 8_000,
        b'{"a":"' + b"\\u202e" * 2_700 + b'"}',
        b"{" + b'"":1,' * 3_200 + b'"a":1}',
    ):
        yield "POST", INBOUND, body, JSON
        yield "POST", "/register", body, JSON
    uris = [f"http://127.0.0.1:{number}/{'a' * 200}" for number in range(70)]
    yield "POST", "/register", json.dumps({"client_name": "\u202e" * 1_000, "redirect_uris": uris}).encode(), JSON
    yield "POST", "/register", json.dumps({"redirect_uris": ["http://" + "[" * 15_000]}).encode(), JSON
    for form in (
        b"&" * 16_000,
        b"grant_type=" + b"%00" * 5_000,
        b"client_id=" + b"a" * 16_000,
        b"form=" + b"e30." * 4_000,
        b"form=" + LARGE_TIME,
    ):
        yield "POST", "/token", form, FORM
        yield "POST", "/authorize/consent", form, {**FORM, "Cookie": "a=b; " * 3_000}
    yield "GET", f"/authorize?client_id=https://a.example/{'a' * 8_000}", None, {}
    yield "GET", f"{QUOTES}?tickers={','.join(f'AAPL{number}' for number in range(50))}", None, {}
    yield "GET", f"{QUOTES}?tickers={'A,' * 4_000}", None, {}
    yield "GET", f"{QUOTES}?{'&'.join(f'ticker{number}=A' for number in range(50))}", None, {}
    for header in ("Accept", "If_None_Match", "Authorization", "X_Api_Key", "Cookie", "Mcp_Session_Id", "Content_Type"):
        for value in ("a," * 7_000, '"a", ' * 2_800, " " * 14_000 + "a", "Bearer " * 2_000):
            yield "GET", f"{QUOTES}?tickers=AAPL", None, {header: value}
            yield "POST", "/mcp", b"{}", {header: value}


def test_attack_no_request_to_another_api_stops_the_event_loop(watched: Watched) -> None:
    """The chart API, quotes, webhooks and OAuth get bodies, forms, queries and headers that are expensive to read."""
    for method, path, body, headers in _other_requests():
        what = (
            f"{method} {path[:40]} {(body or b'')[:40]!r} { ({name: value[:20] for name, value in headers.items()}) }"
        )
        data = watched.gateway.bytes_of(method, path, body, **headers)
        answer = watched.watch(lambda data=data: watched.gateway.send(data), what)  # type: ignore[misc]
        assert answer.status < 500, (what, answer.status)


def test_the_first_unknown_arguments_are_named_whatever_their_number(watched: Watched) -> None:
    arguments = {"symbl": "AAPL", **{f"k{number}": 1 for number in range(40_000)}}
    answer = watched.post(_call("get_current_price", arguments), "/market-data/mcp", "unknown")
    text = json.loads(answer.json["result"]["content"][0]["text"])["error"]["message"]
    assert "symbl is not an argument of this tool; did you mean 'symbol'?" in text
    assert text.count("is not an argument") <= 8
