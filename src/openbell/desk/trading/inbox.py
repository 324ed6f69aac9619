"""The inbox and what is pushed from it.

A notification is in the inbox from the transaction that fired its alert on, and stays. A plain reader takes out what is
unseen. One that must not miss anything names the cursor of the last it has dealt with: that much is acknowledged, and what
came after is told again until it is. What a subscriber was not there to receive waits an hour, at most a thousand of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Connection

from openbell.market.clock import Clock
from openbell.market.errors import StoreError
from openbell.stores.records import alerts as queries
from openbell.stores.records.alerts import Notification, Subscription
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.alerts import Alert
from openbell.trading.inbox import METHOD, Filter

log = logging.getLogger(__name__)

_POLL = 0.5
"""Seconds after which what another process has fired is looked for."""
Send = Callable[[str, dict[str, Any]], Awaitable[None]]


class Inbox:
    """Notifications and subscriptions of principals."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._fired = asyncio.Event()

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

    async def take(
        self, principal: str, *, cursor: int | None, limit: int, wait: float, peek: bool
    ) -> tuple[list[Notification], int]:
        """Notifications, oldest first, and how many are unseen after that; waits for the first one for so long.

        Without a cursor: the unseen ones, which are seen then, unless one only peeks. With one: those after it, all up
        to it being acknowledged.
        """
        deadline = time.monotonic() + wait
        while True:
            fired = self._fired
            found = await self._take(principal, cursor, limit, peek)
            left = deadline - time.monotonic()
            if found[0] or left <= 0:
                return found
            try:
                await asyncio.wait_for(fired.wait(), min(_POLL, left))
            except TimeoutError:
                continue

    async def _take(self, principal: str, cursor: int | None, limit: int, peek: bool) -> tuple[list[Notification], int]:
        until = self._clock.epoch()

        def look(connection: Connection) -> tuple[list[Notification], int]:
            if cursor is None:
                found = queries.unseen(connection, principal, limit, until)
            else:
                found = queries.after(connection, principal, cursor, limit, until)
            return found, _unseen_after(connection, principal, found, until)

        def work(journal: Journal) -> tuple[list[Notification], int]:
            found, _ = look(journal.connection)
            through = cursor if cursor is not None else (found[-1].cursor if found else 0)
            queries.acknowledge(journal.connection, principal, through)
            return found, _unseen_after(journal.connection, principal, found, until)

        found = await self._records.read(look)
        if peek or (not found[0] and cursor is None):
            return found
        return await self._records.write(work)

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
        """Send what is queued for a principal, and what will be, until cancelled."""
        while True:
            fired = self._fired
            try:
                for each in await self._claim(principal):
                    await send(METHOD, each.body)
            except StoreError as error:
                log.warning("pushes wait: %s", error)
            try:
                await asyncio.wait_for(fired.wait(), _POLL)
            except TimeoutError:
                continue

    async def _claim(self, principal: str) -> list[Notification]:
        now = time.time()
        if not await self._records.read(lambda connection: queries.queued(connection, principal, now)):
            return []
        return await self._records.write(lambda journal: queries.claim(journal.connection, principal, now))


def _unseen_after(connection: Connection, principal: str, told: list[Notification], until: float) -> int:
    """How many are unseen besides those that are being told: with a cursor they stay unseen until acknowledged."""
    count = queries.unseen_count(connection, principal, until)
    if not count or not told:
        return count
    return sum(each.cursor > told[-1].cursor for each in queries.unseen(connection, principal, count, until))
