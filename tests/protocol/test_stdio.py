"""The stdio transport, over real pipes: bad lines, notifications, the end of input, every revision."""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.client import OPENBELL, PATIENCE, Client, environment
from tests.counts import runs

FUZZED_LINES = runs(300, soak=3000)
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_handshake_revision_is_spoken(tmp_path: Path, revision: str) -> None:
    with Client(tmp_path) as client:
        assert client.initialize(revision)["protocolVersion"] == revision
        result = client.call("check_market_status")["result"]
        assert json.loads(result["content"][0]["text"])["crypto"]["open"] is True
        assert result["structuredContent"] == json.loads(result["content"][0]["text"])


def test_an_unknown_revision_is_answered_with_the_newest(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        assert client.initialize("1999-01-01")["protocolVersion"] == "2025-11-25"


def test_the_revision_without_a_handshake_is_spoken(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        discovered = client.request("server/discover", {"_meta": MODERN})["result"]
        assert "2026-07-28" in discovered["supportedVersions"]
        assert "SIMULATED" in discovered["instructions"]
        called = client.request("tools/call", {"name": "check_market_status", "arguments": {}, "_meta": MODERN})
        assert called["result"]["resultType"] == "complete"
        assert called["result"]["structuredContent"] == json.loads(called["result"]["content"][0]["text"])
        assert called["result"]["_meta"]["openbell/truth"]["data"] == "simulated"
        failed = client.request(
            "tools/call", {"name": "get_signals", "arguments": {"symbol": "?", "timeframe": "1min"}, "_meta": MODERN}
        )
        assert failed["error"]["code"] == -32002
        method = {"symbol": "BTC/USD", "timeframe": "1min", "conditions": [{"type": "rsi_oversold"}], "_meta": MODERN}
        assert client.request("subscribe_alerts", method)["result"]["subscription_id"] == "sub_1"


QUICK_START = b"""\
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check_market_status","arguments":{}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_signals","arguments":{"symbol":"AAPL","timeframe":"1min"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_watchlist","arguments":{}}}"""
"""The lines of the contract of chart-signals."""


def test_the_quick_start_of_the_contract_needs_no_handshake(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.send_raw(QUICK_START)
        found = {number: client.response(number)["result"]["structuredContent"] for number in (1, 2, 3)}
        assert found[1]["crypto"]["open"] is True
        assert found[2]["symbol"] == "AAPL"
        assert "watchlist" in found[3]
        assert client.aside == [], "the handshake that was left out has no response"


def test_a_handshake_may_follow_calls_that_came_before_it(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        assert client.request("ping")["result"] == {}
        assert client.request("tools/list")["result"]["tools"]
        assert client.initialize("2025-11-25")["protocolVersion"] == "2025-11-25"
        assert client.call("check_market_status")["result"]["isError"] is False
        client.initialize("2025-03-26")
        client.send([PING])
        answers: Any = client.receive()
        assert answers == [{"jsonrpc": "2.0", "id": 7, "result": {}}], (
            "the last handshake says whether there are batches"
        )
        assert client.aside == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{bad json", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[" * 5000, -32700),
        (b"nonsense", -32700),
        (b"42", -32600),
        (b'"text"', -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc": "1.0", "id": 5, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 5, "method": 7}', -32600),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}', -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b"[]", -32600),
    ],
)
def test_a_bad_line_gets_an_error_and_the_server_lives_on(tmp_path: Path, line: bytes, code: int) -> None:
    with Client(tmp_path) as client:
        client.send_raw(line)
        assert client.receive()["error"]["code"] == code
        client.initialize()
        client.send_raw(line)
        assert client.receive()["error"]["code"] == code
        assert client.request("ping")["result"] == {}


def test_a_bad_line_that_has_an_id_is_answered_under_it(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.send_raw(b'{"jsonrpc": "2.0", "id": 77, "method": 7}')
        assert client.receive()["id"] == 77


@pytest.mark.parametrize(
    "value",
    [rb'"\ud800"', b"[" * 5000 + b"]" * 5000, b"9" * 5000, b'{"b": 1, "b": 2}'],
    ids=["half a character", "deep", "long number", "key twice"],
)
def test_json_that_nothing_takes_is_answered_under_its_id(tmp_path: Path, value: bytes) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        call = b'{"jsonrpc": "2.0", "id": 78, "method": "tools/call", "params": {"name": "x", "arguments": {"a": %s}}}'
        client.send_raw(call % value)
        answer = client.receive()
        assert (answer["id"], answer["error"]["code"]) == (78, -32600)
        assert client.request("ping")["result"] == {}


def called(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_a_batch_of_the_revision_that_has_them_is_answered_with_one_array(tmp_path: Path) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    with Client(tmp_path) as client:
        client.initialize("2025-03-26")
        client.send([called(5, "check_market_status"), note, PING, called(6, "get_signals", symbol="?")])
        answers: Any = client.receive()
        assert {each["id"] for each in answers} == {5, 6, 7}
        by_id = {each["id"]: each for each in answers}
        assert by_id[5]["result"]["structuredContent"]["crypto"]["open"] is True
        assert by_id[6]["error"]["code"] == -32602
        assert by_id[7]["result"] == {}
        client.send([note])
        client.send([])
        assert "empty batch" in client.receive()["error"]["message"]
        client.send([PING] * 51)
        assert "51 messages" in client.receive()["error"]["message"]
        client.send([5, PING])
        answers = client.receive()
        assert [(each["id"], each.get("error", {}).get("code")) for each in answers] == [(None, -32600), (7, None)]
        client.send([5])
        answers = client.receive()
        assert [each["error"]["code"] for each in answers] == [-32600]
        assert client.request("ping")["result"] == {}


def test_a_batch_that_cancels_a_request_of_its_own_answers_the_others(tmp_path: Path) -> None:
    cancels = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    with Client(tmp_path, command=[*OPENBELL, "mcp", "chartgen", "--trade"]) as client:
        client.initialize("2025-03-26")
        client.send([called(5, "get_notifications", wait_s=9), PING, cancels])
        answers: Any = client.receive()
        assert [each["id"] for each in answers] == [7]


def test_a_notification_never_gets_a_reply(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        for line in (
            {"jsonrpc": "2.0", "method": "notifications/nonsense"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
            {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "check_market_status"}},
            {"jsonrpc": "2.0", "method": 7},
        ):
            client.send(line)
        client.send_raw(b"")
        client.send_raw(b"   \r")
        assert client.request("ping")["result"] == {}
        assert client.aside == []


def test_unknown_methods_and_tools_are_not_found(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        assert client.request("no/such/method")["error"]["code"] == -32601
        assert client.call("no_such_tool")["error"]["code"] == -32601


def test_a_line_that_is_too_long_is_refused_and_skipped(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        client.send_raw(b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * (9 * 1024 * 1024) + b'"}')
        assert client.receive()["error"]["code"] == -32600
        assert client.request("ping")["result"] == {}


_LONG = b"x" * (8 * 1024 * 1024)


TOO_LONG: list[tuple[bytes, Any]] = [
    (b'{"jsonrpc": "2.0", "id": 41, "method": "tools/call", "params": {"a": "%s"}}', 41),
    (b'{"id": "a b", "jsonrpc": "2.0", "method": "ping", "params": {"a": "%s"}}', "a b"),
    (b'{"jsonrpc": "2.0", "method": "ping", "id": -5, "params": {"a": "%s"}}', -5),
    (b'{"jsonrpc": "2.0", "method": "ping", "params": {"a": "%s"}, "id": 42}', 42),
    (b'{"jsonrpc": "2.0", "method": "ping", "params": {"a": "%s"}, "id": "end" } ', "end"),
    (b'{"jsonrpc": "2.0", "method": "ping", "params": {"a": "%s", "id": 43}}', None),
    (b'{"jsonrpc": "2.0", "method": "ping", "params": {"id": 44, "a": "%s"}}', None),
    (b'{"params": {"a": "%s, \\"id\\": 45}"}, "id": 46, "method": "ping"}', None),
    (b'{"jsonrpc": "2.0", "method": "ping", "params": ["%s", {"a": 1, "id": 47}]}', None),
    (b"x%s", None),
]


def test_a_line_that_is_too_long_is_answered_under_its_id(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        for line, expected in TOO_LONG:
            client.send_raw(line % _LONG)
            answer = client.receive()
            assert (answer["id"], answer["error"]["code"]) == (expected, -32600), line
            assert str(8 * 1024 * 1024) in answer["error"]["message"]
            assert client.request("ping")["result"] == {}
            assert client.aside == [], f"one answer to {line!r}"


def test_a_line_that_is_too_long_is_answered_when_the_input_ends_in_it(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        assert client.process.stdin
        client.process.stdin.write(b'{"jsonrpc": "2.0", "id": 48, "method": "' + _LONG)
        (answer,) = client.end_input()
        assert (answer["id"], answer["error"]["code"]) == (48, -32600)


def test_the_longest_line_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        line = b'{"jsonrpc": "2.0", "id": 49, "method": "ping"}'
        blanks = b" " * (8 * 1024 * 1024 - len(line))
        client.send_raw(line + blanks)
        assert client.receive() == {"jsonrpc": "2.0", "id": 49, "result": {}}
        client.send_raw(line + blanks + b" ")
        assert client.receive()["error"]["code"] == -32600


# Ids


def slow(number: Any) -> dict[str, Any]:
    """A request that is at work until its time is over."""
    call = {"name": "get_notifications", "arguments": {"wait_s": 1}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}


def test_a_request_under_an_id_in_use_is_not_answered_under_it(tmp_path: Path) -> None:
    with Client(tmp_path, command=[*OPENBELL, "mcp", "chartgen", "--trade"], AS_OF="2026-01-07T15:00:00Z") as client:
        client.initialize()
        client.send(slow(7))
        again: list[bytes] = [
            b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}',
            b'{"jsonrpc": "2.0", "id": 7, "method": 7}',
            b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"a": "\\ud800"}}',
            b'{"jsonrpc": "2.0", "id": 7, "method": "' + _LONG + b'"}',
        ]
        for line in again:
            client.send_raw(line)
        client.send({"jsonrpc": "2.0", "id": "7", "method": "ping"})
        answers = [client.receive() for _ in range(len(again) + 2)]
        refused = [answer for answer in answers if answer["id"] is None]
        assert len(refused) == len(again)
        for answer in refused:
            assert answer["error"]["code"] == -32600
            assert "the id 7 is in use" in answer["error"]["message"]
        assert [answer["result"]["isError"] for answer in answers if answer["id"] == 7] == [False]
        assert [answer["result"] for answer in answers if answer["id"] == "7"] == [{}], "text is another id"
        client.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        assert client.receive() == {"jsonrpc": "2.0", "id": 7, "result": {}}, "an id that is free again"


def test_every_request_gets_one_answer_whatever_ids_are_used(tmp_path: Path) -> None:
    """Ids of a small pool, in bursts: as many answers as requests, never two of one id while one request has it."""
    seed = int(os.environ.get("OPENBELL_TEST_SEED", "20261116"))
    chance = random.Random(seed)
    with Client(tmp_path, command=[*OPENBELL, "mcp", "chartgen", "--trade"], AS_OF="2026-01-07T15:00:00Z") as client:
        client.initialize()
        for _ in range(20):
            sent: list[str] = []
            for _ in range(chance.randint(2, 12)):
                number = chance.choice([1, 2, "1", "two"])
                lines = [
                    json.dumps(slow(number) if chance.random() < 0.1 else {**slow(number), "method": "ping"}).encode(),
                    b'{"jsonrpc": "2.0", "id": %s, "method": 7}' % json.dumps(number).encode(),
                ]
                client.send_raw(lines[chance.random() < 0.3])
                sent.append(json.dumps(number))
            client.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})
            answers = [client.receive() for _ in range(len(sent) + 1)]
            where = f"seed {seed}: {sent} {answers}"
            for number in set(sent):
                own = [each for each in answers if json.dumps(each["id"]) == number]
                refused = [
                    each for each in answers if each["id"] is None and f"the id {number} is" in str(each["error"])
                ]
                assert own, where
                assert len(own) + len(refused) == sent.count(number), where


def test_calls_at_the_same_time_get_their_own_structured_content(tmp_path: Path) -> None:
    symbols = ["AAPL", "MSFT", "BTC/USD", "?", "ETH/USD", "TSLA"] * 5
    with Client(tmp_path, command=[*OPENBELL, "mcp", "market-data"]) as client:
        client.initialize()
        for number, symbol in enumerate(symbols):
            given = {"symbol": symbol, "timeframe": "1d", "limit": 1 + number}
            client.send(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": {"name": "get_candles", "arguments": given},
                }
            )
        answers = {answer["id"]: answer["result"] for answer in (client.receive() for _ in symbols)}
    for number, symbol in enumerate(symbols):
        result = answers[number]
        assert result["isError"] is (symbol == "?")
        if symbol != "?":
            assert result["structuredContent"] == json.loads(result["content"][0]["text"])
            assert len(result["structuredContent"]["data"]["items"]) == 1 + number


def test_a_long_line_that_is_allowed_is_read(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        answer = client.call("get_signals", {"symbol": "X" * 1_000_000, "timeframe": "1min"})
        assert answer["error"]["code"] == -32002
        assert len(json.dumps(answer)) < 1000


def test_an_id_in_use_is_refused(tmp_path: Path) -> None:
    request = {
        "jsonrpc": "2.0",
        "id": "same",
        "method": "tools/call",
        "params": {"name": "get_signals", "arguments": {"symbol": "AAPL", "timeframe": "1hour"}},
    }
    with Client(tmp_path) as client:
        client.initialize()
        client.send(request)
        client.send(request)
        answers = [client.receive(), client.receive()]
        assert sorted("error" in answer for answer in answers) == [False, True]
        client.send(request)
        assert "result" in client.receive()


def test_requests_are_answered_after_the_input_has_ended(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        for number in range(20):
            arguments = {"symbol": "BTC/USD", "timeframe": "1min"}
            params = {"name": "get_signals", "arguments": arguments}
            client.send({"jsonrpc": "2.0", "id": 100 + number, "method": "tools/call", "params": params})
        answers = client.end_input()
        assert sorted(answer["id"] for answer in answers) == list(range(100, 120))
        assert all(answer["result"]["isError"] is False for answer in answers)
        assert client.process.wait(PATIENCE) == 0


def test_input_and_output_may_be_files(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    source, sink = tmp_path / "in", tmp_path / "out"
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "check_market_status", "arguments": {}}},
    ]
    source.write_text("\n".join(map(json.dumps, lines)))  # no line end at the end
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        command = [*OPENBELL, "mcp", "chart-signals"]
        subprocess.run(
            command, stdin=stdin, stdout=stdout, env=environment(tmp_path / "home"), timeout=PATIENCE, check=True
        )
    answers = [json.loads(line) for line in sink.read_text().splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]


def test_a_terminal_may_be_the_input(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*OPENBELL, "mcp", "chart-signals"], stdin=terminal, stdout=subprocess.PIPE, env=environment(tmp_path)
    )
    try:
        os.write(controller, b'{"jsonrpc": "2.0", "id": 9, "method": "ping"}\n')
        assert process.stdout
        assert json.loads(process.stdout.readline())["id"] == 9
    finally:
        process.kill()
        process.communicate()
        os.close(controller)
        os.close(terminal)


def test_only_protocol_goes_to_standard_output(tmp_path: Path) -> None:
    noisy = (
        "import os, sys\n"
        "from openbell.servers.chart_signals import market\n"
        "from openbell.market import sessions\n"
        "plain = sessions.stock_phase\n"
        "def loud(epoch):\n"
        "    print('stray print'); os.write(1, b'stray write\\n'); os.system('echo stray child')\n"
        "    return plain(epoch)\n"
        "market.stock_phase = loud\n"
        "sys.argv = ['openbell', 'mcp', 'chart-signals']\n"
        "from openbell.cli.entry import main\n"
        "main()\n"
    )
    with Client(tmp_path, command=[sys.executable, "-c", noisy]) as client:
        client.initialize()
        assert "result" in client.call("check_market_status")
        assert client.end_input() == []
        client.process.wait(PATIENCE)
    text = b"".join(client.errors)
    assert all(word in text for word in (b"stray print", b"stray write", b"stray child"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_quietly(tmp_path: Path, number: signal.Signals) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        client.process.send_signal(number)
        assert client.process.wait(PATIENCE) == 0
    assert b"Traceback" not in b"".join(client.errors)


def test_a_client_that_leaves_ends_the_server(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        assert client.process.stdout
        client.send({"jsonrpc": "2.0", "id": 5, "method": "ping"})
        assert client.end_input()[-1]["id"] == 5
        assert client.process.wait(PATIENCE) == 0
    assert b"Traceback" not in b"".join(client.errors)


def test_a_client_that_reads_late_gets_everything(tmp_path: Path) -> None:
    command = [*OPENBELL, "mcp", "chart-signals"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(tmp_path)
    )
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    assert process.stdin
    assert process.stdout
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}]
    # More than a pipe holds, none of it read before all is sent.
    lines += [{"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(1, 40)]
    process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
    process.stdin.close()
    answers = [json.loads(line) for line in process.stdout]
    process.stdout.close()
    assert {answer["id"] for answer in answers} == set(range(40))
    assert process.wait(PATIENCE) == 0


def test_fuzzed_lines_never_stop_the_server(tmp_path: Path) -> None:
    seed = int(os.environ.get("OPENBELL_TEST_SEED", "20261115"))
    chance = random.Random(seed)
    good = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "get_signals", "arguments": {"symbol": "AAPL", "timeframe": "1min"}},
        }
    ).encode()
    with Client(tmp_path) as client:
        client.initialize()
        for _ in range(FUZZED_LINES):
            line = bytearray(good)
            for _ in range(chance.randint(1, 6)):
                at = chance.randrange(len(line))
                match chance.randrange(3):
                    case 0:
                        line[at] = chance.randrange(256)
                    case 1:
                        del line[at : at + chance.randint(1, 9)]
                    case _:
                        line[at:at] = bytes(chance.randrange(256) for _ in range(3))
                line = line or bytearray(b"{")
            client.send_raw(bytes(line).replace(b"\n", b" "))
        client.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})
        assert client.response("last")["result"] == {}, f"seed {seed}"
        for answer in client.aside:
            assert ("result" in answer) != ("error" in answer), f"seed {seed}: {answer}"
