"""What was pushed is recorded for many principals in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from openbell.desk.alerts.inbox import Inbox
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.gateway.streamable.channels import Recorder
from openbell.stores.records.journal import Journal
from openbell.stores.records.webhooks import deliver_to_inbox
from openbell.trading.alerts import ALERT_TRIGGERED

PEOPLE = [f"person-{number}" for number in range(21)]


class Noted(Inbox):
    """The desk's inbox; keeps what each transaction has recorded."""

    written: list[dict[tuple[str, str], int]]

    async def record_pushed(self, cursors: Mapping[tuple[str, str], int]) -> None:
        self.written.append(dict(cursors))
        await super().record_pushed(cursors)


async def nothing_is_due() -> None:
    """Alerts that are due fire here; there are none."""


def test_records_that_wait_for_a_transaction_share_the_next_one(tmp_path: Path) -> None:
    def notified(journal: Journal) -> dict[str, int]:
        return {each: deliver_to_inbox(journal, each, {"alert_id": f"in_{each}"}) for each in PEOPLE}

    async def main() -> None:
        async with Desk(load({"OPENBELL_HOME": str(tmp_path)}, trade=True)) as desk:
            inbox = Noted(desk.trading.records, nothing_is_due, desk.hub)
            inbox.written = []
            recorder = Recorder()
            cursors = await desk.trading.records.write(notified)
            first, *others = PEOPLE

            async def while_the_first_is_written() -> None:
                while not inbox.written:
                    await asyncio.sleep(0)
                await asyncio.gather(
                    *(recorder.record(inbox, each, {ALERT_TRIGGERED: cursors[each]}) for each in others)
                )

            await asyncio.gather(
                recorder.record(inbox, first, {ALERT_TRIGGERED: cursors[first]}), while_the_first_is_written()
            )
            assert inbox.written == [
                {(first, ALERT_TRIGGERED): cursors[first]},
                {(each, ALERT_TRIGGERED): cursors[each] for each in others},
            ]
            recorded = {
                each: (await inbox.queued(each, {ALERT_TRIGGERED: None}))[1][ALERT_TRIGGERED] for each in PEOPLE
            }
            assert recorded == cursors

    asyncio.run(main())
