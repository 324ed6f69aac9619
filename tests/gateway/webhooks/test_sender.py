"""Outbound webhooks, sent to real servers on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.alerts.webhooks.outbox import verify
from openbell.desk.desk import Desk
from openbell.desk.events.supervision import WorkState
from openbell.gateway.outbound import Outbound
from openbell.gateway.webhooks.sender import Schedule
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter, NoSuchWebhook, OutboundRefused, Refused
from openbell.net.response import Response
from openbell.stores.records import webhooks as queries
from openbell.stores.records.verify import entries
from openbell.stores.records.webhooks import Delivery
from tests.gateway import receivers
from tests.gateway.receivers import Receiver, status
from tests.gateway.webhooks.desks import AT, ME, QUICK, desk_at, fill, fire, sending
from tests.servers.desks import awaited
from tests.waiting import until

DAY = 86_400


async def arrived(receiver: Receiver, count: int) -> None:
    await until(lambda: len(receiver.seen) >= count, f"{count} requests")


async def nothing_waits(desk: Desk) -> None:
    """Wait until every delivery has arrived or is dead."""
    while any(each.waiting for each in await desk.webhooks.list(ME)):
        await asyncio.sleep(0.005)


async def waiting(desk: Desk) -> list[Delivery]:
    found = await desk.trading.records.read(queries.next_deliveries)
    return [delivery for delivery, _ in found]


# What is sent


@awaited
async def test_a_fired_alert_arrives_signed_with_the_body_of_its_notification(
    tmp_path: Path, receiver: Receiver, where: dict[str, str]
) -> None:
    async with desk_at(tmp_path, receiver, **where) as desk:
        await fire(desk)  # before the webhook was added
        hook, secret = await desk.webhooks.add(ME, f"{receiver.url}/hook?a=1")
        async with sending(desk):
            body = await fire(desk)
            await arrived(receiver, 1)
            await nothing_waits(desk)
    (seen,) = receiver.seen
    event = seen.json()
    assert event["data"] == body
    assert (event["type"], event["data_source"]) == ("alert", "simulated")
    assert event["id"] == seen.headers["openbell-delivery"]
    assert event["created_at"].endswith("+00:00")
    assert (seen.method, seen.path, seen.headers["content-type"]) == ("POST", "/hook?a=1", "application/json")
    signature = seen.headers["openbell-signature"]
    at = float(signature.split(",")[0].removeprefix("t="))
    assert verify(secret, signature, seen.body, at)
    assert not verify(secret, signature, seen.body + b" ", at)
    assert not verify(secret + "x", signature, seen.body, at)
    assert not verify(secret, signature, seen.body, at + 301)
    assert hook.secret == secret


@awaited
async def test_a_fill_arrives_with_decimal_text(tmp_path: Path, receiver: Receiver, where: dict[str, str]) -> None:
    async with desk_at(tmp_path, receiver, **where) as desk:
        await desk.webhooks.add(ME, receiver.url)
        async with sending(desk):
            made = await fill(desk)
            await arrived(receiver, 1)
    assert receiver.seen[0].json()["type"] == "fill"
    assert receiver.seen[0].json()["data"] == {
        "fill_id": made.id,
        "order_id": "order1",
        "symbol": "BTC/USD",
        "side": "buy",
        "quantity": "0.0001",
        "price": "64123.1",
        "fees": "0.00641231",
        "filled_at": iso(AT - 60),
        "recorded_at": iso(AT),
        "account": "paper",
        "data_source": "simulated",
    }


@awaited
async def test_a_webhook_gets_only_the_events_symbols_and_principal_that_it_is_for(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with desk_at(tmp_path, receiver) as desk:
        for principal, path, events, symbols in (
            (ME, "all", (), ()),
            (ME, "fills", ("fill",), ()),
            (ME, "eth", (), ("ethusd",)),
            ("other", "others", (), ()),
        ):
            await desk.webhooks.add(principal, f"{receiver.url}/{path}", events, symbols)
        async with sending(desk):
            await fire(desk)
            await fire(desk, "ETH/USD")
            await fill(desk)
            await fill(desk, "ETH/USD", principal="other")
            await arrived(receiver, 6)
            await nothing_waits(desk)
    got = sorted((each.path, each.json()["type"], each.json()["data"]["symbol"]) for each in receiver.seen)
    assert got == [
        ("/all", "alert", "BTC/USD"),
        ("/all", "alert", "ETH/USD"),
        ("/all", "fill", "BTC/USD"),
        ("/eth", "alert", "ETH/USD"),
        ("/fills", "fill", "BTC/USD"),
        ("/others", "fill", "ETH/USD"),
    ]


@awaited
async def test_what_was_recorded_while_no_sender_ran_is_sent_later(tmp_path: Path, receiver: Receiver) -> None:
    async with desk_at(tmp_path, receiver) as desk:
        await desk.webhooks.add(ME, receiver.url)
        bodies = [await fire(desk) for _ in range(3)]
    async with desk_at(tmp_path, receiver) as desk, sending(desk):
        await arrived(receiver, 3)
        await nothing_waits(desk)
    assert [each.json()["data"] for each in receiver.seen] == bodies


@awaited
async def test_a_new_webhook_gets_nothing_that_still_waits_for_an_older_one(tmp_path: Path, receiver: Receiver) -> None:
    async with desk_at(tmp_path, receiver) as desk:
        await desk.webhooks.add(ME, f"{receiver.url}/old")
        before = await fire(desk)
        await desk.webhooks.add(ME, f"{receiver.url}/new")
        after = await fire(desk)
        async with sending(desk):
            await arrived(receiver, 3)
            await nothing_waits(desk)
    got = {path: [each.json()["data"] for each in receiver.seen if each.path == path] for path in ("/old", "/new")}
    assert got == {"/old": [before, after], "/new": [after]}


# Failures


@pytest.mark.parametrize(
    "fault",
    [
        status(500),
        status(404),
        status(302, location="http://169.254.169.254/"),
        receivers.hang_up(),
        receivers.garbage(),
        receivers.silence(),
        receivers.endless_head(),
        receivers.endless_interim_answers(),
    ],
)
@awaited
async def test_a_failed_delivery_is_sent_again_with_the_same_id_before_later_ones(
    tmp_path: Path, receiver: Receiver, fault: receivers.Answering
) -> None:
    receiver.plan += [fault, fault]
    async with desk_at(tmp_path, receiver) as desk:
        await desk.webhooks.add(ME, receiver.url)
        async with sending(desk, Schedule(waits=(0.01,), timeout=0.5)):
            first, second = await fire(desk), await fire(desk)
            await arrived(receiver, 4)
            await nothing_waits(desk)
    events = [each.json() for each in receiver.seen]
    assert [each["data"] for each in events] == [first, first, first, second]
    assert len({each.body for each in receiver.seen}) == 2
    assert len({each.headers["openbell-delivery"] for each in receiver.seen}) == 2


@pytest.mark.parametrize("answer", [receivers.endless_body(), receivers.half_a_body(), status(299, b"x" * 100_000)])
@awaited
async def test_a_status_of_success_is_enough_whatever_follows_it(
    tmp_path: Path, receiver: Receiver, answer: receivers.Answering
) -> None:
    receiver.plan.append(answer)
    async with desk_at(tmp_path, receiver) as desk:
        await desk.webhooks.add(ME, receiver.url)
        async with sending(desk):
            bodies = [await fire(desk), await fire(desk)]
            await arrived(receiver, 2)
            await nothing_waits(desk)
    assert [each.json()["data"] for each in receiver.seen] == bodies


@awaited
async def test_a_receiver_that_hangs_does_not_delay_another(tmp_path: Path, receiver: Receiver) -> None:
    with Receiver(otherwise=receivers.silence()) as slow:
        async with desk_at(tmp_path, receiver, slow) as desk:
            await desk.webhooks.add(ME, slow.url)
            await desk.webhooks.add(ME, receiver.url)
            async with sending(desk, Schedule(timeout=60)):
                await fire(desk)
                await arrived(slow, 1)
                await fire(desk)
                await arrived(receiver, 2)
        assert len(slow.seen) == 1


@awaited
async def test_a_delivery_that_raises_something_unknown_does_not_delay_another(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Outbound):
        async def request(self, method: str, url: str, **given: Any) -> Response:
            if url.endswith("/broken"):
                raise ZeroDivisionError("a bug")
            return await super().request(method, url, **given)

    async with desk_at(tmp_path, receiver) as desk:
        await desk.webhooks.add(ME, f"{receiver.url}/broken")
        await desk.webhooks.add(ME, receiver.url)
        async with sending(desk, Schedule(waits=(3600,)), Broken(trusted=[receiver.url])):
            for count in (1, 2):
                await fire(desk)
                await arrived(receiver, count)
            await until_postponed(desk, 1)
            (delivery,) = await waiting(desk)
            assert delivery.reason == "ZeroDivisionError; the log has the trace"
        assert [str(each.exc_info[1]) for each in caplog.records if each.exc_info] == ["a bug"]


@awaited
async def test_retry_after_is_honoured_if_it_is_longer_than_the_back_off(tmp_path: Path, receiver: Receiver) -> None:
    receiver.plan += [status(503, retry_after="7200"), status(429, retry_after="0"), status(200)]
    now = 1_000.0
    async with desk_at(tmp_path, receiver) as desk:
        await desk.webhooks.add(ME, receiver.url)
        await fire(desk)
        async with sending(desk, now=lambda: now):
            await arrived(receiver, 1)
            await until_postponed(desk, 1)
            (delivery,) = await waiting(desk)
            assert (delivery.due, delivery.attempts, delivery.reason) == (now + 7200, 1, "HTTP 503")
        now += 7200
        async with sending(desk, Schedule(waits=(40,)), now=lambda: now):
            await arrived(receiver, 2)
            await until_postponed(desk, 2)
            (delivery,) = await waiting(desk)
            assert 30 <= delivery.due - now <= 50
            assert len(receiver.seen) == 2


async def until_postponed(desk: Desk, attempts: int) -> None:
    while [each.attempts for each in await waiting(desk)] != [attempts]:
        await asyncio.sleep(0.005)


def test_waits_grow_to_an_hour_and_vary() -> None:
    schedule = Schedule()
    assert [schedule.wait(number, 0.5) for number in (1, 2, 3, 4, 5, 6, 7, 100)] == [
        1,
        5,
        30,
        120,
        600,
        3600,
        3600,
        3600,
    ]
    assert schedule.wait(1, 0.0) == 0.75
    assert 1.24 < schedule.wait(1, 0.999) < 1.25


@awaited
async def test_a_delivery_is_dead_after_a_day_and_can_be_sent_again(
    tmp_path: Path, receiver: Receiver, where: dict[str, str]
) -> None:
    receiver.plan.append(status(500))
    now = 1_000.0
    async with desk_at(tmp_path, receiver, **where) as desk:
        hook, _ = await desk.webhooks.add(ME, receiver.url)
        first = await fire(desk)
        async with sending(desk, now=lambda: now):
            await until_postponed(desk, 1)
        receiver.plan.append(status(500))
        now += DAY
        async with sending(desk, now=lambda: now):
            await nothing_waits(desk)
            (dead,) = await desk.webhooks.dead(ME)
            assert (dead.reason, dead.attempts, json.loads(dead.body)["data"]) == ("HTTP 500", 2, first)
            second = await fire(desk)
            await arrived(receiver, 3)  # it no longer waits for the dead one
            await nothing_waits(desk)
            assert [(each.waiting, each.dead) for each in await desk.webhooks.list(ME)] == [(0, 1)]
            for key in ("dlv_0", hook.id + "0"):
                with pytest.raises(NoSuchWebhook):
                    await desk.webhooks.retry(ME, key)
            with pytest.raises(NoSuchWebhook):
                await desk.webhooks.retry("other", dead.id)
            assert await desk.webhooks.retry(ME, dead.id) == 1
            await arrived(receiver, 4)
            await nothing_waits(desk)
            assert await desk.webhooks.dead(ME) == []
    events = [each.json() for each in receiver.seen]
    assert [each["data"] for each in events] == [first, first, second, first]
    assert events[0]["id"] == events[3]["id"]


@awaited
async def test_a_receiver_that_is_gone_gets_nothing_more_of_it(tmp_path: Path, receiver: Receiver) -> None:
    receiver.plan.append(status(410))
    async with desk_at(tmp_path, receiver) as desk:
        hook, _ = await desk.webhooks.add(ME, receiver.url)
        async with sending(desk):
            await fire(desk)
            await arrived(receiver, 1)
            await nothing_waits(desk)
            assert [each.reason for each in await desk.webhooks.dead(ME)] == ["HTTP 410"]
            assert await desk.webhooks.retry(ME, hook.id) == 1
            await arrived(receiver, 2)


@awaited
async def test_a_clock_that_was_set_back_does_not_hold_a_delivery_for_long(tmp_path: Path, receiver: Receiver) -> None:
    receiver.plan.append(status(500))
    now = 10.0**9
    async with desk_at(tmp_path, receiver) as desk:
        await desk.webhooks.add(ME, receiver.url)
        await fire(desk)
        async with sending(desk, now=lambda: now):
            await until_postponed(desk, 1)
        now -= 10 * DAY
        async with sending(desk, now=lambda: now):
            await arrived(receiver, 2)


@awaited
async def test_attack_webhook_whose_name_leads_into_a_private_network_later(tmp_path: Path, receiver: Receiver) -> None:
    async def rebound(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with desk_at(tmp_path) as desk:
        await desk.webhooks.add(ME, f"https://hooks.example:{receiver.port}/")
        async with sending(desk, Schedule(waits=(60,)), Outbound(resolve=rebound)):
            await fire(desk)
            while not await waiting(desk):
                await asyncio.sleep(0.005)
            await until_postponed(desk, 1)
            assert "not public" in (await waiting(desk))[0].reason
    assert receiver.connections == 0


# Who sends


@pytest.mark.parametrize("settings", [{"READ_ONLY": "1"}, {"AS_OF": "2026-03-02T15:00:00Z"},
                                      {"AS_OF": "2026-03-02T15:00:00Z", "SCENARIO": "one", "TRADE": "1"}])  # fmt: skip
@awaited
async def test_a_desk_that_is_read_only_or_at_another_clock_sends_nothing_and_changes_nothing(
    tmp_path: Path, receiver: Receiver, settings: dict[str, str]
) -> None:
    async with desk_at(tmp_path, receiver) as desk:
        hook, _ = await desk.webhooks.add(ME, receiver.url)
        await fire(desk)
    async with desk_at(tmp_path, receiver, **settings) as desk:
        async with sending(desk) as sender:
            await until(lambda: sender.status.state is WorkState.OFF, "the sender to end")
        with pytest.raises(Refused):
            await desk.webhooks.add(ME, receiver.url)
        with pytest.raises(Refused):
            await desk.webhooks.remove(ME, hook.id)
    assert receiver.connections == 0


@awaited
async def test_one_of_two_senders_works_and_the_other_takes_over(
    tmp_path: Path, receiver: Receiver, where: dict[str, str]
) -> None:
    async with desk_at(tmp_path, receiver, **where) as one, desk_at(tmp_path, receiver, **where) as two:
        await one.webhooks.add(ME, receiver.url)
        async with sending(two) as second:
            async with sending(one) as first:
                await until(
                    lambda: {first.status.state, second.status.state} == {WorkState.WORKING, WorkState.STANDING_BY},
                    "both",
                )
                bodies = [await fire(each) for each in (one, two, one, two)]
                await arrived(receiver, 4)
                await nothing_waits(one)
            bodies.append(await fire(one))
            await arrived(receiver, 5)
    assert [each.json()["data"] for each in receiver.seen] == bodies


@awaited
async def test_a_removed_webhook_gets_nothing_more(tmp_path: Path, receiver: Receiver) -> None:
    receiver.otherwise = status(500)
    async with desk_at(tmp_path, receiver) as desk:
        hook, _ = await desk.webhooks.add(ME, receiver.url)
        async with sending(desk, Schedule(waits=(60,))) as sender:
            await fire(desk)
            await arrived(receiver, 1)
            with pytest.raises(NoSuchWebhook):
                await desk.webhooks.remove("other", hook.id)
            await desk.webhooks.remove(ME, hook.id)
            await until(lambda: sender.status.detail == "no webhooks", "the sender to rest")
            receiver.otherwise = None
            await desk.webhooks.add(ME, f"{receiver.url}/new")
            await fire(desk)
            await arrived(receiver, 2)
    assert [each.path for each in receiver.seen] == ["/", "/new"]


# Adding, and secrets


@awaited
async def test_what_cannot_be_a_webhook_is_refused(tmp_path: Path, receiver: Receiver) -> None:
    async with desk_at(tmp_path, receiver) as desk:
        for url in ("http://example.com/", "https://10.0.0.1/", "https://user:secret@example.com/", "nonsense"):
            with pytest.raises(OutboundRefused):
                await desk.webhooks.add(ME, url)
        with pytest.raises(InvalidParameter, match="no event 'order'"):
            await desk.webhooks.add(ME, receiver.url, ["order"])
        with pytest.raises(InvalidParameter):
            await desk.webhooks.add_inbound(ME, "../\x00")
        for _ in range(50):
            await desk.webhooks.add(ME, receiver.url)
        with pytest.raises(Refused, match="50 webhooks"):
            await desk.webhooks.add(ME, receiver.url)
        await desk.webhooks.add("other", receiver.url)


@awaited
async def test_secrets_are_neither_logged_nor_in_the_ledger(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.plan += [status(500), receivers.hang_up(), status(410)]
    async with desk_at(tmp_path, receiver) as desk:
        hook, secret = await desk.webhooks.add(ME, f"{receiver.url}/t0ken-in-the-path")
        _, other = await desk.webhooks.add_inbound(ME, "tradingview")
        async with sending(desk, QUICK):
            await fire(desk)
            await arrived(receiver, 3)
            await nothing_waits(desk)
        ledger = await desk.trading.records.read(lambda view: "".join(each.body for each in entries(view.connection)))
        own = "".join(each.getMessage() for each in caplog.records if each.name.startswith("openbell"))
        assert "gave up" in own
        for text in (ledger, own, repr(hook), repr(await desk.webhooks.list(ME)), repr(await desk.webhooks.dead(ME))):
            for each in (secret, other, "t0ken-in-the-path"):
                assert each not in text
        kept = await desk.trading.records.read(lambda view: queries.of_principal(view, ME))
        assert other not in {each.secret for each in kept}, "the secret of an inbound webhook is stored hashed"
