"""The queue of pushes for principals without a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from openbell.desk.alerts.inbox import Inbox
from openbell.desk.events.hub import Hub, NotificationAdded
from openbell.market.clock import FixedClock
from openbell.signals.crossing_alerts import METHOD as SIGNALS
from openbell.stores.records import alerts as queries
from openbell.stores.records.alerts import Notification
from openbell.stores.records.journal import Journal
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.records import Records
from openbell.stores.records.sqlite import SqliteDatabase
from openbell.stores.records.tables import ledger
from openbell.trading.alerts import ALERT_TRIGGERED, QUEUE_MOST, QUEUE_SECONDS, Alert, AlertFilter, Type
from tests.waiting import PATIENCE, until

NOW = 1_760_000_000.0


def records_in(folder: Path) -> Records:
    return Records(SqliteDatabase(folder / "records.sqlite"), HeadFile(folder / "head"), FixedClock(NOW))


def alert(number: int, principal: str = "me") -> Alert:
    return Alert(f"{principal}{number}", principal, "BTC/USD", "BTC/USD", "1m", Type.PRICE_ABOVE, NOW)


def test_the_newest_thousand_are_queued(tmp_path: Path) -> None:
    def fill(journal: Journal) -> None:
        for number in range(QUEUE_MOST + 7):
            queries.enqueue(journal.view, "me", f"me{number}", Notification(number + 1, {"number": number}), NOW)
        queries.enqueue(journal.view, "other", "other0", Notification(1, {"number": -1}), NOW)
        for number in range(3):  # of another method: they have a queue of their own
            signal = Notification(number + 1, {"number": number}, SIGNALS)
            queries.enqueue(journal.view, "me", f"sub_1:{number}", signal, NOW)

    async def play() -> list[list[Any]]:
        records = records_in(tmp_path)
        await records.write(fill)
        await records.close()
        again = records_in(tmp_path)
        wanted = (("me", {ALERT_TRIGGERED: 0}), ("other", {ALERT_TRIGGERED: 0, SIGNALS: 0}), ("me", {SIGNALS: 1}))
        found = [await again.read(lambda view: queries.queued(view, *each, NOW + 1)) for each in wanted]  # noqa: B023
        both = await again.read(
            lambda view: queries.queued(view, "me", {ALERT_TRIGGERED: QUEUE_MOST + 5, SIGNALS: 2}, NOW + 1)
        )
        await again.close()
        return [[each.body["number"] for each in group] for group in (*found, both)]

    mine, others, signals, both = asyncio.run(play())
    assert mine == list(range(7, QUEUE_MOST + 7))
    assert others == [-1]
    assert signals == [1, 2]
    assert both == [2, QUEUE_MOST + 5, QUEUE_MOST + 6]


def test_a_push_is_queued_for_at_most_an_hour(tmp_path: Path) -> None:
    async def play() -> list[int]:
        records = records_in(tmp_path)
        await records.write(lambda journal: queries.enqueue(journal.view, "me", "a", Notification(1, {}), NOW))
        counts = []
        for later in (0.0, QUEUE_SECONDS - 1.0, QUEUE_SECONDS + 1.0):
            moment = NOW + later
            counts.append(len(await records.read(lambda c: queries.queued(c, "me", {ALERT_TRIGGERED: 0}, moment))))  # noqa: B023
        await records.close()
        return counts

    assert asyncio.run(play()) == [1, 1, 0]


class CountingInbox(Inbox):
    """Counts how often its connections have read the queue."""

    reads = 0

    async def queued(
        self, principal: str, after: Mapping[str, int | None]
    ) -> tuple[list[Notification], dict[str, int]]:
        found = await super().queued(principal, after)
        self.reads += 1
        return found


def test_a_slow_connection_gets_what_a_quick_one_has_had(tmp_path: Path) -> None:
    """How far a principal's pushes have come is where its next connection begins, and nothing to those that are there."""

    async def play() -> tuple[list[str], list[str]]:
        records = records_in(tmp_path)
        hub = Hub()
        inbox = CountingInbox(records, nothing, hub)
        quick: list[str] = []
        slow: list[str] = []
        released = asyncio.Event()

        async def send(_method: str, params: dict[str, Any]) -> None:
            quick.append(params["alert_id"])

        async def send_slowly(_method: str, params: dict[str, Any]) -> None:
            slow.append(params["alert_id"])
            await released.wait()

        async def fire(number: int) -> None:
            def work(journal: Journal) -> None:
                fired = alert(number)
                inbox.deliver(journal, fired, journal.put("alert", fired, new=True), {"alert_id": fired.id}, NOW)

            await records.write(work)
            hub.publish(NotificationAdded())
            await until(lambda: len(quick) == number and bool(slow), "the pushes")
            async with asyncio.timeout(PATIENCE):
                while await moved() < number:
                    await asyncio.sleep(0)

        async def moved() -> int:
            """How often the principal's cursor has moved."""
            return await records.read(
                lambda view: view.execute(select(func.count()).where(ledger.c.kind == "cursors")).scalar_one()
            )

        await inbox.subscribe("me", AlertFilter())
        connections = [asyncio.create_task(inbox.push("me", each)) for each in (send, send_slowly)]
        await until(lambda: inbox.reads == 2, "both connections to begin")
        for number in (1, 2):
            await fire(number)
        released.set()
        await until(lambda: len(slow) == 2, "what the slow one has missed")
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await records.close()
        return quick, slow

    quick, slow = asyncio.run(play())
    assert quick == slow == ["me1", "me2"]


async def nothing() -> None:
    """There is nothing to bring up to date."""
