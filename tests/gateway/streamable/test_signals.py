"""Signals over HTTP: subscriptions outlast connections and processes; every stream of their principal gets the alerts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.desk.settings.principals import OPERATOR
from openbell.signals.crossing_alerts import METHOD, CrossingSubscription
from openbell.stores.records import crossings
from openbell.stores.records.journal import Journal
from tests.gateway.streamable.gateways import TOKENS, Inside, Stream, Up, add_tokens, message
from tests.gateway.webhooks.desks import fire
from tests.servers.test_alerts import AS_OF, CONDITIONS, epoch, expected

PATH = "/chart-signals/mcp"
GIVEN: dict[str, Any] = {"symbol": "BTCUSD", "timeframe": "1min", "conditions": CONDITIONS}
NAMES = [f"p{number}" for number in range(6)]
FAST: dict[str, Any] = {"CHART_SIGNALS_HTTP": "1", "REPLAY_SPEED": "1800"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """Each test has a principal of its own, p0 …"""
    tokens = {**TOKENS, **{name: (name, "read,trade") for name in NAMES}}
    with Inside(tmp_path_factory.mktemp("signals"), tokens, CHART_SIGNALS_HTTP="1") as made:
        yield made


async def trigger(desk: Desk, subscription_id: str, price: float) -> None:
    """Record an alert of a subscription, as the engine does."""

    def work(journal: Journal) -> None:
        found = {each.subscription.id: each.subscription for each in crossings.all_stored(journal.view)}
        given: CrossingSubscription = found[subscription_id]
        body = {"subscription_id": given.id, "triggered": ["ema_reclaim"], "snapshot": {"price": price}}
        assert crossings.fire(journal, given, body, 0, journal.at, time.time())

    await desk.trading.records.write(work)


def told(event: dict[str, str]) -> float:
    price: float = json.loads(event["data"])["params"]["snapshot"]["price"]
    return price


def prices(stream: Stream, count: int) -> list[float]:
    found = [stream.message() for _ in range(count)]
    assert {each["method"] for each in found} == {METHOD}
    return [each["params"]["snapshot"]["price"] for each in found]


def test_alerts_come_for_what_becomes_true_and_outlast_a_killed_process(tmp_path: Path) -> None:
    """The second process begins half an hour later: it also finds what became true in between."""
    tokens = add_tokens(tmp_path)
    got: list[dict[str, Any]] = []
    with Up(tmp_path, tokens=tokens, AS_OF=AS_OF, **FAST) as first:
        with first.stream("reader", PATH) as stream, first.listen("reader", PATH) as listening:
            number = first.ask("subscribe_alerts", "writer", PATH, **GIVEN)["subscription_id"]
            assert first.ask("subscribe_alerts", "writer", PATH, **GIVEN)["subscription_id"] == number
            events = [stream.event() for _ in range(4)]
            got += [json.loads(each["data"]) for each in events]
            assert [listening.message()["params"] | {"_meta": 0} for _ in range(4)] == [
                each["params"] | {"_meta": 0} for each in got
            ]
        with first.stream("alice", Last_Event_ID=events[1]["id"]) as resumed:  # at /mcp, with another token
            assert [resumed.event() for _ in range(2)] == events[2:]
    later = datetime.fromtimestamp(epoch(got[-1]["params"]["timestamp"]), UTC) + timedelta(minutes=90)
    with Up(tmp_path, tokens=tokens, AS_OF=later.isoformat(), **FAST) as second:
        with second.stream("reader", PATH) as stream, second.stream("bob", PATH) as other:
            got += [stream.message() for _ in range(3)]
            assert (
                second.post(message("subscribe_alerts", GIVEN), "bob", PATH).json["result"]["subscription_id"] != number
            )
            assert other.message()["params"]["subscription_id"] != number
        assert second.ask("unsubscribe_alerts", "writer", PATH, subscription_id=number)["unsubscribed"] is True
    assert {each["params"]["subscription_id"] for each in got} == {number}
    times = [epoch(each["params"]["timestamp"]) for each in got]
    truth = expected("BTC/USD", times[-1])
    assert times == sorted(times)
    assert set(times) <= set(truth)
    for each in got:
        assert set(each["params"]) == {
            "subscription_id",
            "symbol",
            "timeframe",
            "triggered",
            "snapshot",
            "timestamp",
            "_meta",
        }
        assert each["params"]["timeframe"] == "1min"
    for begin, end in ((times[0], times[3]), (times[4], times[-1])):
        became = {name for at, names in truth.items() if begin <= at <= end for name in names}
        assert became <= {name for each in got for name in each["params"]["triggered"]}


def test_a_desk_that_cannot_write_sends_signals_while_it_runs(tmp_path: Path) -> None:
    """A clock of its own without --trade: nothing of it is stored."""
    with (
        Up(tmp_path, "--host", "127.0.0.1", AS_OF=AS_OF, **FAST) as fast,
        fast.stream("reader", PATH) as stream,
        fast.listen("reader", PATH) as listening,
        fast.stream("bob", PATH) as other,
    ):
        number = fast.ask("subscribe_alerts", "writer", PATH, **GIVEN)["subscription_id"]
        got = [stream.message() for _ in range(3)]
        assert [listening.message()["params"]["timestamp"] for _ in range(3)] == [
            each["params"]["timestamp"] for each in got
        ]
        for each in got:
            assert each["method"] == METHOD
            assert each["params"]["subscription_id"] == number
            assert each["params"]["triggered"]
        theirs = fast.post(message("subscribe_alerts", GIVEN), "bob", PATH).json["result"]["subscription_id"]
        assert other.message()["params"]["subscription_id"] == theirs


def test_each_endpoint_pushes_what_its_server_declares(gateway: Inside) -> None:
    """A token for /portfolio/mcp alone must not get the alerts of chartgen."""
    number = gateway.ask("subscribe_alerts", "p0", PATH, **GIVEN)["subscription_id"]
    gateway.ask("subscribe_notifications", "p0")
    with (
        gateway.stream("p0") as charts,
        gateway.stream("p0", PATH) as signals,
        gateway.listen("p0", "/portfolio/mcp") as none,
    ):
        alert = gateway.run(lambda: fire(gateway.desk, principal="p0"))["alert_id"]
        gateway.run(lambda: trigger(gateway.desk, number, 1.0))
        assert charts.message()["params"]["alert_id"] == alert
        assert prices(charts, 1) == prices(signals, 1) == [1.0]
        gateway.run(gateway.gateway.close_streams)
        assert [each.get("method") for each in none.rest()] == [None]  # the result of subscriptions/listen
    gateway.gateway._pushes._closing = False


def test_signals_and_alerts_that_were_missed_come_once_each(gateway: Inside) -> None:
    """A stream of signals alone leaves the alerts for a stream that takes them."""
    number = gateway.ask("subscribe_alerts", "p1", PATH, **GIVEN)["subscription_id"]
    gateway.ask("subscribe_notifications", "p1")
    alerts, wanted = [], [float(each) for each in range(4)]
    for price in wanted:
        gateway.run(lambda: trigger(gateway.desk, number, price))  # noqa: B023
        alerts.append(gateway.run(lambda: fire(gateway.desk, principal="p1"))["alert_id"])
    with gateway.stream("p1", PATH) as stream:
        assert prices(stream, 4) == wanted
    deadline = time.monotonic() + 30
    while gateway.run(lambda: gateway.desk.trading.inbox.queued("p1", {METHOD: None}))[0]:
        assert time.monotonic() < deadline, "the pushes are not recorded"
    with gateway.stream("p1") as stream:
        assert [stream.message()["params"]["alert_id"] for _ in range(4)] == alerts


def test_attack_a_stream_without_a_token_takes_no_push_from_the_operator(tmp_path: Path) -> None:
    """It may read what is pushed to the operator. The operator's own client still gets everything afterwards."""
    tokens = {"owner": (OPERATOR, "read,trade")}
    with Inside(tmp_path, tokens, CHART_SIGNALS_HTTP="1", OPEN_READING="1") as gateway:
        number = gateway.ask("subscribe_alerts", "owner", PATH, **GIVEN)["subscription_id"]
        gateway.run(lambda: trigger(gateway.desk, number, 1.0))
        with gateway.stream(None, PATH) as stream, gateway.listen(None, PATH) as listening:
            for price in (1.0, 2.0, 3.0):  # what came before the last push would be recorded by then
                if price > 1.0:
                    gateway.run(partial(trigger, gateway.desk, number, price))
                assert prices(stream, 1) == prices(listening, 1) == [price]
        with gateway.stream("owner", PATH) as own:
            assert prices(own, 3) == [1.0, 2.0, 3.0]


def test_subscriptions_are_bounded_and_end_with_their_queue(gateway: Inside) -> None:
    made = [
        gateway.ask("subscribe_alerts", "p2", PATH, **GIVEN, throttle_ms=number)["subscription_id"]
        for number in range(100)
    ]
    assert len(set(made)) == 100
    refused = gateway.post(
        message("tools/call", {"name": "subscribe_alerts", "arguments": {**GIVEN, "throttle_ms": 100}}), "p2", PATH
    )
    assert "you have 100 open subscriptions, and the most is 100" in refused.json["error"]["message"]
    for number in made[:2]:
        gateway.run(lambda: trigger(gateway.desk, number, float(made.index(number))))  # noqa: B023
    gateway.ask("unsubscribe_alerts", "p2", PATH, subscription_id=made[0])
    with gateway.stream("p2", PATH) as stream:
        assert prices(stream, 1) == [1.0]
    again = {"name": "unsubscribe_alerts", "arguments": {"subscription_id": made[0]}}
    assert gateway.post(message("tools/call", again), "p2", PATH).json["error"]["code"] == -32602


def test_a_throttle_outlasts_a_restart(tmp_path: Path) -> None:
    """The second process merges what becomes true within the throttle of an alert that the first one has sent."""
    tokens = add_tokens(tmp_path)
    with Up(tmp_path, tokens=tokens, AS_OF=AS_OF, **FAST) as first, first.stream("reader", PATH) as stream:
        first.ask("subscribe_alerts", "writer", PATH, **GIVEN, throttle_ms=3_600_000)
        got = stream.message()["params"]
    later = datetime.fromtimestamp(epoch(got["timestamp"]), UTC) + timedelta(minutes=90)
    with Up(tmp_path, tokens=tokens, AS_OF=later.isoformat(), **FAST) as second, second.stream("bob", PATH) as other:
        second.ask("subscribe_alerts", "bob", PATH, **GIVEN)
        for _ in range(3):
            other.message()
        assert alerts_of_alice(tmp_path, later + timedelta(days=1)) == 1


def alerts_of_alice(home: Path, moment: datetime) -> int:
    """How many alerts were recorded for a principal of the scenario by a moment."""

    async def work() -> int:
        settings = load({"OPENBELL_HOME": str(home), "OPENBELL_AS_OF": moment.isoformat()}, trade=True)
        async with Desk(settings) as desk:
            return len((await desk.trading.inbox.queued("alice", {METHOD: 0}))[0])

    return asyncio.run(work())


def test_two_processes_on_one_database_deliver_the_same_signals(tmp_path: Path, database: str) -> None:
    """Subscribed at one process, recorded by a third one, pushed by both, resumed at the other one."""
    tokens = add_tokens(tmp_path / "a", database=database)
    settings: dict[str, Any] = {"DATABASE_URL": database, "CHART_SIGNALS_HTTP": "1"}
    with (
        Up(tmp_path / "a", tokens=tokens, **settings) as one,
        Up(tmp_path / "b", tokens=tokens, **settings) as two,
    ):
        number = one.ask("subscribe_alerts", "writer", PATH, **GIVEN)["subscription_id"]
        with one.stream("reader", PATH) as first, two.stream("reader", PATH) as second, two.listen("alice") as third:
            asyncio.run(trigger_at(tmp_path / "a", database, number, 10))
            events = [first.event() for _ in range(10)]
            # The market of these desks moves: an alert of its own may come in between.
            ours = [each for each in map(told, events) if each < 10]
            assert ours == [float(each) for each in range(len(ours))]
            assert len(ours) >= 8
            assert [second.event() for _ in range(10)] == events
            assert [third.message()["params"]["snapshot"] for _ in range(10)] == [
                json.loads(each["data"])["params"]["snapshot"] for each in events
            ]
        with two.stream("reader", PATH, Last_Event_ID=events[3]["id"]) as resumed:
            assert [resumed.event() for _ in range(6)] == events[4:]
        assert one.ask("unsubscribe_alerts", "writer", PATH, subscription_id=number)["unsubscribed"] is True


async def trigger_at(home: Path, database: str, number: str, count: int) -> None:
    async with Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_DATABASE_URL": database}, trade=True)) as desk:
        for price in range(count):
            await trigger(desk, number, float(price))
