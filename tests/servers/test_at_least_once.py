"""What an answer hands out counts as handed out when the answer has left, not before."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.protocol.service import Runner
from openbell.protocol.session import LOCAL_OPERATOR, Afterwards, Replies, Session, no_notifications
from openbell.servers import load as server
from openbell.stores.records.alerts import Notification

SET, FIRED = "2025-09-19T15:00:00Z", "2025-09-19T16:00:00Z"


async def ask(home: Path, at: str, tool: str, given: dict[str, Any], replies: Replies) -> dict[str, Any]:
    desk = Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_AS_OF": at, "OPENBELL_TRADE": "1"}))
    try:
        await desk.trading.catch_up()
        reply = await Runner(server("chartgen"), desk).run(
            tool, given, Session(LOCAL_OPERATOR, no_notifications, replies)
        )
        assert not reply.is_error, reply.payload
        await replies.sent(None)
        payload: dict[str, Any] = reply.payload
        return payload
    finally:
        await desk.trading.close()


class Lost(Replies):
    """Takes what should follow the answer and forgets it, as a process does that dies with the answer in its hands."""

    def hold(self, _request: Any, _work: Afterwards) -> None:
        return


def test_a_notification_whose_answer_never_left_is_told_again(tmp_path: Path) -> None:
    async def play() -> list[int]:
        await ask(tmp_path, SET, "set_alert", {"symbol": "BTC/USD", "condition": {"price_above": 1}}, Replies())
        ways = [Lost(), Lost(), Replies(), Replies()]
        told = [await ask(tmp_path, FIRED, "get_notifications", {}, replies) for replies in ways]
        return [len(each["notifications"]) for each in told]

    assert asyncio.run(play()) == [1, 1, 1, 0]


def test_a_call_returns_nothing_that_the_answer_before_it_is_about_to(tmp_path: Path) -> None:
    """It waits until that answer has left, and then returns what comes after."""

    async def play() -> tuple[list[Notification], list[Notification], list[Notification]]:
        for _ in range(2):
            await ask(tmp_path, SET, "set_alert", {"symbol": "BTC/USD", "condition": {"price_above": 1}}, Replies())
        desk = Desk(load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_AS_OF": FIRED, "OPENBELL_TRADE": "1"}))
        try:
            await desk.trading.catch_up()
            reader = desk.trading.inbox.reader(LOCAL_OPERATOR.subject)
            first, _, left = await reader.take(1, 0.0)
            second = asyncio.create_task(reader.take(1, 0.0))
            waits, _ = await asyncio.wait({second}, timeout=0.3)
            assert not waits
            await left()
            everything, _ = await desk.trading.inbox.look(LOCAL_OPERATOR.subject)
            return first, (await second)[0], everything
        finally:
            await desk.trading.close()

    first, second, everything = asyncio.run(play())
    assert len(everything) == 2
    assert first + second == everything


def test_work_waits_for_its_own_answer_and_is_done_once() -> None:
    done: list[str] = []

    async def play() -> None:
        replies = Replies()

        async def work(name: str) -> None:
            done.append(name)

        replies.hold(1, lambda: work("one"))
        replies.hold("1", lambda: work("text"))
        replies.hold(2, lambda: work("two"))
        await replies.sent(3)
        assert done == []
        await replies.sent(1)
        await replies.sent(1)
        replies.discard(2)
        await replies.sent(2)

    asyncio.run(play())
    assert done == ["one"]


def test_work_that_fails_keeps_nothing_else_from_being_done() -> None:
    done: list[str] = []

    async def play() -> None:
        replies = Replies()

        async def fail() -> None:
            raise RuntimeError

        async def work() -> None:
            done.append("done")

        replies.hold(1, fail)
        replies.hold(1, work)
        await replies.sent(1)

    asyncio.run(play())
    assert done == ["done"]
