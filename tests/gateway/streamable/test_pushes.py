"""Pushes over HTTP: alerts reach every stream of their principal, in order, and nobody else."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.gateway.streamable import channels
from openbell.gateway.streamable import pushes as module
from openbell.gateway.streamable.pushes import PushStreams
from openbell.protocol.session import Principal, Scope
from openbell.signals.crossing_alerts import METHOD as SIGNALS
from openbell.stores.records.tables import pushes as queue
from tests.gateway.streamable.fixture_server import fixtures
from tests.gateway.streamable.gateways import TOKENS, Inside, Stream, Up, add_tokens
from tests.gateway.webhooks.desks import desk_at, fire
from tests.waiting import PATIENCE, until

METHOD = "notifications/alert_triggered"
NAMES = [f"p{number}" for number in range(12)]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """Each test has a principal of its own, p0 …"""
    extra = {name: (name, "read,trade") for name in NAMES} | {
        "p0-reads": ("p0", "read"),
        "busy": ("busy", "read,trade"),
    }
    with Inside(tmp_path_factory.mktemp("pushes"), {**TOKENS, **extra}) as made:
        yield made


def fires(gateway: Inside, principal: str, symbol: str = "BTC/USD") -> dict[str, Any]:
    """Fire an alert; its notification."""
    found: dict[str, Any] = gateway.run(lambda: fire(gateway.desk, symbol, principal))
    return found


def pushed(stream: Stream, count: int = 1) -> list[str]:
    """The alerts of the next messages."""
    return [stream.message()["params"]["alert_id"] for _ in range(count)]


def test_an_alert_arrives_as_a_raw_json_rpc_frame(gateway: Inside) -> None:
    """A stream that was opened before subscribing waits. A token for reading gets no alerts."""
    with (
        gateway.stream("p0") as stream,
        gateway.stream("p0-reads") as reads,
        gateway.listen("p0", number="L") as listening,
    ):
        assert stream.frame() == {":": "keep-alive"}
        fires(gateway, "p0")  # nobody has subscribed
        gateway.ask("subscribe_notifications", "p0")
        body = fires(gateway, "p0")
        event = stream.event()
        assert set(event) == {"id", "event", "data"}
        assert event["event"] == "message"
        truth = {"openbell/truth": {"data": "simulated", "feed": "sim"}}
        assert json.loads(event["data"]) == {"jsonrpc": "2.0", "method": METHOD, "params": {**body, "_meta": truth}}
        assert set(body) == {"alert_id", "symbol", "interval", "condition", "value", "triggered_at"}
        told = listening.message()
        assert (told["method"], told["params"]["alert_id"]) == (METHOD, body["alert_id"])
        assert told["params"]["_meta"] == {**truth, "io.modelcontextprotocol/subscriptionId": "L"}
        reader = Principal("p0", frozenset({Scope.READ}))
        gateway.run(lambda: gateway.gateway._pushes.sender(reader)(SIGNALS, {}))
        assert reads.message()["method"] == SIGNALS  # and no alert before


def test_filters_are_honoured(gateway: Inside) -> None:
    with gateway.stream("p1") as stream:
        gateway.ask("subscribe_notifications", "p1", symbols=["ETH/USD"], alert_types=["price_above"])
        fires(gateway, "p1", "BTC/USD")
        wanted = fires(gateway, "p1", "ETH/USD")["alert_id"]
        assert pushed(stream) == [wanted]  # the end of a subscription also removes what is queued
        gateway.ask("subscribe_notifications", "p1", alert_types=["price_below"])
        fires(gateway, "p1", "ETH/USD")
        gateway.ask("unsubscribe_notifications", "p1")
        fires(gateway, "p1", "ETH/USD")
        gateway.ask("subscribe_notifications", "p1")
        wanted = fires(gateway, "p1", "SOL/USD")["alert_id"]
        assert pushed(stream) == [wanted]


def test_what_was_missed_comes_on_return_in_order_and_once(gateway: Inside) -> None:
    gateway.ask("subscribe_notifications", "p2")
    missed = [fires(gateway, "p2")["alert_id"] for _ in range(5)]
    assert gateway.ask("list_subscriptions", "p2")["queued"] == 5
    with gateway.stream("p2") as stream:
        assert pushed(stream, 5) == missed
        gateway.run(lambda: until(lambda: recorded(gateway, "p2"), "the pushes to be recorded"))
    with gateway.stream("p2") as stream:
        new = fires(gateway, "p2")["alert_id"]
        assert pushed(stream) == [new]


def recorded(gateway: Inside, name: str) -> bool:
    channel = gateway.gateway._pushes._channels.get(name)
    return channel is not None and bool(channel.recorded)


def test_what_was_missed_for_longer_than_an_hour_does_not_come(gateway: Inside) -> None:
    gateway.ask("subscribe_notifications", "p3")
    names = [fires(gateway, "p3")["alert_id"] for _ in range(4)]
    ages = dict(zip(names, (7200, 3601, 3590, 0), strict=True))

    def age(journal: Any) -> None:
        for name, seconds in ages.items():
            journal.view.execute(update(queue).where(queue.c.alert_id == name), {"queued": time.time() - seconds})

    gateway.run(lambda: gateway.desk.trading.records.write(age))
    with gateway.stream("p3") as stream:
        assert pushed(stream, 2) == names[2:]


def test_all_streams_of_a_principal_get_it_and_no_other(gateway: Inside) -> None:
    with (
        gateway.stream("p4") as first,
        gateway.stream("p4", "/sse") as second,
        gateway.listen("p4") as third,
        gateway.stream("p5") as other,
        gateway.listen("p5") as listening,
    ):
        for name in ("p4", "p5"):
            gateway.ask("subscribe_notifications", name)
        mine = [fires(gateway, "p4")["alert_id"] for _ in range(3)]
        for stream in (first, second, third):
            assert pushed(stream, 3) == mine
        theirs = [fires(gateway, "p5")["alert_id"]]
        for stream in (other, listening):
            assert pushed(stream) == theirs  # and none of p4 before


def test_an_open_stream_misses_nothing_that_another_one_receives(gateway: Inside) -> None:
    """A stream that a client sees as open has every alert from then on, even if others are pushed at once."""
    gateway.ask("subscribe_notifications", "p6")
    with gateway.stream("p6") as first:
        for _ in range(15):
            with gateway.stream("p6") as second:
                name = fires(gateway, "p6")["alert_id"]
                assert pushed(first) == [name]
                while pushed(second) != [name]:  # an earlier one may come again until it is recorded as pushed
                    continue


def test_last_event_id_resumes_after_that_event(gateway: Inside) -> None:
    gateway.ask("subscribe_notifications", "p7")
    with gateway.stream("p7") as stream:
        names = [fires(gateway, "p7")["alert_id"] for _ in range(6)]
        events = [stream.event() for _ in range(6)]
    for at in (0, 3):
        with gateway.stream("p7", Last_Event_ID=events[at]["id"], MCP_Protocol_Version="2025-11-25") as again:
            first = again.frame()
            assert first is not None
            assert (first["id"], first["data"]) == (events[at]["id"], "")
            assert pushed(again, 5 - at) == names[at + 1 :]
    with gateway.stream("p8", Last_Event_ID=events[0]["id"]) as other:
        gateway.ask("subscribe_notifications", "p8")
        own = fires(gateway, "p8")["alert_id"]
        assert pushed(other) == [own]


def test_attack_ids_and_cursors_show_nothing_about_the_events_of_others(gateway: Inside) -> None:
    """One event before and one after many of another principal: only their times differ."""
    gateway.ask("subscribe_notifications", "p11")
    cursors: list[int] = []
    ids: list[str] = []
    with gateway.stream("p11") as stream:
        for others in (0, 7):
            for _ in range(others):
                fires(gateway, "busy")
            began = time.time()
            fires(gateway, "p11")
            event = stream.event()
            queued, _, ledger = event["id"].partition("-")
            ids.append(event["id"])
            assert began <= int(queued, 16) / 1e6 + 1e-6 <= time.time() + 1e-6, "a time and nothing else"
            cursors.append(gateway.ask("get_notifications", "p11", cursor=len(cursors))["cursor"])
    assert cursors == [1, 2]
    assert ids == sorted(ids)
    assert {each.partition("-")[2] for each in ids} == {ledger}
    beyond = gateway.call("get_notifications", "p11", cursor=3)
    assert "later than everything in this inbox (2)" in json.dumps(beyond), "no length of the ledger"


def test_a_silent_stream_is_kept_alive(tmp_path: Path) -> None:
    assert module.KEEP_ALIVE_SECONDS == 30
    with fixtures(tmp_path, pushes=PushStreams(lambda: None, keep_alive=0.02)) as tools, tools.stream() as stream:
        assert [stream.frame() for _ in range(4)] == [{":": "keep-alive"}] * 4


def test_a_slow_reader_is_cut_and_resumes_without_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`send` blocks, as it does if a client does not read."""
    monkeypatch.setattr(channels, "_BACKLOG", 5)
    alice = Principal("alice", frozenset(Scope))

    async def connected(
        streams: PushStreams, after: str | None, reads: asyncio.Event, count: int
    ) -> list[dict[str, Any]]:
        sent: list[bytes] = []
        enough, gone = asyncio.Event(), asyncio.Event()

        async def send(part: Any) -> None:
            await reads.wait()
            sent.append(part.get("body", b""))
            if sum(b"data: {" in each for each in sent) >= count:
                enough.set()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        serving = asyncio.create_task(streams.serve(alice, {METHOD}, after, None, receive, send))
        done = asyncio.create_task(enough.wait())
        await asyncio.wait({serving, done}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        gone.set()
        await serving
        done.cancel()
        events = [
            dict(line.split(": ", 1) for line in part.decode().strip().split("\n")) for part in sent if b"data" in part
        ]
        return [{"id": each["id"], **json.loads(each["data"])["params"]} for each in events]

    async def attack() -> None:
        async with desk_at(tmp_path, TRADE="1") as desk:
            from openbell.trading.alerts import AlertFilter

            await desk.trading.inbox.subscribe("alice", AlertFilter())
            streams = PushStreams(lambda: desk.trading.inbox)
            reads = asyncio.Event()
            first = asyncio.create_task(connected(streams, None, reads, 99))
            await until(lambda: bool(streams._channels), "the stream")
            names = [(await fire(desk, principal="alice"))["alert_id"] for _ in range(20)]
            channel = streams._channels["alice"]
            await until(lambda: all(stream.full for stream in channel.streams), "the stream to be cut")
            reads.set()
            got = await first
            assert len(got) < 20
            while len(got) < 20:
                last = got[-1]["id"] if got else None
                more = await connected(streams, last, reads, 20 - len(got))
                assert more
                got += more
            assert [each["alert_id"] for each in got] == names

    asyncio.run(attack())


def test_two_processes_on_one_database_deliver_the_same_sequence(tmp_path: Path, database: str) -> None:
    """Clients are connected to either process, reconnect to the other one, and lose and repeat nothing."""
    tokens = add_tokens(tmp_path / "a", database=database)
    with (
        Up(tmp_path / "a", tokens=tokens, DATABASE_URL=database) as one,
        Up(tmp_path / "b", tokens=tokens, DATABASE_URL=database) as two,
    ):
        with one.stream() as first, two.stream() as second, two.stream("bob") as other, two.listen() as listening:
            for who in ("alice", "bob"):
                one.ask("subscribe_notifications", who)
            names = fire_in(tmp_path / "a", database, ["alice"] * 10 + ["bob"] + ["alice"] * 10)
            mine = [name for name, who in names if who == "alice"]
            events = [first.event() for _ in range(20)]
            assert [json.loads(event["data"])["params"]["alert_id"] for event in events] == mine
            assert [second.event() for _ in range(20)] == events
            assert pushed(listening, 20) == mine
            assert pushed(other) == [name for name, who in names if who == "bob"]
        with two.stream(Last_Event_ID=events[11]["id"]) as resumed:
            assert [resumed.event() for _ in range(8)] == events[12:]
        assert one.stop() == two.stop() == 0


def fire_in(home: Path, database: str, principals: list[str]) -> list[tuple[str, str]]:
    """Fire alerts from a third process on the same records; their names and owners."""

    async def work() -> list[tuple[str, str]]:
        settings = load({"OPENBELL_HOME": str(home), "OPENBELL_DATABASE_URL": database, "OPENBELL_FEED": "sim"})
        desk = Desk(replace(settings, trade=True))
        try:
            return [(str((await fire(desk, principal=who))["alert_id"]), who) for who in principals]
        finally:
            await desk.close()

    return asyncio.run(work())
