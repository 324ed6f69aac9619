"""Processes that are killed while they send: every event arrives at least once, always with the same id, and in order."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from openbell.gateway.outbound import Outbound
from openbell.gateway.webhooks.sender import WebhookSender
from tests.client import OPENBELL, PATIENCE, environment, run
from tests.counts import runs
from tests.desk.trading.child import Fork, Say, desk_of
from tests.gateway import receivers
from tests.gateway.receivers import Receiver, Seen
from tests.gateway.webhooks.desks import ME, QUICK, desk_at, fire
from tests.prefork import Process
from tests.waiting import wait_for

KILLS = runs(6, soak=200)
SEED = int(os.environ.get("OPENBELL_SEED", "20260105"))


async def send(say: Say, settings: dict[str, str]) -> None:
    """Run a sender until it is killed."""
    desk = desk_of(settings)
    say("ready")
    await WebhookSender(desk, Outbound(trusted=desk.settings.trusted_origins), QUICK).run()


def test_a_killed_sender_loses_nothing_and_keeps_ids_and_order(tmp_path: Path, receiver: Receiver) -> None:
    chance = random.Random(SEED)
    settings = {"HOME": str(tmp_path), "FEED": "sim", "WEBHOOK_ORIGINS": receiver.url}
    bodies: list[Mapping[str, Any]] = []

    async def record(count: int) -> None:
        async with desk_at(tmp_path, receiver) as desk:
            if not bodies:
                await desk.webhooks.add(ME, receiver.url)
            bodies.extend([await fire(desk) for _ in range(count)])

    for _ in range(KILLS):
        asyncio.run(record(5))
        # The answer to one of the requests is missing when the process is killed: it cannot be recorded as arrived.
        receiver.plan += [receivers.status(200)] * chance.randrange(4) + [receivers.silence()]
        wanted = len(receiver.seen) + len(receiver.plan)
        with Fork(send, settings) as sender:
            wait_for(lambda: len(receiver.seen) >= wanted, "the request whose answer is missing")  # noqa: B023
            sender.kill()
        receiver.plan.clear()
    with Fork(send, settings):
        wait_for(lambda: receiver.seen[-1].json()["data"] == bodies[-1], "the last event")
    check(receiver.seen, bodies)
    assert len(receiver.seen) >= len(bodies) + KILLS


def check(seen: list[Seen], bodies: Sequence[object]) -> None:
    """Every event arrived, in order but for repeats of the last one, each with one id and one body."""
    first = list({each.headers["openbell-delivery"]: each for each in seen}.values())
    assert [each.json()["data"] for each in first] == bodies
    assert len({each.body for each in seen}) == len(bodies)
    for before, after in pairwise(seen):
        numbers = [bodies.index(each.json()["data"]) for each in (before, after)]
        assert numbers[1] - numbers[0] in {0, 1}


@contextmanager
def up(home: Path, receiver: Receiver) -> Iterator[Process]:
    """`openbell up`, killed at the end of the block."""
    settings = environment(home, WEBHOOK_ORIGINS=receiver.url)
    process = Process([*OPENBELL, "up"], env=settings, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def test_the_whole_desk_sends_and_sends_again_after_a_kill(tmp_path: Path, receiver: Receiver) -> None:
    added = run(tmp_path, "webhook", "add", receiver.url, "--events", "alert", WEBHOOK_ORIGINS=receiver.url)
    assert added.returncode == 0, added.stderr

    async def record() -> object:
        async with desk_at(tmp_path, receiver) as desk:
            return await fire(desk)

    first = asyncio.run(record())
    receiver.plan.append(receivers.silence())
    with up(tmp_path, receiver):
        wait_for(lambda: len(receiver.seen) == 1, "the first request")
    with up(tmp_path, receiver):
        wait_for(lambda: len(receiver.seen) == 2, "the same request")
        second = asyncio.run(record())
        wait_for(lambda: len(receiver.seen) == 3, "the event that another process recorded")
    check(receiver.seen, [first, second])
    assert receiver.seen[0].body == receiver.seen[1].body
