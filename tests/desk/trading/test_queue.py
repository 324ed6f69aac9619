"""The queue of pushes for principals without a connection."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from openbell.market.clock import FixedClock
from openbell.stores.records import alerts as queries
from openbell.stores.records.head import HeadFile
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.sqlite import SqliteDatabase
from openbell.trading.alerts import Alert, Type
from openbell.trading.inbox import QUEUE_MOST, QUEUE_SECONDS

NOW = 1_760_000_000.0


def records_in(folder: Path) -> Records:
    return Records(SqliteDatabase(folder / "records.sqlite"), HeadFile(folder / "head"), FixedClock(NOW))


def alert(number: int, principal: str = "me") -> Alert:
    return Alert(f"{principal}{number}", principal, "BTC/USD", "BTC/USD", "1m", Type.PRICE_ABOVE, NOW)


def test_the_newest_thousand_are_queued(tmp_path: Path) -> None:
    def fill(journal: Journal) -> None:
        for number in range(QUEUE_MOST + 7):
            queries.enqueue(journal.view, alert(number), number + 1, {"number": number}, NOW)
        queries.enqueue(journal.view, alert(0, "other"), 1, {"number": -1}, NOW)

    async def play() -> tuple[list[Any], list[Any]]:
        records = records_in(tmp_path)
        await records.write(fill)
        await records.close()
        again = records_in(tmp_path)
        mine = await again.read(lambda connection: queries.queued(connection, "me", 0, NOW + 1))
        others = await again.read(lambda connection: queries.queued(connection, "other", 0, NOW + 1))
        await again.close()
        return [each.body["number"] for each in mine], [each.body["number"] for each in others]

    mine, others = asyncio.run(play())
    assert mine == list(range(7, QUEUE_MOST + 7))
    assert others == [-1]


def test_a_push_is_queued_for_at_most_an_hour(tmp_path: Path) -> None:
    async def play() -> list[int]:
        records = records_in(tmp_path)
        await records.write(lambda journal: queries.enqueue(journal.view, alert(1), 1, {}, NOW))
        counts = []
        for later in (0.0, QUEUE_SECONDS - 1.0, QUEUE_SECONDS + 1.0):
            moment = NOW + later
            counts.append(len(await records.read(lambda c: queries.queued(c, "me", 0, moment))))  # noqa: B023
        await records.close()
        return counts

    assert asyncio.run(play()) == [1, 1, 0]
