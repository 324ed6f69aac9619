"""The inbox and what is pushed from it.

A notification is in the inbox from the transaction that fired its alert on, and stays. Each connection reads the inbox with
a cursor of its own (`Reader`), which begins where its principal has read to and moves on when an answer has left this
process. So two clients of one principal each get every notification, in order, and one client gets it once. A client that
must not miss anything passes the cursor of the last notification that it has dealt with: that much is acknowledged, and what
came after is returned again until it is. What a subscriber was not there to receive waits an hour, at most a thousand of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from openbell.desk.events import Hub, Listener, NotificationAdded
from openbell.market.errors import OpenbellError, Refused
from openbell.stores.records import alerts as queries
from openbell.stores.records.alerts import Notification, Subscription
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.view import View
from openbell.trading.alerts import Alert
from openbell.trading.inbox import METHOD, Filter

log = logging.getLogger(__name__)

_HANDING_SECONDS = 2.0
_RETRY_SECONDS = 1.0
"""Seconds until the queue of pushes is read again after a failure."""
Send = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification to one client: method and parameters. Raises `OSError` if the client is gone."""


class Inbox:
    """Notifications and subscriptions of principals."""

    def __init__(self, records: Records, settle: Callable[[], Awaitable[None]], hub: Hub) -> None:
        """`settle` applies the bars that have closed first: a subscription is about alerts that fire after it."""
        self._records = records
        self._settle = settle
        self.hub = hub

    def reader(self, principal: str) -> Reader:
        """A principal's inbox as a new connection reads it."""
        return Reader(self, principal)

    def deliver(self, journal: Journal, alert: Alert, cursor: int, body: dict[str, Any], at: float) -> None:
        """Put a notification into its owner's inbox, and into the queue of pushes if that is wanted."""
        queries.deliver(journal.view, alert, cursor, body, at)
        subscription = queries.subscription(journal.view, alert.principal)
        if subscription is not None and subscription.filter.takes(alert):
            queries.enqueue(journal.view, alert, cursor, body, time.time())

    async def look(self, principal: str, after: int = 0, limit: int = 100) -> tuple[list[Notification], int]:
        """Notifications after a cursor, oldest first, and how many come after these."""

        def work(view: View) -> tuple[list[Notification], int]:
            found = queries.notifications(view, principal, after, limit)
            return found, queries.count_after(view, principal, found[-1].cursor if found else after)

        return await self._records.read(work)

    async def seen(self, principal: str) -> int:
        """How far a principal has read."""
        return (await self._records.read(lambda view: queries.cursors_of(view, principal))).seen

    async def acknowledge(self, principal: str, through: int) -> None:
        """Note that everything up to a cursor was dealt with."""
        if through > await self.seen(principal):
            await self._move_cursors(principal, seen=through)

    async def _move_cursors(self, principal: str, *, seen: int = 0, pushed: int = 0) -> None:
        # A scenario that has gone on further than this clock is only read: what was read of it is not noted.
        with suppress(Refused):
            await self._records.write(
                lambda journal: queries.move_cursors(journal, principal, seen=seen, pushed=pushed)
            )

    # Subscriptions

    async def subscribe(self, principal: str, wanted: Filter) -> Subscription:
        """Set what is pushed to a principal, instead of what was."""
        await self._settle()
        return await self._records.write(lambda journal: queries.subscribe(journal, principal, wanted))

    async def unsubscribe(self, principal: str) -> bool:
        """End it; whether there was one."""
        await self._settle()
        return await self._records.write(lambda journal: queries.unsubscribe(journal, principal))

    async def subscription(self, principal: str) -> tuple[Subscription | None, int]:
        """What is pushed to a principal, and how much waits to be."""

        def work(view: View) -> tuple[Subscription | None, int]:
            pushed = queries.cursors_of(view, principal).pushed
            return queries.subscription(view, principal), len(queries.queued(view, principal, pushed, time.time()))

        return await self._records.read(work)

    async def push(self, principal: str, send: Send) -> None:
        """Send one connection what waits for its principal and what will be fired, until cancelled or it is gone.

        Each connection gets every notification: it begins with those that no connection was there for.
        """
        with self.hub.listen(NotificationAdded) as added:
            await self._push(principal, send, added)

    async def _push(self, principal: str, send: Send, added: Listener) -> None:
        after: int | None = None
        noted: int | None = None
        while True:
            failed = False
            try:
                waiting, after = await self._queued(principal, after)
                noted = after if noted is None else noted
                for each in waiting:
                    await send(METHOD, each.body)
                    after = each.cursor
                if after > noted:
                    await self._move_cursors(principal, pushed=after)
                    noted = after
            except OSError as error:
                log.info("pushes to a client end: %s", error)
                return
            except OpenbellError as error:
                log.warning("pushes wait: %s", error)
                failed = True
            await added.wait(_RETRY_SECONDS if failed else None)

    async def _queued(self, principal: str, after: int | None) -> tuple[list[Notification], int]:
        """What waits to be pushed after a cursor, and that cursor; None: where the principal's pushes have come to."""
        now = time.time()

        def work(view: View) -> tuple[list[Notification], int]:
            start = queries.cursors_of(view, principal).pushed if after is None else after
            return queries.queued(view, principal, start, now), start

        return await self._records.read(work)


class Reader:
    """One connection's reading of its principal's inbox."""

    def __init__(self, inbox: Inbox, principal: str) -> None:
        self._inbox = inbox
        self._principal = principal
        self._cursor: int | None = None
        """The last notification that has left for this connection; None: it begins where its principal is."""
        self._reading = asyncio.Lock()
        self._handing: asyncio.Event | None = None
        """Set when the answer that is on its way has left, or never will."""

    async def take(self, limit: int, wait: float) -> tuple[list[Notification], int, Callable[[], Awaitable[None]]]:
        """What this connection has not had, how much comes after it, and what to await once the answer has left.

        Calls at the same time take turns: none returns what another is about to.
        """
        done = asyncio.Event()

        async def look() -> tuple[list[Notification], int]:
            async with self._reading:
                await self._until_handed_out()
                found = await self._inbox.look(self._principal, await self._begin(), limit)
                if found[0]:
                    self._handing = done
                return found

        found, more = await self._wait_for(look, wait)
        through = found[-1].cursor if found else 0

        async def left() -> None:
            self._cursor = max(self._cursor or 0, through)
            try:
                await self._inbox.acknowledge(self._principal, through)
            finally:
                done.set()  # a client that has its next answer knows that this one is noted

        return found, more, left

    async def peek(self, after: int | None, limit: int, wait: float) -> tuple[list[Notification], int]:
        """Notifications after a cursor, or those that were not had yet; takes nothing out."""
        start = after
        if start is None:
            start = await self._inbox.seen(self._principal) if self._cursor is None else self._cursor
        return await self._wait_for(lambda: self._inbox.look(self._principal, start, limit), wait)

    async def begin(self) -> None:
        """Begin where the principal is now: what comes from here on is for this connection too, whoever else reads it."""
        if self._cursor is None:
            async with self._reading:
                await self._begin()

    async def _begin(self) -> int:
        """Where this connection's reading stands; call it with the lock."""
        if self._cursor is None:
            self._cursor = await self._inbox.seen(self._principal)
        return self._cursor

    async def acknowledge(self, through: int) -> None:
        """Note that everything up to a cursor was dealt with: this connection has had it."""
        await self._inbox.acknowledge(self._principal, through)
        self._cursor = max(self._cursor or 0, min(through, await self._inbox.seen(self._principal)))

    async def _wait_for(
        self, look: Callable[[], Awaitable[tuple[list[Notification], int]]], wait: float
    ) -> tuple[list[Notification], int]:
        """Look until there is something, for so many seconds."""
        deadline = time.monotonic() + wait
        if wait <= 0:
            return await look()
        with self._inbox.hub.listen(NotificationAdded) as added:
            while True:
                found = await look()
                left = deadline - time.monotonic()
                if found[0] or left <= 0:
                    return found
                await added.wait(left)

    async def _until_handed_out(self) -> None:
        """Bounded: an answer that never leaves, because it was cancelled, must not be waited for."""
        if self._handing is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._handing.wait(), _HANDING_SECONDS)
