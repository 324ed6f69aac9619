"""The inbox and what is pushed from it.

A notification is in the inbox from the transaction that fired its alert on, and stays. A plain reader takes out what is
unseen: it counts as seen when the answer has left this process. One that must not miss anything names the cursor of the last
it has dealt with: that much is acknowledged, and what came after is told again until it is. What a subscriber was not there
to receive waits an hour, at most a thousand of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection

from openbell.market.clock import Clock
from openbell.market.errors import StoreError
from openbell.stores.records import alerts as queries
from openbell.stores.records.alerts import Notification, Subscription
from openbell.stores.records.records import Records
from openbell.trading.alerts import Alert
from openbell.trading.inbox import METHOD, Filter

log = logging.getLogger(__name__)

_HANDING_SECONDS = 2.0
_POLL = 0.5
"""Seconds after which what another process has fired is looked for."""
Send = Callable[[str, dict[str, Any]], Awaitable[None]]


class Inbox:
    """Notifications and subscriptions of principals."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._fired = asyncio.Event()
        self._handing: dict[str, asyncio.Event] = {}
        """Whose notifications are on their way out: they count as seen when the answer has left."""

    def deliver(self, connection: Connection, alert: Alert, cursor: int, body: dict[str, Any], at: float) -> None:
        """Put a notification into its owner's inbox, and into the queue of pushes if that is wanted."""
        queries.deliver(connection, alert, cursor, body, at)
        subscription = queries.subscription(connection, alert.principal)
        if subscription is not None and subscription.filter.takes(alert):
            queries.enqueue(connection, alert, cursor, body, time.time())

    def wake(self) -> None:
        """Tell those who wait in this process that something is there."""
        self._fired.set()
        self._fired = asyncio.Event()

    async def look(
        self, principal: str, *, cursor: int | None = None, limit: int = 100, wait: float = 0.0
    ) -> tuple[list[Notification], int]:
        """Notifications, oldest first, and how many unseen ones come after; waits for the first one for so long.

        Without a cursor: the unseen ones; with one: those after it.
        """
        await self._until_handed_out(principal)
        deadline = time.monotonic() + wait
        while True:
            fired = self._fired
            found = await self._look(principal, cursor, limit)
            left = deadline - time.monotonic()
            if found[0] or left <= 0:
                return found
            try:
                await asyncio.wait_for(fired.wait(), min(_POLL, left))
            except TimeoutError:
                continue

    async def acknowledge(self, principal: str, through: int) -> None:
        """All up to a cursor was dealt with."""
        until = self._clock.epoch()
        await self._records.write(lambda journal: queries.acknowledge(journal.connection, principal, through, until))

    def hand_out(self, principal: str, through: int) -> Callable[[], Awaitable[None]]:
        """What makes all up to a cursor seen, once the answer that tells of it has left. Who looks meanwhile waits."""
        done = self._handing[principal] = asyncio.Event()

        async def left() -> None:
            try:
                await self.acknowledge(principal, through)
            finally:
                done.set()

        return left

    async def _until_handed_out(self, principal: str) -> None:
        """Bounded: an answer that never leaves, because it was cancelled, must not be waited for."""
        on_its_way = self._handing.pop(principal, None)
        if on_its_way is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(on_its_way.wait(), _HANDING_SECONDS)

    async def _look(self, principal: str, cursor: int | None, limit: int) -> tuple[list[Notification], int]:
        until = self._clock.epoch()

        def work(connection: Connection) -> tuple[list[Notification], int]:
            if cursor is None:
                found = queries.unseen(connection, principal, limit, until)
            else:
                found = queries.after(connection, principal, cursor, limit, until)
            last = found[-1].cursor if found else (cursor or 0)
            return found, queries.unseen_count(connection, principal, last, until)

        return await self._records.read(work)

    # Subscriptions

    async def subscribe(self, principal: str, wanted: Filter) -> Subscription:
        """Set what is pushed to a principal, instead of what was."""
        at = round(self._clock.epoch(), 3)
        await self._records.write(lambda journal: queries.subscribe(journal.connection, principal, wanted, at))
        return Subscription(wanted, at)

    async def unsubscribe(self, principal: str) -> bool:
        """End it; whether there was one."""
        return await self._records.write(lambda journal: queries.unsubscribe(journal.connection, principal))

    async def subscription(self, principal: str) -> tuple[Subscription | None, int]:
        """What is pushed to a principal, and how much waits to be."""

        def work(connection: Connection) -> tuple[Subscription | None, int]:
            queued = queries.queued(connection, principal, time.time())
            return queries.subscription(connection, principal), len(queued)

        return await self._records.read(work)

    async def push(self, principal: str, send: Send) -> None:
        """Send what is queued for a principal, and what will be, until cancelled; it leaves the queue when it was sent."""
        while True:
            fired = self._fired
            try:
                await self._push(principal, send)
            except StoreError as error:
                log.warning("pushes wait: %s", error)
            try:
                await asyncio.wait_for(fired.wait(), _POLL)
            except TimeoutError:
                continue

    async def _push(self, principal: str, send: Send) -> None:
        now = time.time()
        queued = await self._records.read(lambda connection: queries.queued(connection, principal, now))
        if not queued:
            return
        for each in queued:
            await send(METHOD, each.body)
        through = queued[-1].cursor
        await self._records.write(lambda journal: queries.dequeue(journal.connection, principal, through))
