"""One POST with a request: answered with JSON, or with a stream of events once something is sent before the response."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext

from openbell.gateway.streamable import wire
from openbell.gateway.streamable.sessions import StreamLog
from openbell.protocol.session import Session

if TYPE_CHECKING:
    from mcp.shared.dispatcher import CallOptions

    from openbell.gateway.admission import TokenCheck
    from openbell.gateway.streamable.sessions import ClientState, StreamLog

PING_SECONDS = 15.0
"""A response that takes longer becomes a stream with keep-alive comments, because proxies close silent connections."""
RESUMABLE_SINCE = "2025-11-25"
_TRANSPORTS = {flag: TransportContext(kind="streamable-http", can_send_request=flag) for flag in (False, True)}


class HttpExchange:
    """The SDK's dispatch context of one request."""

    def __init__(
        self,
        send: wire.Send,
        request_id: Any,
        session: Session,
        soft: ClientState | None,
        *,
        version: str,
        modern: bool,
        streams: bool,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """`streams` is True if the client accepts a stream of events."""
        self.request_id = request_id
        self.modern = modern
        self.session = session
        self.can_send_request = streams and not modern and soft is not None
        self.permit: TokenCheck | None = None
        """Set if the response is a stream that may outlast its token."""
        self._send = send
        self._soft = soft
        self._resumable = self.can_send_request and version >= RESUMABLE_SINCE
        self._streams = streams
        self._params = params
        self._log: StreamLog | None = None
        self._streaming = self._closed = False
        self._beginning = asyncio.Lock()

    # What only the SDK asks for. Its values would refer to this object, and only the garbage collector could free it.

    @property
    def transport(self) -> TransportContext:
        """See the SDK."""
        return _TRANSPORTS[self.can_send_request]

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        """See the SDK."""
        return ServerMessageMetadata(
            request_context=self, close_sse_stream=self._close_stream if self._resumable else None
        )

    @cached_property
    def cancel_requested(self) -> anyio.Event:
        """See the SDK. Never set: a cancelled request is interrupted."""
        return anyio.Event()

    @property
    def is_logged(self) -> bool:
        """True if the client can fetch the response later, because its stream can be resumed."""
        return self._log is not None

    # What a handler sends before its result

    async def notify(self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None) -> None:
        """Send a notification on the response's stream; dropped if the client accepts no stream."""
        if self._streams:
            await self._event(wire.notification(method, params))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send the progress of the request, if the client has asked for it."""
        token = progress_token_from_params(self._params)
        if token is None:
            return
        values = {"progress": progress, "total": total, "message": message}
        params = {"progressToken": token} | {k: v for k, v in values.items() if v is not None}
        await self.notify("notifications/progress", params)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request to the client and return its result. Raises `MCPError` if the client refuses or is too late."""
        if not self.can_send_request or self._soft is None:
            raise NoBackChannelError(method)
        number = f"openbell-{secrets.token_urlsafe(12)}"
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._soft.waiting[number] = future
        try:
            await self._event(wire.request(number, method, params))
            async with asyncio.timeout((opts or {}).get("timeout", 60.0)):
                return await future
        except TimeoutError:
            raise MCPError(-32001, f"the client did not answer {method} in time", None) from None
        finally:
            self._soft.waiting.pop(number, None)

    # The response

    async def begin_stream(self) -> None:
        """Turn the response into a stream of events."""
        async with self._beginning:  # a client that reads slowly delays even the headers: no body may pass them
            if self._streaming:
                return
            await wire.begin_events(self._send)
            self._streaming = True
            if self._resumable and self._soft is not None:
                self._log = self._soft.new_log()
                await wire.part(self._send, wire.priming_event(self._log.latest()))

    async def _event(self, message: bytes, *, last: bool = False) -> None:
        await self.begin_stream()
        number = None if self._log is None else self._log.add(message, last=last)
        if not self._closed:
            await wire.part(self._send, wire.event(message, number), last=last)

    async def _close_stream(self) -> None:
        """Close the connection before the result, so that the client resumes the stream later."""
        await self.begin_stream()
        if not self._closed:
            self._closed = True
            await wire.part(self._send, b"", last=True)

    async def finish(self, message: bytes, status: int = 200) -> None:
        """Send the response."""
        if self._streaming or self._beginning.locked():
            await self._event(message, last=True)
        else:
            await wire.answer(self._send, status, message)

    async def keep_alive(self) -> None:
        """Begin a stream with comments if the response takes long, and the client accepts a stream."""
        while self._streams:
            await asyncio.sleep(PING_SECONDS)
            if self._closed:
                return
            await self.begin_stream()
            await wire.part(self._send, wire.KEEP_ALIVE)


async def resume(log: StreamLog, number: int, receive: wire.Receive, send: wire.Send) -> None:
    """Send the events of a log after a number, until its end or until the client disconnects."""
    await wire.begin_events(send)
    gone = asyncio.ensure_future(wire.disconnected(receive))
    try:
        while not gone.done():
            changed = log.changed  # before the log is read: a later event sets it
            for at, name, message in log.after(number):
                await wire.part(send, wire.event(message, name))
                number = at
            if log.ended and not log.after(number):
                await wire.part(send, b"", last=True)
                return
            if not await _first_of(gone, changed):
                await wire.part(send, wire.KEEP_ALIVE)
    finally:
        gone.cancel()


async def _first_of(gone: asyncio.Future[None], changed: asyncio.Event) -> bool:
    """Wait until one of them is done; returns False if neither is after 15 s."""
    waiting = asyncio.ensure_future(changed.wait())
    either: set[asyncio.Future[Any]] = {gone, waiting}
    try:
        done, _ = await asyncio.wait(either, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    return bool(done)
