"""The streams of pushes of all principals: which are open, what each begins with, and how it ends.

One reader of the queue for each principal feeds all of its open streams (`Channel`). With the id of an event
(`desk.trading.event_ids`) a client can resume at any gateway process. A stream that resumes nothing begins with the
notifications that were not pushed to any client yet, at most an hour old. A desk that cannot write its records queues
nothing: its notifications have no id, and wait in this process while a principal has no stream.

In revision 2026-07-28 the response to subscriptions/listen is such a stream. A token is checked when its stream opens, and
then twice a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, event_from_wire, event_matches
from mcp_types import SubscriptionFilter, SubscriptionsListenRequestParams, SubscriptionsListenResult

from openbell.desk.alerts.inbox import Inbox
from openbell.desk.events.supervision import Supervisor
from openbell.gateway.admission import TokenCheck
from openbell.gateway.guard.connections import most_connections
from openbell.gateway.guard.limits import Claim, Slots
from openbell.gateway.guard.refusals import GuardRefusal
from openbell.gateway.streamable import wire
from openbell.gateway.streamable.channels import Channel, Push, PushStream, Recorder
from openbell.gateway.streamable.exchange import RESUMABLE_SINCE, HttpExchange
from openbell.market.errors import OpenbellError
from openbell.protocol.sdk import ServerRequestContext
from openbell.protocol.session import Notify, Principal

log = logging.getLogger(__name__)

Pushed = Callable[[Principal], frozenset[str]]
"""Returns the methods of the notifications that a server pushes to a principal."""
KEEP_ALIVE_SECONDS = 30.0
MOST_STREAMS = 5_000
MOST_STREAMS_EACH = 2_000
_SHARE, _SHARE_EACH = 0.75, 0.25
"""Of the connections of this process: streams leave some for requests, and those of one principal leave some for others."""
_BUSY = GuardRefusal(503, "too_many_streams", "Too many streams are open: retry later.", 5.0)
_CLOSING = GuardRefusal(503, "closing", "This process of the gateway stops: retry at another one, or later.", 1.0)
_RECHECK_SECONDS = 0.5
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class PushStreams:
    """The streams of all principals in this process."""

    def __init__(
        self,
        inbox: Callable[[], Inbox | None],
        most: int = MOST_STREAMS,
        each: int = MOST_STREAMS_EACH,
        keep_alive: float = KEEP_ALIVE_SECONDS,
        supervisor: Supervisor | None = None,
    ) -> None:
        """`inbox` returns the inbox; None if this desk cannot push from it. `each` is the limit of one principal; with few
        handles, fewer streams are allowed.

        `supervisor` runs the readers of the queue.
        """
        self._inbox = inbox
        self._supervisor = supervisor or Supervisor()
        connections = most_connections()
        each = min(each, int(_SHARE_EACH * connections))
        text = f"This principal has {each:,} open streams: close one before another."
        too_many = GuardRefusal(429, "too_many_streams", text, 5.0)
        self._slots = Slots(min(most, int(_SHARE * connections)), each, busy=_BUSY, too_many=too_many)
        self._keep_alive = keep_alive
        self._channels: dict[str, Channel] = {}
        self._recorder = Recorder()
        self._permits = TokenRechecks()
        self._closing = False

    @property
    def open(self) -> int:
        """The number of open streams."""
        return self._slots.total

    def claim(self, principal: Principal) -> Claim | GuardRefusal:
        """Returns a slot for a stream, which must be released, or why there is none."""
        return _CLOSING if self._closing else self._slots.claim(principal.subject)

    def sender(self, principal: Principal) -> Notify:
        """Returns a function that sends a notification to the streams of a principal."""

        async def notify(method: str, params: dict[str, Any]) -> None:
            self._channel(principal).send(Push(method, params))

        return notify

    def _channel(self, principal: Principal) -> Channel:
        found = self._channels.get(principal.subject)
        if found is None:
            found = self._channels[principal.subject] = Channel(
                principal.subject, self._inbox(), self._recorder, self._supervisor
            )
        return found

    async def serve(
        self,
        principal: Principal,
        methods: Iterable[str],
        event: str | None,
        version: str | None,
        receive: wire.Receive,
        send: wire.Send,
        permit: TokenCheck | None = None,
    ) -> None:
        """Send pushes of some methods to one client until it disconnects. `event` is the id after which it resumes."""
        gone = asyncio.ensure_future(wire.disconnected(receive))
        try:
            after = await self._position(principal, event)
            async with self.opened(principal, methods, after, gone, permit) as pushes:
                await wire.begin_events(send)
                can_resume = event and after is not None and (version or "") >= RESUMABLE_SINCE
                await wire.part(send, wire.priming_event(event) if event and can_resume else wire.KEEP_ALIVE)
                async for push in pushes:
                    await wire.part(send, wire.KEEP_ALIVE if push is None else push.event)
                if not gone.done():
                    await wire.part(send, b"", last=True)
        finally:
            gone.cancel()

    @asynccontextmanager
    async def opened(
        self,
        principal: Principal,
        methods: Iterable[str],
        after: int | None,
        gone: asyncio.Future[None] | None = None,
        permit: TokenCheck | None = None,
    ) -> AsyncIterator[AsyncGenerator[Push | None]]:
        """Opens a stream, which has every push of some methods from here on: a client may be told that it is open.

        It yields pushes until the client is gone, its permit ends or the gateway closes, and None after 30 s without any. A
        push counts as sent when the next one is asked for.
        """
        stream = PushStream(methods, after, anonymous=principal.anonymous)
        channel = self._channel(principal)
        if stream.after and after is None:
            recorded = await self._recorded(principal, stream.after)
            # What another stream has sent may be recorded only after it was read here.
            stream.after = {
                method: max(at, channel.sent.get(method, 0)) for method, at in recorded.items()
            } or stream.after
            channel = self._channel(principal)  # the other stream may have been the last of its channel
        if self._closing:
            stream.end()
        if gone is not None:
            gone.add_done_callback(lambda _: stream.end())
        channel.add(stream)
        if permit is not None:
            self._permits.add(stream, permit)
        try:
            async with aclosing(self._pushes(channel, stream)) as pushes:
                yield pushes
        finally:
            self._permits.remove(stream)
            channel.remove(stream)
            if not channel.streams and not channel.waiting:
                self._channels.pop(principal.subject, None)

    async def _position(self, principal: Principal, event: str | None) -> int | None:
        """Returns the cursor of an event id; None if it is not one of this ledger, for example from before a reset."""
        inbox = self._inbox()
        if event is None or inbox is None:
            return None
        try:
            return await inbox.position(principal.subject, event)
        except OpenbellError as error:
            log.warning("a stream cannot be resumed: %s", error)
            return None

    async def _recorded(self, principal: Principal, methods: Mapping[str, int | None]) -> dict[str, int]:
        """Returns the cursors of the last pushes of some methods that were sent; empty if they cannot be read now."""
        inbox = self._inbox()
        try:
            return {} if inbox is None else (await inbox.queued(principal.subject, dict.fromkeys(methods)))[1]
        except OpenbellError as error:
            log.warning("a stream begins later: %s", error)
            return {}

    async def _pushes(self, channel: Channel, stream: PushStream) -> AsyncGenerator[Push | None]:
        while not stream.ended:
            sent: dict[str, int] = {}
            while stream.pushes:
                push = stream.pushes.popleft()
                yield push
                if stream.ended:
                    return  # it may not have arrived: the next stream begins with it
                if push.cursor and not stream.anonymous:
                    sent[push.method] = push.cursor
                    channel.sent[push.method] = max(push.cursor, channel.sent.get(push.method, 0))
            if sent:
                await channel.record(sent)
            elif stream.full:
                return
            elif not await stream.wait(self._keep_alive):
                yield None

    async def close(self) -> None:
        """End all streams; new ones are refused."""
        self._closing = True
        self._permits.close()
        for channel in list(self._channels.values()):
            for stream in list(channel.streams):
                stream.end()


class TokenRechecks:
    """The permits of open streams, all checked by one task."""

    def __init__(self) -> None:
        self._held: dict[PushStream, TokenCheck] = {}
        self._checking: asyncio.Task[None] | None = None

    def add(self, stream: PushStream, permit: TokenCheck) -> None:
        """Begin to check the permit of a stream."""
        self._held[stream] = permit
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check(), name="permits")

    def remove(self, stream: PushStream) -> None:
        """Stop checking."""
        self._held.pop(stream, None)

    def close(self) -> None:
        """Stop checking all permits."""
        if self._checking is not None:
            self._checking.cancel()

    async def _check(self) -> None:
        while self._held:
            await asyncio.sleep(_RECHECK_SECONDS)
            holds: dict[Any, bool] = {}  # many streams have the same token
            for stream, permit in list(self._held.items()):
                if permit.key not in holds:
                    holds[permit.key] = await self._holds(permit)
                if not holds[permit.key]:
                    stream.end()

    async def _holds(self, permit: TokenCheck) -> bool:
        try:
            return await permit.holds()
        except Exception:
            log.exception("the token of a stream could not be checked")
            return True


class Listening:
    """Serves one stream for each call."""

    def __init__(self, pushes: PushStreams, pushed: Pushed) -> None:
        """`pushed` returns the methods that the server pushes to a principal."""
        self._pushes = pushes
        self._pushed = pushed

    async def __call__(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Acknowledge, then send pushes until the client disconnects or the gateway closes."""
        exchange = cast("HttpExchange", context.request)
        meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        granted = _granted(params.notifications)
        shown = granted.model_dump(by_alias=True, mode="json", exclude_none=True)
        principal = exchange.session.principal
        async with self._pushes.opened(principal, self._pushed(principal), None, permit=exchange.permit) as pushes:
            await exchange.notify(ACKNOWLEDGED, {"notifications": shown, "_meta": meta})
            async for push in pushes:
                if push is not None and _passes(granted, push):
                    await exchange.notify(
                        push.method, {**push.params, "_meta": {**push.params.get("_meta", {}), **meta}}
                    )
        return SubscriptionsListenResult(_meta=meta)


def _granted(wanted: SubscriptionFilter) -> SubscriptionFilter:
    """Returns the kinds of events that were asked for. Those that never happen here are granted and never sent."""
    return SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed or None,
        prompts_list_changed=wanted.prompts_list_changed or None,
        resources_list_changed=wanted.resources_list_changed or None,
        resource_subscriptions=list(wanted.resource_subscriptions) if wanted.resource_subscriptions else None,
    )


def _passes(granted: SubscriptionFilter, push: Push) -> bool:
    """Returns False for a change of tools, prompts or resources that was not asked for. Other pushes have no filter."""
    event = event_from_wire(push.method, push.params)
    return event is None or event_matches(granted, frozenset(granted.resource_subscriptions or ()), event)
