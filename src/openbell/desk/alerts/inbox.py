"""The inbox of notifications, and pushes from it.

The transaction that fires an alert also puts its notification into the inbox, where it stays. Each connection reads the
inbox with a cursor of its own (`InboxReader`). The cursor starts at the principal's stored cursor, and advances when a
response was sent. So two clients of one principal each get every notification once and in order. A client that must not miss
anything passes the number of the last notification that it has processed: this acknowledges it and all before, and later
ones are returned again until they are acknowledged. Pushes for a principal without a connection wait for an hour, at most
1,000.

The id of an event is the time at which it was queued, in microseconds, and the ledger's name. The time shows a principal
only what its own events show too. A position in the ledger would also show how much others have written between two events.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any

from openbell.desk.events.hub import Hub, Listener, NotificationAdded
from openbell.market.errors import InvalidParameter, OpenbellError, Refused
from openbell.signals.crossing_alerts import METHOD as SIGNALS
from openbell.stores.records import alerts as queries
from openbell.stores.records.alerts import Notification, PushSubscription, microseconds
from openbell.stores.records.journal import Journal, name_of
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading.alerts import ALERT_TRIGGERED, Alert, AlertFilter

log = logging.getLogger(__name__)

_SENDING_SECONDS = 2.0
"""How long a call waits until an earlier response was sent."""
_RETRY_SECONDS = 1.0
"""Seconds until the queue of pushes is read again after a failure."""
_LARGEST_PAGE = 500_000
"""Bytes of notifications that are returned together."""
_LATEST = 2**53
"""Later than every cursor."""
Send = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification to one client: method and parameters. Raises `OSError` if the client is gone."""
_ID = re.compile(r"([0-9a-f]{14})-([0-9a-f]{0,8})")


class Inbox:
    """Notifications and subscriptions of principals."""

    def __init__(
        self,
        records: Records,
        settle: Callable[[], Awaitable[None]],
        hub: Hub,
        truth: Mapping[str, Any] | None = None,
    ) -> None:
        """`settle` applies the bars that have closed: a subscription gets only alerts that fire after it.

        `truth` says of pushes which data they are based on.
        """
        self._truth = dict(truth or {})
        self._records = records
        self._settle = settle
        self.hub = hub

    def reader(self, principal: str) -> InboxReader:
        """Returns a new connection's reader of a principal's inbox."""
        return InboxReader(self, principal)

    def deliver(self, journal: Journal, alert: Alert, cursor: int, body: dict[str, Any], at: float) -> None:
        """Put a notification into its owner's inbox, and into the queue of pushes if the owner has subscribed to it."""
        queries.deliver(journal.view, alert, cursor, body, at)
        subscription = queries.subscription(journal.view, alert.principal)
        if subscription is not None and subscription.filter.takes(alert):
            queries.enqueue(journal.view, alert.principal, alert.id, Notification(cursor, body), time.time())

    async def look(self, principal: str, after: int = 0, limit: int = 100) -> tuple[list[Notification], int]:
        """Returns notifications after a cursor, oldest first, and how many more come after them.

        There are fewer than `limit` if they are large: those of webhooks may have 30 kB each.
        """

        def work(view: View) -> tuple[list[Notification], int]:
            found = _page(queries.notifications(view, principal, after, limit))
            return found, queries.count_after(view, principal, found[-1].cursor if found else after)

        await self._settle()  # a scenario's answer must not depend on whether its engine has run yet
        return await self._records.read(work)

    async def number_of(self, principal: str, cursor: int) -> int:
        """Returns the number of a notification in its owner's inbox, which shows nothing about others."""
        return await self._records.read(queries.number_of, principal, cursor)

    async def numbered(self, principal: str, number: int) -> int:
        """Returns the cursor of a notification by its number in its owner's inbox; 0 is before the first one."""

        def work(view: View) -> int:
            found = queries.numbered(view, principal, number)
            if found is None and view.until is not None:
                return _LATEST  # it may be one that comes after the view's time
            if found is None:
                newest = queries.number_of(view, principal, _LATEST)
                raise InvalidParameter(
                    f"cursor {number} is later than everything in this inbox ({newest}): it belongs to another one, "
                    "for example to a scenario before its reset; use cursor 0"
                )
            return found

        await self._settle()
        return await self._records.read(work)

    async def seen(self, principal: str) -> int:
        """Returns the cursor up to which a principal has read."""
        return (await self._records.read(queries.cursors_of, principal)).seen

    async def acknowledge(self, principal: str, through: int) -> None:
        """Record that a principal has read everything up to a cursor."""
        if through > await self.seen(principal):
            await self._move_cursors(principal, seen=through)

    async def _move_cursors(self, principal: str, *, seen: int = 0, pushed: int = 0) -> None:
        # A scenario that is ahead of this clock cannot be written: its cursors stay.
        with suppress(Refused):
            await self._records.write(partial(queries.move_cursors, principal=principal, seen=seen, pushed=pushed))

    @property
    def replaced(self) -> int:
        """How often another ledger was accepted: cursors of the earlier one are void."""
        return self._records.replaced

    # Subscriptions

    async def subscribe(self, principal: str, wanted: AlertFilter) -> PushSubscription:
        """Set the filter of pushes to a principal; replaces the earlier one."""
        await self._settle()
        return await self._records.write(queries.subscribe, principal, wanted)

    async def unsubscribe(self, principal: str) -> bool:
        """End the pushes to a principal; returns True if there was a subscription."""
        await self._settle()
        return await self._records.write(queries.unsubscribe, principal)

    async def subscription(self, principal: str) -> tuple[PushSubscription | None, int]:
        """Returns a principal's subscription and the number of queued pushes."""

        def work(view: View) -> tuple[PushSubscription | None, int]:
            after = {ALERT_TRIGGERED: queries.cursors_of(view, principal).pushed}
            return queries.subscription(view, principal), len(queries.queued(view, principal, after, time.time()))

        return await self._records.read(work)

    async def record_pushed(self, cursors: Mapping[tuple[str, str], int]) -> None:
        """Record that everything up to a cursor was pushed to a connection, for some principals and methods."""

        def work(journal: Journal) -> None:
            for (principal, method), cursor in cursors.items():
                kind = "signals" if method == SIGNALS else "pushed"
                queries.move_cursors(journal, principal, **{kind: cursor})

        # A scenario that is ahead of this clock cannot be written: its cursors stay.
        with suppress(Refused):
            await self._records.write(work)

    async def push(self, principal: str, send: Send) -> None:
        """Send queued and new notifications to one connection, until cancelled or the connection is closed.

        Each connection gets every notification, starting with those that were not pushed to any connection yet.
        """
        after: int | None = None
        recorded: int | None = None
        replaced = self._records.replaced

        async def send_waiting() -> None:
            nonlocal after, recorded, replaced
            if self._records.replaced != replaced:  # cursors of another ledger
                replaced, after, recorded = self._records.replaced, None, None
            waiting, start = await self.queued(principal, {ALERT_TRIGGERED: after})
            after = start[ALERT_TRIGGERED]
            recorded = after if recorded is None else recorded
            for each in waiting:
                await send(ALERT_TRIGGERED, self.pushed(each.body))
                after = each.cursor
            if after > recorded:
                await self._move_cursors(principal, pushed=after)
                recorded = after

        try:
            with self.hub.listen(NotificationAdded) as added:
                await self.read_queue(added, send_waiting)
        except OSError as error:
            log.info("pushes to a client end: %s", error)

    async def read_queue(self, added: Listener, read: Callable[[], Awaitable[None]]) -> None:
        """Read the queue of pushes now and whenever `added` receives something, until cancelled or `read` fails.

        A failure of the desk, as of its records, is tried again after a pause.
        """
        while True:
            failed = False
            try:
                await read()
            except OpenbellError as error:
                log.warning("pushes wait: %s", error)
                failed = True
            await added.wait(_RETRY_SECONDS if failed else None)

    def pushed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parameters of a push, which say what data it is based on."""
        return {**body, "_meta": self._truth} if self._truth else dict(body)

    async def ledger(self) -> str:
        """Returns the name of the ledger, which event ids have: one that begins anew, as after the reset of a scenario, has
        another.
        """
        return await self._records.read(lambda view: name_of(view.connection))

    async def position(self, principal: str, event: str) -> int | None:
        """Returns the cursor of an event id; None if it is not one of this ledger."""

        def work(view: View) -> int | None:
            waiting = queries.queued(view, principal, {ALERT_TRIGGERED: 0, SIGNALS: 0}, time.time())
            return position_of(event, waiting, name_of(view.connection))

        return await self._records.read(work)

    async def queued(
        self, principal: str, after: Mapping[str, int | None]
    ) -> tuple[list[Notification], dict[str, int]]:
        """Returns the queued notifications of some methods, each after a cursor, and these cursors.

        None stands for the recorded cursor of the method's pushes.
        """
        now = time.time()

        def work(view: View) -> tuple[list[Notification], dict[str, int]]:
            known = queries.cursors_of(view, principal)
            start = {method: known.of(method) if cursor is None else cursor for method, cursor in after.items()}
            return queries.queued(view, principal, start, now), start

        return await self._records.read(work)


class InboxReader:
    """One connection's reading of its principal's inbox."""

    def __init__(self, inbox: Inbox, principal: str) -> None:
        self._inbox = inbox
        self._principal = principal
        self._cursor: int | None = None
        """The last notification sent to this connection; None: it starts at its principal's stored cursor."""
        self._replaced = inbox.replaced
        """How often the ledger was replaced when the cursor was read."""
        self._reading = asyncio.Lock()
        self._sending: asyncio.Event | None = None
        """Set once the response that is being sent was sent."""

    async def take(self, limit: int, wait: float) -> tuple[list[Notification], int, Callable[[], Awaitable[None]]]:
        """Returns new notifications, how many more there are, and a function to await once the response was sent.

        Concurrent calls wait for each other, so that no notification is returned twice.
        """
        done = asyncio.Event()

        async def look() -> tuple[list[Notification], int]:
            async with self._reading:
                await self._until_sent()
                found = await self._inbox.look(self._principal, await self._begin(), limit)
                if found[0]:
                    self._sending = done
                return found

        found, more = await self._wait_for(look, wait)
        through = found[-1].cursor if found else 0

        async def left() -> None:
            self._cursor = max(self._cursor or 0, through)
            try:
                await self._inbox.acknowledge(self._principal, through)
            finally:
                done.set()  # the next response is sent only after this one is recorded as read

        return found, more, left

    async def peek(self, after: int | None, limit: int, wait: float) -> tuple[list[Notification], int]:
        """Returns notifications after a cursor, or the unread ones, and how many more there are; moves no cursor."""
        start = after
        if start is None:
            start = await self._inbox.seen(self._principal) if self._cursor is None else self._cursor
        return await self._wait_for(lambda: self._inbox.look(self._principal, start, limit), wait)

    async def begin(self) -> None:
        """Set the cursor to the principal's stored one: later notifications are for this connection, whoever reads first."""
        if self._cursor is None:
            async with self._reading:
                await self._begin()

    async def _begin(self) -> int:
        """Returns the cursor; the first call reads the stored one. The caller must hold the lock."""
        if self._cursor is None or self._inbox.replaced != self._replaced:
            self._replaced = self._inbox.replaced
            self._cursor = await self._inbox.seen(self._principal)
        return self._cursor

    async def acknowledge(self, through: int) -> None:
        """Record that this connection and its principal have read everything up to a cursor."""
        await self._inbox.acknowledge(self._principal, through)
        self._cursor = max(self._cursor or 0, min(through, await self._inbox.seen(self._principal)))

    async def _wait_for(
        self, look: Callable[[], Awaitable[tuple[list[Notification], int]]], wait: float
    ) -> tuple[list[Notification], int]:
        """Returns the result of `look`, which is repeated until it is not empty or `wait` seconds have passed."""
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

    async def _until_sent(self) -> None:
        """Wait until an earlier response was sent; at most 2 s, because a cancelled one is never sent."""
        if self._sending is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._sending.wait(), _SENDING_SECONDS)


def _page(found: list[Notification]) -> list[Notification]:
    """Returns the first of some notifications: at least one, and no more after half a megabyte."""
    sizes = accumulate(len(json.dumps(each.body)) for each in found)
    return found[: 1 + sum(1 for size in sizes if size < _LARGEST_PAGE)]


def event_id(queued: Notification, ledger: str) -> str:
    """Returns the id of an event. Later ones of a principal have larger ids."""
    return f"{microseconds(queued.queued):014x}-{ledger}"


def position_of(event: str, queued: Sequence[Notification], ledger: str) -> int | None:
    """Returns the cursor after which a client has yet to receive what is queued for it, oldest first.

    None if the id is not one of this ledger. The event itself may have left the queue.
    """
    found = _ID.fullmatch(event)
    if found is None or found[2] != ledger:
        return None
    at = int(found[1], 16)
    # Notifications of an earlier time can have the same time: those are sent again.
    same = [each.cursor for each in queued if microseconds(each.queued) == at]
    before = [each.cursor for each in queued if microseconds(each.queued) < at]
    return same[0] if len(same) == 1 else max(before, default=0)
