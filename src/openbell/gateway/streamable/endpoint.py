"""One server at one path: POST takes a message, GET opens the stream of pushes.

The checks come in this order: method, Accept, token, content type, JSON, scope of the tool, rate limit, protocol.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any, cast

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp_types import DEFAULT_NEGOTIATED_VERSION, INVALID_REQUEST, PARSE_ERROR, SERVER_INFO_META_KEY
from pydantic_core import from_json

from openbell.gateway.admission import Admission
from openbell.gateway.guard.limits import Claim
from openbell.gateway.guard.refusals import Refusal
from openbell.gateway.streamable import messages, modern, wire
from openbell.gateway.streamable.delayed import delayed, nothing
from openbell.gateway.streamable.exchange import Exchange
from openbell.gateway.streamable.pushes import PushStreams
from openbell.gateway.streamable.sessions import LONGEST_ID, SoftSession, SoftSessions, new_session_id
from openbell.gateway.watching import CallWatch
from openbell.protocol.replies import Replies
from openbell.protocol.sdk import Server, ServerRequestContext
from openbell.protocol.server import call_tool
from openbell.protocol.service import Runner, Service
from openbell.protocol.session import Principal, Scope, Session
from openbell.protocol.tool import Tool

log = logging.getLogger(__name__)

REQUEST_CANCELLED = -32800
_NO_JSON = "the response is application/json: accept it"
_SESSION_ID = re.compile(rb"[\x21-\x7e]{1,%d}" % LONGEST_ID)
_WATCH_SECONDS = 0.05
"""A request that takes longer is watched for a client that disconnects."""


def session_of(context: ServerRequestContext[Any, Any]) -> Session:
    """Returns the session of a request of this transport."""
    return cast("Exchange", context.request).session


class Endpoint:
    """An ASGI application."""

    def __init__(
        self,
        name: str,
        service: Service,
        server: Server[Any],
        *,
        runner: Runner | None = None,
        resource: str,
        admission: Admission,
        pushes: PushStreams,
        watch: CallWatch,
        sessions: SoftSessions | None = None,
    ) -> None:
        """`resource` is the URL of this endpoint, for which tokens are issued. `runner` calls the tools of the service."""
        self.name = name
        self.resource = resource
        self._service = service
        self._runner = runner
        self._server = server
        self._admission = admission
        self._pushes = pushes
        self._watch = watch
        self._sessions = SoftSessions() if sessions is None else sessions

    async def __call__(self, scope: wire.Scope, receive: wire.Receive, send: wire.Send) -> None:
        """Answer one HTTP request."""
        if scope["method"] == "POST":
            await self._post(scope, receive, send)
        elif scope["method"] == "GET":
            await self._get(scope, receive, send)
        else:
            await wire.answer(send, 405, headers=((b"allow", b"GET, POST"),))

    # GET

    async def _get(self, scope: wire.Scope, receive: wire.Receive, send: wire.Send) -> None:
        version = _text(wire.header(scope, wire.VERSION))
        if modern.is_modern(version, None):
            await wire.answer(send, 405, headers=((b"allow", b"POST"),))
            return
        if not wire.accepts(wire.header(scope, b"accept"), wire.EVENTS, missing=True):
            await wire.answer(
                send, 406, wire.error(None, INVALID_REQUEST, "the response is text/event-stream: accept it")
            )
            return
        principal = await self._admission.admit(scope, self.resource)
        if isinstance(principal, Refusal):
            await self._refuse(principal, send)
            return
        echo, session = _session_header(scope)
        if session is not None and _SESSION_ID.fullmatch(session) is None:
            await wire.answer(send, 400, wire.error(None, INVALID_REQUEST, "Mcp-Session-Id is not valid"))
            return
        event = _text(wire.header(scope, wire.LAST_EVENT))
        if event and session is not None and (found := self._soft(principal, session).log(event)) is not None:
            await self._resume(*found, receive, send, echo)
            return
        await self._pushes.serve(principal, _cursor(event), version, receive, send, echo)

    async def _resume(
        self, found: Any, number: int, receive: wire.Receive, send: wire.Send, headers: wire.Headers
    ) -> None:
        """Send the rest of a response whose connection was closed."""
        await wire.begin_events(send, headers)
        gone = asyncio.ensure_future(wire.disconnected(receive))
        try:
            while not gone.done():
                for name, message in found.after(number):
                    await wire.part(send, wire.event(message, name))
                    number += 1
                if found.ended:
                    await wire.part(send, b"", last=True)
                    return
                await asyncio.wait({gone, asyncio.ensure_future(found.changed())}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()

    # POST

    async def _post(self, scope: wire.Scope, receive: wire.Receive, send: wire.Send) -> None:
        accept = wire.header(scope, b"accept")
        if not wire.accepts(accept, wire.JSON, missing=True):
            await wire.answer(send, 406, wire.error(None, INVALID_REQUEST, _NO_JSON))
            return
        principal = await self._admission.admit(scope, self.resource)
        if isinstance(principal, Refusal):
            await self._refuse(principal, send)
            return
        claim = self._watch.claim(principal)
        if isinstance(claim, Refusal):
            await self._refuse(claim, send)
            return
        with claim:
            await self._message(scope, receive, send, principal, claim, accept)

    async def _refuse(self, refusal: Refusal, send: wire.Send, request: Any = None) -> None:
        self._watch.refused(refusal.reason)
        await refusal.send(send, refusal.rpc_body(request))

    async def _message(
        self,
        scope: wire.Scope,
        receive: wire.Receive,
        send: wire.Send,
        principal: Principal,
        claim: Claim,
        accept: bytes | None,
    ) -> None:
        """Take one message of an admitted client."""
        if not (wire.header(scope, b"content-type") or b"").lower().startswith(wire.JSON):
            text = "the content type must be application/json"
            await wire.answer(send, 415, wire.error(None, INVALID_REQUEST, text))
            return
        if (body := await wire.read_body(receive)) is None:
            return
        try:
            message = from_json(body)
        except ValueError:
            await wire.answer(send, 400, wire.error(None, PARSE_ERROR, "Parse error: not JSON"))
            return
        echo, session = _session_header(scope)
        if session is not None and _SESSION_ID.fullmatch(session) is None:
            await wire.answer(send, 400, wire.error(None, INVALID_REQUEST, "Mcp-Session-Id is not valid"))
            return
        if (wrong := messages.wrong(message)) is not None:
            await wire.answer(send, 400, wire.error(messages.id_of(message), INVALID_REQUEST, wrong), echo)
            return
        version = _text(wire.header(scope, wire.VERSION))
        if "method" not in message or "id" not in message:
            await self._one_way(message, principal, session, version, send, echo)
            return
        streams = wire.accepts(accept, wire.EVENTS, missing=False)
        await self._request(message, principal, session, version, scope, receive, send, echo, claim, streams=streams)

    async def _one_way(
        self,
        message: dict[str, Any],
        principal: Principal,
        session: bytes | None,
        version: str | None,
        send: wire.Send,
        echo: wire.Headers,
    ) -> None:
        """Take a notification, or the answer to a request that was sent to the client."""
        if modern.is_modern(version, message):
            # This revision has no such messages over HTTP: notifications are accepted and dropped.
            wrong = modern.check_version(version or "")
            if wrong is not None or "method" not in message:
                code, text, data = (INVALID_REQUEST, "not a request", None) if wrong is None else (
                    wrong.code, wrong.message, wrong.data
                )  # fmt: skip
                await wire.answer(send, 400, wire.error(None, code, text, data))
                return
        elif session is not None:
            soft = self._soft(principal, session)
            if "method" not in message:
                messages.resolve(soft, message)
            elif message["method"] == "notifications/cancelled":
                params = message.get("params")
                running = soft.running.get(messages.key((params if isinstance(params, dict) else {}).get("requestId")))
                if running is not None:
                    running.cancel()
        await wire.answer(send, 202, headers=echo)

    async def _request(
        self,
        message: dict[str, Any],
        principal: Principal,
        session: bytes | None,
        version: str | None,
        scope: wire.Scope,
        receive: wire.Receive,
        send: wire.Send,
        echo: wire.Headers,
        claim: Claim,
        *,
        streams: bool,
    ) -> None:
        request, method, params = message["id"], message["method"], message.get("params")
        is_modern = modern.is_modern(version, message)
        soft: SoftSession | None = None
        info = capabilities = None
        if is_modern:
            route = modern.check(scope, message, self._server)
            if isinstance(route, modern.Rejection):
                await wire.answer(send, route.status, wire.error(request, route.code, route.message, route.data))
                return
            version, info, capabilities, echo = route.version, route.client_info, route.capabilities, ()
            if method == "subscriptions/listen" and not streams:
                await wire.answer(send, 406, wire.error(request, INVALID_REQUEST, "accept text/event-stream"))
                return
        else:
            if method == "initialize" and session is None:
                session = new_session_id().encode()
                echo = ((wire.SESSION, session),)
            if session is not None:
                soft = self._soft(principal, session)
                if method == "initialize":
                    soft.client = params
                info, capabilities = (soft.client or {}).get("clientInfo"), (soft.client or {}).get("capabilities")
            version = version or DEFAULT_NEGOTIATED_VERSION
        called = params if method == "tools/call" and isinstance(params, dict) else {}
        tool, arguments = called.get("name"), called.get("arguments")
        began = perf_counter()
        known = self._service.by_name.get(tool) if isinstance(tool, str) else None
        kind = "" if known is None else str(known.scope)
        if isinstance(tool, str) and (refusal := self._refusal(known, tool, principal)) is not None:
            self._watch.called(scope, self.name, tool, kind, principal, "refused", began)
            await refusal.send(send, refusal.rpc_body(request))
            return
        notify = self._pushes.sender(principal)
        exchange = Exchange(
            send,
            request,
            Session(principal, notify, Replies(), soft.session if soft else None),
            soft,
            version=version,
            modern=is_modern,
            streams=streams,
            headers=echo,
            progress_token=progress_token_from_params(params if isinstance(params, dict) else None),
        )
        work: Coroutine[Any, Any, dict[str, Any]]
        if isinstance(tool, str) and self._runner is not None and isinstance(arguments, dict | None):
            work = self._call(tool, arguments or {}, exchange, is_modern=is_modern)
        else:
            connection = Connection.from_envelope(version, info, capabilities)
            work = serve_one(self._server, exchange, method, params, connection=connection, lifespan_state={})
        if method == "subscriptions/listen":
            claim.release()  # it is a stream now, and counted among those
        outcome = await self._run(exchange, work, soft, receive, is_modern=is_modern)
        if isinstance(tool, str):
            self._watch.called(scope, self.name, tool, kind, principal, outcome, began)

    async def _call(
        self, tool: str, arguments: dict[str, Any], exchange: Exchange, *, is_modern: bool
    ) -> dict[str, Any]:
        """Call a tool without the SDK, which takes longer to check the message than the message's way here."""
        assert self._runner is not None
        result = await call_tool(self._runner, tool, arguments, exchange.session, exchange.request_id)
        if is_modern:
            result["resultType"] = "complete"
            result["_meta"] = {**result["_meta"], SERVER_INFO_META_KEY: self._server.server_info_stamp}
        return result

    def _refusal(self, tool: Tool | None, name: str, principal: Principal) -> Refusal | None:
        """Returns why a call is refused: the token's scopes or the rate limit do not allow it."""
        if tool is not None and tool.scope not in principal.scopes:
            return self._admission.lacks(tool.scope, self.resource, name)
        return self._watch.limit(principal, Scope.READ if tool is None else tool.scope)

    async def _run(
        self, exchange: Exchange, work: Any, soft: SoftSession | None, receive: wire.Receive, *, is_modern: bool
    ) -> str:
        """Run a handler and send its result; returns the outcome."""
        key = messages.key(exchange.request_id)
        stop, watching = exchange.keep_alive(), nothing
        outcome = "ok"
        with anyio.CancelScope() as cancel:
            if is_modern:
                watching = _on_disconnect(receive, cancel.cancel)
            elif soft is not None:
                soft.running[key] = cancel
            try:
                result = await work
                status, body = 200, None
                outcome = "error" if result.get("isError") else "ok"
            except Exception as failure:  # noqa: BLE001 - the SDK maps it, and logs what it does not know
                error = modern_error_data(failure)
                status = modern.status_of(error.code) if is_modern else 200
                body = wire.error(exchange.request_id, error.code, error.message, error.data)
                outcome = "error"
            finally:
                stop()
                watching()
                if soft is not None:
                    soft.running.pop(key, None)
        if cancel.cancelled_caught:
            if not is_modern:
                await exchange.finish(wire.error(exchange.request_id, REQUEST_CANCELLED, "Request cancelled"))
            return "cancelled"
        await exchange.finish(wire.response(exchange.request_id, result) if body is None else body, status)
        await exchange.session.replies.sent(exchange.request_id)
        return outcome

    def _soft(self, principal: Principal, session: bytes) -> SoftSession:
        return self._sessions.get(principal, session.decode("ascii"), self._pushes.sender(principal))


def _on_disconnect(receive: wire.Receive, cancel: Callable[[], None]) -> Callable[[], None]:
    """Call `cancel` if the client disconnects while the request is running. Returns a function that stops this."""

    async def watch() -> None:
        await wire.disconnected(receive)
        cancel()

    return delayed(_WATCH_SECONDS, watch)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def _session_header(scope: wire.Scope) -> tuple[tuple[tuple[bytes, bytes], ...], bytes | None]:
    """Returns the header to echo, and the session id."""
    session = wire.header(scope, wire.SESSION)
    return (() if session is None else ((wire.SESSION, session),)), session


def _cursor(event: str | None) -> int | None:
    """Returns the inbox cursor of an event id; None if it is not one."""
    return int(event) if event and event.isascii() and event.isdigit() and len(event) <= 18 else None
