"""One server at one path: POST takes a message, GET opens the stream of pushes.

The checks come in this order: method, Accept, token, content type, JSON, scope of the tool, rate limit, protocol.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from time import perf_counter
from typing import Any, cast

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp_types import DEFAULT_NEGOTIATED_VERSION, INVALID_REQUEST, PARSE_ERROR, SERVER_INFO_META_KEY

from openbell.gateway.admission import Admission
from openbell.gateway.guard.refusals import Refusal
from openbell.gateway.streamable import messages, modern, wire
from openbell.gateway.streamable.delayed import delayed, nothing
from openbell.gateway.streamable.exchange import Exchange
from openbell.gateway.streamable.posts import Post
from openbell.gateway.streamable.pushes import Pushed, PushStreams
from openbell.gateway.streamable.resuming import resume
from openbell.gateway.streamable.sessions import LONGEST_ID, SoftSession, SoftSessions, new_session_id
from openbell.gateway.watching import CallWatch
from openbell.protocol.replies import Replies
from openbell.protocol.sdk import Server, ServerRequestContext
from openbell.protocol.server import call_tool
from openbell.protocol.service import Runner, Service
from openbell.protocol.session import Principal, Scope, Session
from openbell.protocol.tool import Effect, Tool

log = logging.getLogger(__name__)

REQUEST_CANCELLED = -32800
_NO_JSON = "the response is application/json: accept it"
_NO_EVENTS = "the response is text/event-stream: accept it"
_BAD_SESSION = "Mcp-Session-Id is not valid"
_SESSION_ID = re.compile(rf"[\x21-\x7e]{{1,{LONGEST_ID}}}")
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
        pushed: Pushed,
        watch: CallWatch,
        sessions: SoftSessions | None = None,
    ) -> None:
        """`resource` is the URL of this endpoint, for which tokens are issued. `runner` calls the tools of the service.

        `pushed` returns the methods that are pushed to a principal here.
        """
        self.name = name
        self.resource = resource
        self._service = service
        self._runner = runner
        self._server = server
        self._admission = admission
        self._pushes = pushes
        self._pushed = pushed
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
        version = wire.text(wire.header(scope, wire.VERSION))
        if version is not None and modern.is_modern(version, None):
            if (unknown := modern.check_version(version)) is None:
                await wire.answer(send, 405, headers=((b"allow", b"POST"),))
            else:
                await wire.answer(send, 400, wire.error(None, unknown.code, unknown.message, unknown.data))
            return
        if not wire.accepts(scope, wire.EVENTS, missing=True):
            await wire.answer(send, 406, wire.error(None, INVALID_REQUEST, _NO_EVENTS))
            return
        principal = await self._admission.admit(scope, self.resource)
        if isinstance(principal, Refusal):
            await self._refuse(principal, send)
            return
        session = wire.text(wire.header(scope, wire.SESSION))
        if session is not None and _SESSION_ID.fullmatch(session) is None:
            await wire.answer(send, 400, wire.error(None, INVALID_REQUEST, _BAD_SESSION))
            return
        echo = () if session is None else ((wire.SESSION, session.encode("ascii")),)
        event = wire.text(wire.header(scope, wire.LAST_EVENT))
        claim = self._pushes.claim(principal)
        if isinstance(claim, Refusal):
            await self._refuse(claim, send)
            return
        with claim:
            if event and session is not None and (found := self._soft(principal, session).log(event)) is not None:
                await resume(*found, receive, send, echo)
            else:
                methods = self._pushed(principal)
                await self._pushes.serve(principal, methods, _cursor(event), version, receive, send, echo)

    # POST

    async def _post(self, scope: wire.Scope, receive: wire.Receive, send: wire.Send) -> None:
        if not wire.accepts(scope, wire.JSON, missing=True):
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
            await self._message(Post(scope, receive, send, principal, claim))

    async def _refuse(self, refusal: Refusal, send: wire.Send, request: Any = None) -> None:
        self._watch.refused(refusal.reason)
        await refusal.send(send, refusal.rpc_body(request))

    async def _message(self, post: Post) -> None:
        """Take one message of an admitted client."""
        if not post.is_json:
            text = "send application/json without compression"
            await wire.answer(post.send, 415, wire.error(None, INVALID_REQUEST, text))
            return
        if (body := await wire.read_body(post.receive)) is None:
            return
        if post.session is not None and _SESSION_ID.fullmatch(post.session) is None:
            await wire.answer(post.send, 400, wire.error(None, INVALID_REQUEST, _BAD_SESSION))
            return
        try:
            message = messages.parse(body)
        except ValueError:
            await post.refuse(400, PARSE_ERROR, "Parse error: not JSON, or an object has a key twice")
            return
        if (wrong := messages.wrong(message)) is not None:
            await post.refuse(400, INVALID_REQUEST, wrong, messages.id_of(message))
        elif "method" not in message or "id" not in message:
            await self._one_way(post, message)
        elif modern.is_modern(post.version, message):
            await self._modern(post, message)
        else:
            await self._handshake(post, message)

    async def _one_way(self, post: Post, message: dict[str, Any]) -> None:
        """Take a notification, or the answer to a request that was sent to the client."""
        if modern.is_modern(post.version, message):
            # This revision has no such messages over HTTP: notifications are accepted and dropped.
            wrong = modern.check_version(post.version or "")
            if wrong is not None:
                await post.refuse(400, wrong.code, wrong.message, None, wrong.data)
                return
            if "method" not in message:
                await post.refuse(400, INVALID_REQUEST, "Invalid Request: not a request")
                return
        elif post.session is not None:
            soft = self._soft(post.principal, post.session)
            if "method" not in message:
                messages.resolve(soft, message)
            elif message["method"] == "notifications/cancelled":
                soft.cancel(messages.key((message.get("params") or {}).get("requestId")))
        await post.answer(202)

    async def _modern(self, post: Post, message: dict[str, Any]) -> None:
        """Answer a request of a revision without handshake."""
        route = modern.check(post.scope, message, self._server)
        if isinstance(route, modern.Rejection):
            await post.refuse(route.status, route.code, route.message, message["id"], route.data)
            return
        exchange = self._exchange(post, message, None, route.version, is_modern=True)
        client = (route.version, route.client_info, route.capabilities)
        if message["method"] != "subscriptions/listen":
            await self._request(post, message, exchange, client, None)
            return
        if not post.streams:
            await post.refuse(406, INVALID_REQUEST, _NO_EVENTS, message["id"])
            return
        claim = self._pushes.claim(post.principal)
        if isinstance(claim, Refusal):
            await self._refuse(claim, post.send, message["id"])
            return
        post.claim.release()  # it is a stream, and counted among those
        with claim:
            await self._request(post, message, exchange, client, None)

    async def _handshake(self, post: Post, message: dict[str, Any]) -> None:
        """Answer a request of a revision with handshake. `initialize` begins a session, if the client names none."""
        if (wrong := modern.contradiction(post.scope, message)) is not None:
            await post.refuse(wrong.status, wrong.code, wrong.message, message["id"])
            return
        begins = message["method"] == "initialize"
        if begins and post.session is None:
            post = post.with_session(new_session_id())
        soft = None if post.session is None else self._soft(post.principal, post.session)
        if soft is not None and begins:
            soft.initialize(message.get("params") or {})
        version = post.version or DEFAULT_NEGOTIATED_VERSION
        exchange = self._exchange(post, message, soft, version)
        known = (version, soft.client_info, soft.capabilities) if soft else (version, None, None)
        await self._request(post, message, exchange, known, soft)

    def _exchange(
        self, post: Post, message: dict[str, Any], soft: SoftSession | None, version: str, *, is_modern: bool = False
    ) -> Exchange:
        session = Session(
            post.principal,
            self._pushes.sender(post.principal),
            Replies(),
            soft.session if soft else None,
            stateless=True,
        )
        return Exchange(
            post.send,
            message["id"],
            session,
            soft,
            version=version,
            modern=is_modern,
            streams=post.streams,
            headers=() if is_modern else post.echo,
            progress_token=progress_token_from_params(message.get("params")),
        )

    async def _request(
        self,
        post: Post,
        message: dict[str, Any],
        exchange: Exchange,
        client: tuple[str, Any, Any],
        soft: SoftSession | None,
    ) -> None:
        """Run the handler of a request, and watch the calls of tools. `client`: its revision, info and capabilities."""
        method, params = message["method"], message.get("params")
        name, is_plain = messages.tool_of(message)
        began, tool = perf_counter(), self._service.by_name.get(name) if isinstance(name, str) else None
        if method != "tools/call" and (tool is None or not tool.method):
            name = tool = None
        kind = "" if tool is None else str(tool.scope)
        if isinstance(name, str) and (refusal := self._refusal(tool, name, post.principal)) is not None:
            self._watch.called(post.scope, self.name, name, kind, post.principal, "refused", began)
            await refusal.send(post.send, refusal.rpc_body(message["id"]))
            return
        if isinstance(name, str) and self._runner is not None and is_plain:
            work = self._call(self._runner, name, (params or {}).get("arguments") or {}, exchange)
        else:
            connection = Connection.from_envelope(*client)
            work = serve_one(self._server, exchange, method, params, connection=connection, lifespan_state={})
        outcome = await self._run(exchange, work, soft, post.receive)
        if isinstance(name, str):
            self._watch.called(post.scope, self.name, name, kind, post.principal, outcome, began)

    async def _call(self, runner: Runner, tool: str, arguments: dict[str, Any], exchange: Exchange) -> dict[str, Any]:
        """Call a tool without the SDK, which takes longer to check the message than the message's way here."""
        result = await call_tool(runner, tool, arguments, exchange.session, exchange.request_id)
        if exchange.modern:
            result["resultType"] = "complete"
            result["_meta"] = {**result["_meta"], SERVER_INFO_META_KEY: self._server.server_info_stamp}
        return result

    def _refusal(self, tool: Tool | None, name: str, principal: Principal) -> Refusal | None:
        """Returns why a call is refused: the token's scopes or the rate limit do not allow it."""
        if tool is not None and (lacking := _needed(tool) - principal.scopes):
            return self._admission.lacks(min(lacking), self.resource, name)
        return self._watch.limit(principal, Scope.READ if tool is None else tool.scope)

    async def _run(
        self,
        exchange: Exchange,
        work: Coroutine[Any, Any, dict[str, Any]],
        soft: SoftSession | None,
        receive: wire.Receive,
    ) -> str:
        """Run a handler and send its result; returns the outcome."""
        key = messages.key(exchange.request_id)
        stop, watching = exchange.keep_alive(), nothing
        outcome = "ok"
        with anyio.CancelScope() as cancel, nullcontext() if soft is None else soft.running(key, cancel):
            if exchange.modern:
                watching = _on_disconnect(receive, cancel.cancel)
            try:
                result = await work
                status, body = 200, None
                outcome = "error" if result.get("isError") else "ok"
            except Exception as failure:  # noqa: BLE001 - the SDK maps it, and logs what it does not know
                error = modern_error_data(failure)
                status = modern.status_of(error.code) if exchange.modern else 200
                body = wire.error(exchange.request_id, error.code, error.message, error.data)
                outcome = "error"
            finally:
                stop()
                watching()
        if cancel.cancelled_caught:
            if not exchange.modern:
                await exchange.finish(wire.error(exchange.request_id, REQUEST_CANCELLED, "Request cancelled"))
            return "cancelled"
        await exchange.finish(wire.response(exchange.request_id, result) if body is None else body, status)
        await exchange.session.replies.sent(exchange.request_id)
        return outcome

    def _soft(self, principal: Principal, session: str) -> SoftSession:
        return self._sessions.get(principal, session, self._pushes.sender(principal))


def _needed(tool: Tool) -> set[Scope]:
    """Returns the scopes that a call needs: a token for reading alone must not write, whatever the tool's own scope is."""
    writes = tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}
    return {tool.scope, Scope.TRADE} if writes and tool.scope is Scope.READ else {tool.scope}


def _on_disconnect(receive: wire.Receive, cancel: Callable[[], None]) -> Callable[[], None]:
    """Call `cancel` if the client disconnects while the request is running. Returns a function that stops this."""

    async def watch() -> None:
        await wire.disconnected(receive)
        cancel()

    return delayed(_WATCH_SECONDS, watch)


def _cursor(event: str | None) -> int | None:
    """Returns the inbox cursor of an event id; None if it is not one."""
    return int(event) if event and event.isascii() and event.isdigit() and len(event) <= 18 else None
