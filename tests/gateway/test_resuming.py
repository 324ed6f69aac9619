"""A client whose connection was closed gets the rest of a response, whenever its events are added."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

from openbell.gateway.streamable.exchange import resume
from openbell.gateway.streamable.sessions import StreamLog

PATIENCE = 10.0


async def resumed(log: StreamLog, number: int, during: Callable[[bytes], None] = lambda _body: None) -> list[bytes]:
    """The data of the events that a client gets; `during` runs while each part is sent."""
    parts: list[bytes] = []

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        during(message.get("body", b""))
        await asyncio.sleep(0)
        parts.append(message.get("body", b""))

    async with asyncio.timeout(PATIENCE):
        await resume(log, number, receive, send)
    return [part.split(b"data: ")[1].strip() for part in parts if b"data: " in part]


def test_only_later_events_are_sent_with_their_ids() -> None:
    async def main() -> None:
        log = StreamLog()
        ids = [log.add(word, last=word == b"three") for word in (b"one", b"two", b"three")]
        assert ids == [log.name(number) for number in (1, 2, 3)]
        assert await resumed(log, 1) == [b"two", b"three"]
        assert await resumed(log, 3) == []

    asyncio.run(main())


def test_an_event_that_is_added_while_another_is_sent_is_not_lost() -> None:
    async def main() -> None:
        log = StreamLog()
        log.add(b"one", last=False)

        def during(body: bytes) -> None:
            if b"data: one" in body:
                log.add(b"result", last=True)

        assert await resumed(log, 0, during) == [b"one", b"result"]

    asyncio.run(main())


@pytest.mark.parametrize("turns", range(6))
def test_an_event_that_is_added_just_before_the_wait_ends_it(turns: int) -> None:
    async def main() -> None:
        log = StreamLog()

        async def work() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            log.add(b"result", last=True)

        task = asyncio.create_task(work())
        assert await resumed(log, 0) == [b"result"]
        await task

    asyncio.run(main())


def test_events_that_were_dropped_do_not_shift_the_ids_of_later_ones() -> None:
    async def main() -> None:
        log = StreamLog()
        names = [log.add(b"%d" % number, last=number == 299) for number in range(300)]
        sent: list[bytes] = []
        got = await resumed(log, 0, sent.append)
        assert got == [b"%d" % number for number in range(44, 300)]
        assert [body.split(b"\n")[0] for body in sent if body] == [f"id: {name}".encode() for name in names[44:]]

    asyncio.run(main())
