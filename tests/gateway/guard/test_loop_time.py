"""No request stops the event loop: hostile arguments of every tool of every server, and hostile JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from openbell.servers import NAMES, load
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
        # The first use of a part loads it, once in the life of a process, and what a call leaves to do counts with the next.
        for _ in range(3):
            self._time.take()
            answer = self.gateway.post(body, path=path, **headers)
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
    "objects of unknown fields": [{f"k{number}": 1 for number in range(120)} for _ in range(20)],
    "objects of wrong fields": [{"name": "rsi", **{f"k{number}": [] for number in range(100)}} for _ in range(24)],
    "named objects": [{"name": "rsi", "type": "EMA", "id": str(number)} for number in range(1_200)],
    "one object": {f"k{number}": number for number in range(120)},
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
    yield "49,000 names", {names[-1]: {f"k{number}": 1 for number in range(49_000)}}
    for name in names:
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


def test_attack_names_of_tools_and_methods_do_not_stop_the_event_loop(watched: Watched) -> None:
    """A name of a megabyte, as a tool, a method, an id or a session, is refused like any other."""
    long = "x" * (LIMIT - 200)
    for body in (_call(long, {}), message(long), message("ping", number=long), message("initialize", {long: 1})):
        assert watched.post(body, "/market-data/mcp", str(body)[:60]).status in {200, 400, 404}


def test_the_first_unknown_arguments_are_named_whatever_their_number(watched: Watched) -> None:
    arguments = {"symbl": "AAPL", **{f"k{number}": 1 for number in range(40_000)}}
    answer = watched.post(_call("get_current_price", arguments), "/market-data/mcp", "unknown")
    text = json.loads(answer.json["result"]["content"][0]["text"])["error"]["message"]
    assert "symbl is not an argument of this tool; did you mean 'symbol'?" in text
    assert text.count("is not an argument") <= 8
