"""The sender of webhooks: one process at a time sends the deliveries that wait, each until it arrives or is given up.

Deliveries of one webhook are sent in order, one at a time; webhooks do not wait for each other. A delivery that was sent is
removed afterwards. If the process ends in between, the next one sends it again with the same id.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openbell.desk.alerts.webhooks.outbox import SIGNATURE_HEADER, Outbox, sign
from openbell.desk.events.hub import AlertFired, Listener, OrderChanged, WebhookChanged
from openbell.desk.events.leased_work import LeasedWork, LeasesInRecords
from openbell.desk.events.supervision import WorkState, WorkStatus
from openbell.gateway.outbound import Outbound
from openbell.market.errors import OutboundFailed, OutboundRefused
from openbell.net.rates import retry_after
from openbell.stores.port import Lease
from openbell.stores.records import webhooks as queries
from openbell.stores.records.journal import in_view
from openbell.stores.records.snapshot import View
from openbell.stores.records.webhooks import Delivery, Webhook

if TYPE_CHECKING:
    from openbell.desk.desk import Desk

log = logging.getLogger(__name__)

LEASE = "webhook sender"
_AT_ONCE = 16
"""How many deliveries are on their way at the same time."""
_GONE = 410
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a delivery is sent again after a failure."""

    waits: tuple[float, ...] = (1, 5, 30, 120, 600, 3600)
    """Seconds after each failure; the last one repeats. Each varies at random by a quarter."""
    give_up: float = _DAY
    """Seconds after which a delivery that fails is dead."""
    timeout: float = 10.0
    """Seconds of one attempt."""

    def wait(self, failures: int, chance: float) -> float:
        """Returns the seconds to wait after the failure of this number (1 is the first). `chance` is random in [0, 1)."""
        return self.waits[min(failures, len(self.waits)) - 1] * (0.75 + chance / 2)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of one attempt."""

    arrived: bool
    gone: bool = False
    """True if the receiver says that it is gone for ever."""
    reason: str = ""
    wait: float = 0.0
    """Seconds that the receiver asks for."""


class WebhookSender:
    """Sends the webhooks of a desk's records."""

    def __init__(
        self,
        desk: Desk,
        outbound: Outbound,
        schedule: Schedule = Schedule(),  # noqa: B008 - immutable
        *,
        now: Callable[[], float] = time.time,
        chance: random.Random | None = None,
    ) -> None:
        """`now` is the machine's time in epoch seconds: a wait must survive the process."""
        self._active = desk.webhooks.active
        self._hub = desk.hub
        self._records = desk.trading.records
        self._outbound = outbound
        self._schedule = schedule
        self._now = now
        self._chance = chance or random.Random()  # noqa: S311 - spreads retries, decides nothing
        self._outbox = Outbox(self._records, desk.data, live=desk.settings.live, now=now)
        self.status = WorkStatus()

    async def run(self) -> None:
        """Send until cancelled. Returns at once if this desk is read-only or its clock is not the present."""
        if not self._active:
            self.status.become(WorkState.OFF, "off: this desk is read-only or its clock is not the present")
            return
        leases = LeasesInRecords(self._records)
        await LeasedWork(leases, LEASE, LEASE, self.status, ready=self._until_wanted).run(self._work)

    async def _until_wanted(self) -> None:
        """Wait until there is an outbound webhook: a desk without one needs no lease."""
        with self._hub.listen(WebhookChanged) as changed:
            while not await self._records.read(queries.has_outbound):
                self.status.become(WorkState.IDLE, "no webhooks")
                await changed.wait()

    async def _work(self, lease: Lease, renewing: asyncio.Task[None]) -> None:
        sending: dict[str, asyncio.Task[None]] = {}
        try:
            with self._hub.listen(AlertFired, OrderChanged, WebhookChanged) as changed:
                while not renewing.done():
                    await self._outbox.collect(lease)
                    first, wanted = await self._records.read(_look)
                    if not wanted:
                        return
                    wait = self._start(first, sending, lease)
                    await _any_of(changed, wait, renewing, *sending.values())
                    for key in [key for key, task in sending.items() if task.done()]:
                        await sending.pop(key)  # raises if its outcome could not be recorded
        finally:
            for task in sending.values():
                task.cancel()
            await asyncio.gather(*sending.values(), return_exceptions=True)

    def _start(
        self, first: list[tuple[Delivery, Webhook]], sending: dict[str, asyncio.Task[None]], lease: Lease
    ) -> float | None:
        """Begin to send what is due; returns the seconds until the next one is, None if there is none."""
        now, waits = self._now(), list[float]()
        for delivery, webhook in sorted(first, key=lambda pair: pair[0].due):
            if webhook.id in sending:
                continue
            wait = delivery.due - now
            if wait > _DAY + self._schedule.waits[-1] * 2:
                wait = 0.0  # no wait is that long: the machine's clock was set back
            if wait > 0:
                waits.append(wait)
            elif len(sending) < _AT_ONCE:
                sending[webhook.id] = asyncio.create_task(self._deliver(delivery, webhook, lease), name="webhook")
        return min(waits, default=None)

    async def _deliver(self, delivery: Delivery, webhook: Webhook, lease: Lease) -> None:
        """Make one attempt and record its outcome."""
        outcome = await self._attempt(delivery, webhook)
        if outcome.arrived:
            await self._records.write(in_view(queries.delivered), delivery, lease=lease)
            return
        now, failures = self._now(), delivery.attempts + 1
        if outcome.gone or now - delivery.queued >= self._schedule.give_up:
            log.warning("webhook %s: gave up on %s: %s", webhook.id, delivery.id, outcome.reason)
            await self._records.write(in_view(queries.give_up), delivery, outcome.reason, lease=lease)
            return
        wait = max(self._schedule.wait(failures, self._chance.random()), outcome.wait)
        log.info("webhook %s: %s; trying again in %.0f s", webhook.id, outcome.reason, wait)
        due = now + wait
        await self._records.write(in_view(queries.postpone), delivery, due, outcome.reason, lease=lease)

    async def _attempt(self, delivery: Delivery, webhook: Webhook) -> _Outcome:
        try:
            body = delivery.body.encode()
            headers = {
                "Content-Type": "application/json",
                "Openbell-Delivery": delivery.id,
                SIGNATURE_HEADER: sign(webhook.secret, int(self._now()), body),
            }
            answer = await self._outbound.request(
                "POST", webhook.url, headers=headers, body=body, timeout=self._schedule.timeout
            )
        except OutboundRefused as error:
            return _Outcome(arrived=False, reason=error.message)
        except OutboundFailed as error:
            # The status decides, even if the rest of the answer was too long or is missing.
            arrived = 200 <= error.details.get("status", 0) < 300
            return _Outcome(arrived, reason=error.message)
        except Exception as error:  # it is tried again later, and the other webhooks are sent
            log.exception("webhook %s: %s could not be sent", webhook.id, delivery.id)
            return _Outcome(arrived=False, reason=f"{type(error).__name__}; the log has the trace")
        wait = min(retry_after(answer.headers) or 0.0, _DAY)
        arrived = 200 <= answer.status < 300
        return _Outcome(arrived, answer.status == _GONE, f"HTTP {answer.status}", wait)


def _look(view: View) -> tuple[list[tuple[Delivery, Webhook]], bool]:
    return queries.next_deliveries(view), queries.has_outbound(view)


async def _any_of(changed: Listener, wait: float | None, *tasks: asyncio.Task[None]) -> None:
    """Wait for a change in the records, the end of a task, or `wait` seconds."""
    waiting = asyncio.ensure_future(changed.wait(wait))
    try:
        await asyncio.wait({waiting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
