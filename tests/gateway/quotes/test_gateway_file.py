"""gateway.json: programs of this machine ask the gateway of their home, and only one that has the same answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.quotes.arche import gateway_file
from openbell.desk.quotes.arche.gateway_file import NAME, GatewayFile, fingerprint
from openbell.desk.settings import Settings, load
from tests.client import run
from tests.gateway.quotes.conftest import AS_OF
from tests.gateway.streamable.gateways import Inside, Up
from tests.servers.desks import Bench, awaited, bench_as_found
from tests.servers.quotes_server import LIVE, QuotesServer, Work, reply, silent

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("quotes.live", {"tickers": ["BTC/USD"]}),
    ("quotes.live", {"tickers": ["aapl", "BTC-USD", "nope", "EUR/USD"]}),
    ("quotes.live", {"tickers": ["NOPE"]}),
    ("quotes.live", {"tickers": ["?"]}),
    ("quotes.historical", {"tickers": ["AAPL", "BTC/USD"], "from": "2026-01-02", "to": "2026-01-07", "interval": "1d"}),
    (
        "quotes.historical",
        {
            "tickers": ["EUR/USD"],
            "from": "2026-01-06",
            "to": "2026-01-07",
            "interval": "1m",
            "page": 3,
            "page_size": 200,
        },
    ),
    ("quotes.historical", {"tickers": ["AAPL"], "from": "2026-01-07", "to": "2026-01-06", "interval": "1m"}),
    ("system.health", {}),
    ("system.metadata", {}),
]
OWN = {"request_id", "trace_id"}
"""What belongs to a call and not to its answer."""


def settings_of(home: Path, **settings: str) -> Settings:
    given = {"HOME": str(home), **settings}
    return load({f"OPENBELL_{name}": value for name, value in given.items()})


def audited(home: Path) -> set[str]:
    """The ids of the requests that the gateway has recorded."""
    return {json.loads(line)["request"] for line in (home / "audit.log").read_text().splitlines()}


# The file


def test_only_its_owner_can_read_it_and_only_its_writer_removes_it(tmp_path: Path) -> None:
    first = gateway_file.describe(settings_of(tmp_path), 8742)
    second = gateway_file.describe(settings_of(tmp_path), 8743)
    assert first is not None
    assert second is not None
    assert first.url == "http://127.0.0.1:8742"
    assert first.key != second.key
    for each in (first, second):
        gateway_file.write(tmp_path, each)
        assert gateway_file.read(tmp_path) == each
        assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    gateway_file.remove(tmp_path, first)
    assert gateway_file.read(tmp_path) == second, "the first gateway ends after the second has begun"
    gateway_file.remove(tmp_path, second)
    assert list(tmp_path.iterdir()) == []


def test_a_gateway_that_is_read_only_or_not_local_has_none(tmp_path: Path) -> None:
    assert gateway_file.describe(settings_of(tmp_path, READ_ONLY="1"), 1) is None
    assert gateway_file.describe(settings_of(tmp_path, HOST="192.168.1.5", ALLOWED_HOSTS="desk.lan"), 1) is None
    for host, url in (("0.0.0.0", "http://127.0.0.1:7"), ("::", "http://[::1]:7"), ("localhost", "http://localhost:7")):
        found = gateway_file.describe(settings_of(tmp_path, HOST=host, ALLOWED_HOSTS="desk.lan"), 7)
        assert found is not None
        assert found.url == url


def content(url: str, key: str = "k") -> str:
    return json.dumps({"url": url, "key": key, "serves": ""})


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '{"url": "http://127.0.0.1:1"}', "x" * 10_000),
        content("http://example.com:80"),
        content("https://127.0.0.1:1"),
        content("http://127.0.0.1:1/path"),
        content("http://127.0.0.1"),
        content("http://127.0.0.1:x"),
        content("http://127.0.0.1:1", "a\nb"),
    ],
)
def test_a_file_that_no_gateway_has_written_is_ignored(tmp_path: Path, text: str) -> None:
    file = tmp_path / NAME
    file.touch(0o600)
    file.write_text(text)
    assert gateway_file.read(tmp_path) is None


def test_a_file_that_others_can_read_or_that_is_a_link_is_ignored(tmp_path: Path) -> None:
    made = gateway_file.describe(settings_of(tmp_path), 8742)
    assert made is not None
    gateway_file.write(tmp_path, made)
    (tmp_path / NAME).chmod(0o640)
    assert gateway_file.read(tmp_path) is None
    (tmp_path / NAME).chmod(0o600)
    (tmp_path / NAME).rename(tmp_path / "elsewhere")
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    assert gateway_file.read(tmp_path) is None
    (tmp_path / NAME).unlink()
    os.mkfifo(tmp_path / NAME, 0o600)
    assert gateway_file.read(tmp_path) is None


def test_desks_with_other_answers_have_another_fingerprint(tmp_path: Path) -> None:
    own = fingerprint(settings_of(tmp_path))
    assert own == fingerprint(settings_of(tmp_path / "other", TRADE="1", PORT="0"))
    changes = [
        {"FEED": "none"},
        {"AS_OF": AS_OF},
        {"AS_OF": AS_OF, "REPLAY_SPEED": "2"},
        {"SIM_SEED": "8"},
        {"STALE_AFTER": "60"},
        {"INFLUX_URL": "http://127.0.0.1:9"},
        {"INFLUX_DATABASE": "other"},
    ]
    assert len({own, *(fingerprint(settings_of(tmp_path, **each)) for each in changes)}) == 1 + len(changes)


# A gateway that runs


def proof_of(home: Path) -> dict[str, str | None]:
    """The headers of a program that has read the file."""
    file = gateway_file.read(home)
    assert file is not None
    return {"X_Request_ID": "1", "X_Openbell_Proof": file.proof("1")[gateway_file.PROOF]}


async def answers(bench: Bench) -> tuple[list[Any], set[str]]:
    """The answers to all calls with their truth, without what belongs to the call, and the ids of the quotes among them."""
    found, ids = [], set()
    for tool, arguments in CALLS:
        answer = await bench.reply("arche", tool, arguments)
        payload = {name: value for name, value in answer.payload.items() if name not in OWN}
        found.append((answer.is_error, payload, answer.truth, list(answer.truth)))
        if tool.startswith("quotes"):
            ids.add(answer.payload.get("request_id") or answer.payload["trace_id"])
    return found, ids


def test_the_answers_through_the_gateway_are_those_of_the_own_process(tmp_path: Path) -> None:
    through: set[str] = set()
    alone: set[str] = set()

    @awaited
    async def compare() -> None:
        async with bench_as_found(tmp_path, AS_OF, TRADE="0") as bench:
            by_gateway, ids = await answers(bench)
            through.update(ids)
            bench.desk.arche.is_gateway = True
            by_itself, ids = await answers(bench)
            alone.update(ids)
            assert by_gateway == by_itself
            assert [is_error for is_error, *_ in by_itself] == [
                False,
                False,
                True,
                True,
                False,
                False,
                True,
                False,
                False,
            ]

    with Up(tmp_path, "--host", "127.0.0.1", AS_OF=AS_OF) as up:
        key = json.loads((tmp_path / NAME).read_text())["key"]
        for headers in ({"X_Api_Key": key}, {"Authorization": f"Bearer {key}"}):
            assert up.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, None, **headers).status == 401
        proof = proof_of(tmp_path)
        assert up.request("GET", "/v2/quotes?tickers=BTC/USD", None, **proof).status == 200
        for wrong in (
            {"X_Request_ID": "2"},
            {"X_Openbell_Proof": "0" * 64},
            {"X_Api_Key": key},
            {"X_Openbell_Proof": None},
        ):
            assert up.request("GET", "/v2/quotes?tickers=BTC/USD", None, **{**proof, **wrong}).status == 401
        assert up.request("GET", "/v2/quotes?tickers=BTC/USD", None, X_Api_Key=key).status == 401, "it is never sent"
        compare()
        called = run(tmp_path, "call", "arche", "quotes.live", '{"tickers": ["BTC/USD"]}', AS_OF=AS_OF)
        assert called.returncode == 0, called.stderr
        assert up.stop() == 0
    assert not (tmp_path / NAME).exists()
    assert {json.loads(called.stdout)["request_id"], *through} <= audited(tmp_path), "the gateway was asked"
    assert not alone & audited(tmp_path)


def test_the_file_of_a_killed_gateway_does_no_harm(tmp_path: Path) -> None:
    with Up(tmp_path, "--host", "127.0.0.1", AS_OF=AS_OF) as up:
        up.process.kill()
        up.process.wait()
    assert gateway_file.read(tmp_path) is not None
    done = run(tmp_path, "call", "arche", "quotes.live", '{"tickers": ["BTC/USD"]}', AS_OF=AS_OF)
    assert (done.returncode, json.loads(done.stdout)["source_status"]) == (0, 200)
    assert done.stderr.startswith("truth: data=simulated")
    with Inside(tmp_path, {}, AS_OF=AS_OF) as gateway:
        found = gateway_file.read(tmp_path)
        assert found is not None
        assert found.url == f"http://127.0.0.1:{gateway.port}", "the next gateway replaces it"


def test_the_own_key_has_no_rate_limit(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF, RATE_QUOTES="1", RATE_HEALTH="1") as gateway:
        key = json.loads((tmp_path / NAME).read_text())["key"]
        for path in ("/v2/quotes?tickers=BTC/USD", "/healthz"):
            found = [gateway.request("GET", path, None, **proof_of(tmp_path)) for _ in range(4)]
            assert [each.status for each in found] == [200] * 4
            assert GatewayFile("", key, "").has_sent("1", found[0]["x-openbell-gateway"])
            assert not GatewayFile("", key, "").has_sent("2", found[0]["x-openbell-gateway"])
        assert key not in str(vars(gateway.gateway.quotes.own_key)), "only its hash is kept"


# Another program at the port

OTHERS: dict[str, bytes | Work] = {
    "a page": reply(200, b"<html>", "text/html"),
    "quotes of somebody else": reply(200, LIVE),
    "quotes with a wrong proof": reply(200, LIVE, X_Openbell_Gateway="0" * 64),
    "401": reply(401, {"error": {"code": "UNAUTHENTICATED"}}),
    "a closed connection": b"",
    "something that is not HTTP": b"220 mail.example.com ESMTP\r\n",
    "silence": silent,
}


def pretend(home: Path, port: int, settings: Settings) -> GatewayFile:
    """Writes the file of a gateway that has ended."""
    made = gateway_file.describe(settings, port)
    assert made is not None
    gateway_file.write(home, made)
    return made


def test_a_program_that_has_taken_the_port_is_asked_once_and_ignored(tmp_path: Path) -> None:
    async def ask(name: str, server: QuotesServer) -> None:
        server.plan = OTHERS[name]
        async with bench_as_found(tmp_path, AS_OF, TIMEOUT="10") as bench:
            pretend(tmp_path, server.port, bench.desk.settings)
            for _ in range(3):
                found = await bench.reply("arche", "quotes.live", {"tickers": ["BTC/USD"]})
                assert not found.is_error, (name, found.payload)
                assert found.payload["quotes"][0]["ticker"] == "BTC/USD", name
                assert found.truth["data"] == "simulated"
            assert (await bench.ask("arche", "system.health"))["status"] == "ok"

    with QuotesServer() as server:
        for count, name in enumerate(OTHERS, start=1):
            awaited(ask)(name, server)
            assert len(server.seen) == count, name


@pytest.mark.parametrize(
    "settings", [{"FEED": "none"}, {"AS_OF": AS_OF, "REPLAY_SPEED": "2"}, {"SIM_SEED": "8", "AS_OF": AS_OF}]
)
def test_a_gateway_with_other_answers_is_not_asked(tmp_path: Path, settings: dict[str, str]) -> None:
    @awaited
    async def ask() -> None:
        with QuotesServer() as server:
            async with bench_as_found(tmp_path, settings.get("AS_OF", ""), **settings) as bench:
                # A replay has a clock of its own even if all settings are the same.
                same = bench.desk.settings if "REPLAY_SPEED" in settings else replace(bench.desk.settings, sim_seed=7)
                same = replace(same, feed="sim")
                pretend(tmp_path, server.port, same)
                await bench.reply("arche", "quotes.live", {"tickers": ["BTC/USD"]})
            assert server.seen == []

    ask()


def test_a_program_that_has_taken_the_port_learns_nothing_with_which_it_could_answer(tmp_path: Path) -> None:
    """It answers with whatever it was sent as its own proof."""
    with QuotesServer() as server:

        async def impostor(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            sent = server.seen[-1].headers
            proof = hashlib.sha256(sent.get("x-api-key", "").encode()).hexdigest()
            writer.write(reply(200, LIVE, X_Openbell_Gateway=sent.get("x-openbell-proof", proof)))
            await writer.drain()

        server.plan = impostor
        file = pretend(tmp_path, server.port, settings_of(tmp_path, AS_OF=AS_OF))
        done = run(tmp_path, "call", "arche", "quotes.live", '{"tickers": ["BTC/USD"]}', AS_OF=AS_OF)
    assert done.stderr.startswith("truth: data=simulated")
    assert json.loads(done.stdout)["quotes"][0]["ticker"] == "BTC/USD"
    assert len(server.seen) == 1
    assert file.key.lower() not in str(server.seen)


def test_a_read_only_desk_does_not_make_the_gateway_write(tmp_path: Path) -> None:
    # Not on the watchlist, which the collector stores.
    given = json.dumps({"tickers": ["SOL/USDT"], "from": "2025-12-01", "to": "2025-12-02", "interval": "1m"})
    with Up(tmp_path, "--host", "127.0.0.1", AS_OF=AS_OF):
        assert run(tmp_path, "call", "arche", "quotes.historical", given, "--read-only", AS_OF=AS_OF).returncode == 0
        assert not list((tmp_path / "simulated").rglob("SOL*"))
        assert not (tmp_path / "audit.log").exists()
