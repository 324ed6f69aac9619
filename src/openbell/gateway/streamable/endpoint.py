"""One server at one path: POST takes a message, GET opens the stream of pushes.

Around the order of `gateway/calls.py`: method and Accept come before the token; content type, JSON and the protocol
between slot and scope, because they find the tool.

Clients of revision 2025-03-26 may send a batch: several messages in one POST. They are handled one after the other, each
as if it had been sent alone: with its own check of token, scopes and rate limit, and its own line in the audit log. The
responses are sent together as one JSON array, after the last of them is known. A client that disconnects before is sent
nothing: what has not begun then does not run, and what its responses would have delivered stays undelivered. A request
that is cancelled before its turn does not run either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from typing import Any, cast

from mcp_types import DEFAULT_NEGOTIATED_VERSION, INVALID_REQUEST, PARSE_ERROR

from openbell.gateway.admission import Admission, TokenCheck
from openbell.gateway.calls import Calls, CallWatch
from openbell.gateway.guard.headers import headers_of
from openbell.gateway.guard.refusals import GuardRefusal
from openbell.gateway.guard.responses import LONGEST_SESSION
from openbell.gateway.streamable import messages, revision_2026_07, wire
from openbell.gateway.streamable.dispatch import Dispatcher
from openbell.gateway.streamable.exchange import HttpExchange, resume
from openbell.gateway.streamable.messages import McpRequest, SessionHeader, id_of, key
from openbell.gateway.streamable.pushes import Pushed, PushStreams
from openbell.gateway.streamable.sessions import ClientState, ClientStates, negotiated, new_session_id
from openbell.protocol.argument_limits import MOST_VALUES, wrong_batch
from openbell.protocol.sdk import Server, ServerRequestContext
from openbell.protocol.service import Runner, Service
from openbell.protocol.session import Principal, Replies, Session
from openbell.stores.threads import Threads

_NO_JSON = "the response is application/json: accept it"
_NO_EVENTS = "the response is text/event-stream: accept it"
_NOT_READ = f"Parse error: not JSON, an object has a key twice, or there are more than {MOST_VALUES:,} values"
_BAD_SESSION = f"Mcp-Session-Id is not valid: it has 1 to {LONGEST_SESSION:,} visible ASCII characters"
_WITHOUT_SESSIONS = "2024-11-05"
"""The revision with handshake whose clients do not know the header Mcp-Session-Id."""


def session_of(context: ServerRequestContext[Any, Any]) -> Session:
    """Returns the session of a request of this transport."""
    return cast("HttpExchange", context.request).session


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
        sessions: ClientStates | None = None,
        threads: Threads | None = None,
    ) -> None:
        """`resource` is the URL of this endpoint, for which tokens are issued. `runner` calls the tools of the service.

        `pushed` returns the methods that are pushed to a principal here. `threads` read large messages.
        """
        self.name = name
        self.resource = resource
        self._checks = revision_2026_07.HeaderChecks(server)
        self._calls = Calls(name, resource, admission, watch)
        self._dispatcher = Dispatcher(service, server, runner=runner, calls=self._calls, watch=watch)
        self._admission = admission
        self._pushes = pushes
        self._pushed = pushed
        self._sessions = ClientStates() if sessions is None else sessions
        self._threads = Threads("messages") if threads is None else threads

    async def __call__(self, scope: wire.Scope, receive: wire.Receive, send: wire.Send) -> None:
        """Answer one HTTP request."""
        echo = SessionHeader(headers_of(scope), send)
        if scope["method"] == "POST":
            await self._post(scope, receive, echo)
        elif scope["method"] == "GET":
            await self._get(scope, receive, echo)
        else:
            await wire.answer(echo, 405, headers=((b"allow", b"GET, POST"),))

    # GET

    async def _get(self, scope: wire.Scope, receive: wire.Receive, send: SessionHeader) -> None:
        headers = headers_of(scope)
        version = headers.text(wire.VERSION)
        if version is not None and revision_2026_07.is_modern(version, None):
            if (unknown := revision_2026_07.check_version(version)) is None:
                await wire.answer(send, 405, headers=((b"allow", b"POST"),))
            else:
                await wire.answer(send, 400, wire.error(None, unknown.code, unknown.message, unknown.data))
            return
        if not wire.accepts(headers, wire.EVENTS, missing=True):
            await wire.answer(send, 406, wire.error(None, INVALID_REQUEST, _NO_EVENTS))
            return
        principal = await self._admission.admit(scope, self.resource)
        if isinstance(principal, GuardRefusal):
            await self._refuse(principal, send)
            return
        if not send.is_valid:
            await wire.answer(send, 400, wire.error(None, INVALID_REQUEST, _BAD_SESSION))
            return
        session, event = send.session, headers.text(wire.LAST_EVENT)
        claim = self._pushes.claim(principal)
        if isinstance(claim, GuardRefusal):
            await self._refuse(claim, send)
            return
        with claim:
            if event and session is not None and (found := self._soft(principal, session).log(event)) is not None:
                await resume(*found, receive, send)
            else:
                methods = self._pushed(principal)
                permit = TokenCheck(self._admission, scope, self.resource, principal)
                await self._pushes.serve(principal, methods, event, version, receive, send, permit)

    # POST

    async def _post(self, scope: wire.Scope, receive: wire.Receive, send: SessionHeader) -> None:
        headers = headers_of(scope)
        if not wire.accepts(headers, wire.JSON, missing=True):
            await wire.answer(send, 406, wire.error(None, INVALID_REQUEST, _NO_JSON))
            return
        entered = await self._calls.enter(scope)
        if isinstance(entered, GuardRefusal):
            await entered.send(send, entered.rpc_body(None))
            return
        principal, claim = entered
        with claim:
            await self._message(McpRequest(scope, headers, receive, send, principal, claim))

    async def _refuse(self, refusal: GuardRefusal, send: wire.Send, request: Any = None) -> None:
        self._calls.refuse(refusal)
        await refusal.send(send, refusal.rpc_body(request))

    async def _message(self, post: McpRequest) -> None:
        """Take the body of an admitted client: a message, or a batch of them."""
        if not post.is_json:
            text = "send Content-Type: application/json, without compression"
            await wire.answer(post.send, 415, wire.error(None, INVALID_REQUEST, text))
            return
        if (body := await wire.read_body(post.receive)) is None:
            return
        if not post.echo.is_valid:
            await post.refuse(400, INVALID_REQUEST, _BAD_SESSION)
            return
        try:
            message = await messages.read(body, self._threads)
        except ValueError:
            await post.refuse(400, PARSE_ERROR, _NOT_READ)
            return
        if not isinstance(message, list):
            await self._take(post, message)
        elif (refused := wrong_batch(message, self._revision(post))) is not None:
            await post.refuse(400, INVALID_REQUEST, refused)
        else:
            soft = None if post.session is None else self._soft(post.principal, post.session)
            permit = TokenCheck(self._admission, post.scope, self.resource, post.principal)
            await answer_batch(post, message, self._take, permit, soft)

    def _revision(self, post: McpRequest) -> str:
        """Returns the revision with handshake of a client, whose header may not name it."""
        known = None if post.session is None else self._soft(post.principal, post.session).revision
        return known or post.version or DEFAULT_NEGOTIATED_VERSION

    async def _take(self, post: McpRequest, message: Any) -> None:
        """Answer one message."""
        if (wrong := messages.wrong(message)) is not None:
            await post.refuse(400, INVALID_REQUEST, wrong, messages.id_of(message))
        elif "method" not in message or "id" not in message:
            await self._one_way(post, message)
        elif revision_2026_07.is_modern(post.version, message):
            await self._modern(post, message)
        else:
            await self._handshake(post, message)

    async def _one_way(self, post: McpRequest, message: dict[str, Any]) -> None:
        """Take a notification, or the answer to a request that was sent to the client."""
        if revision_2026_07.is_modern(post.version, message):
            # This revision has no such messages over HTTP: notifications are accepted and dropped.
            wrong = revision_2026_07.check_version(post.version or "")
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

    async def _modern(self, post: McpRequest, message: dict[str, Any]) -> None:
        """Answer a request of a revision without handshake. It has no sessions."""
        post.echo.session = None
        route = self._checks.route(post.version, post.headers, message)
        if isinstance(route, revision_2026_07.Rejection):
            await post.refuse(route.status, route.code, route.message, message["id"], route.data)
            return
        exchange = self._exchange(post, message, None, route.protocol_version, is_modern=True)
        client = (route.protocol_version, route.client_info, route.client_capabilities)
        if message["method"] != "subscriptions/listen":
            await self._dispatcher.run(post, message, exchange, client, None)
            return
        if not post.streams:
            await post.refuse(406, INVALID_REQUEST, _NO_EVENTS, message["id"])
            return
        claim = self._pushes.claim(post.principal)
        if isinstance(claim, GuardRefusal):
            await self._refuse(claim, post.send, message["id"])
            return
        post.claim.release()  # it is a stream, and counted among those
        exchange.permit = TokenCheck(self._admission, post.scope, self.resource, post.principal)
        with claim:
            await self._dispatcher.run(post, message, exchange, client, None)

    async def _handshake(self, post: McpRequest, message: dict[str, Any]) -> None:
        """Answer a request of a revision with handshake. `initialize` begins a session, if the client names none."""
        if (wrong := revision_2026_07.contradiction(post.headers, message)) is not None:
            await post.refuse(wrong.status, wrong.code, wrong.message, message["id"])
            return
        begins = message["method"] == "initialize"
        params = message.get("params") or {}
        if begins and post.session is None and negotiated(params.get("protocolVersion")) != _WITHOUT_SESSIONS:
            post.echo.begin(new_session_id())
        soft = None if post.session is None else self._soft(post.principal, post.session)
        if soft is not None and begins:
            soft.initialize(params)
        version = post.version or DEFAULT_NEGOTIATED_VERSION
        exchange = self._exchange(post, message, soft, version)
        known = (version, soft.client_info, soft.capabilities) if soft else (version, None, None)
        await self._dispatcher.run(post, message, exchange, known, soft)

    def _exchange(
        self,
        post: McpRequest,
        message: dict[str, Any],
        soft: ClientState | None,
        version: str,
        *,
        is_modern: bool = False,
    ) -> HttpExchange:
        session = Session(
            post.principal,
            self._pushes.sender(post.principal),
            post.replies,
            soft.session if soft else None,
            stateless=True,
        )
        return HttpExchange(
            post.send,
            message["id"],
            session,
            soft,
            version=version,
            modern=is_modern,
            streams=post.streams,
            params=message.get("params"),
        )

    def _soft(self, principal: Principal, session: str) -> ClientState:
        return self._sessions.get(principal, session, self._pushes.sender(principal))


Handle = Callable[[McpRequest, Any], Awaitable[None]]
"""Answers one message of a POST."""
_CANCELLED, _UNAUTHORIZED = -32800, 401


async def answer_batch(
    post: McpRequest, messages: list[Any], handle: Handle, permit: TokenCheck, soft: ClientState | None
) -> None:
    """Handle the messages of a batch and send their responses. `permit` is the right of the token that was admitted."""
    responses, replies = _Responses(), _HeldReplies()
    gone = asyncio.ensure_future(wire.disconnected(post.receive))
    waiting = _Waiting(messages, soft)
    try:
        for number, message in enumerate(messages):
            # Messages that wait for nothing would be one step of the event loop together.
            await asyncio.sleep(0)
            if gone.done():
                return
            if number and not await permit.holds():
                responses.refuse(message, _UNAUTHORIZED, "the token is no longer valid, or has other scopes")
            elif waiting.take(message):
                responses.refuse(message, _CANCELLED, "Request cancelled")
            else:
                part = copy(post)
                part.receive, part.send, part.replies, part.streams = _never, responses, replies, False
                await handle(part, message)
        if gone.done():
            return
        if responses.bodies:
            await post.answer(200, b"[%s]" % b",".join(responses.bodies))
        else:
            await post.answer(202)
        await replies.release()
    finally:
        gone.cancel()
        waiting.close()


async def _never() -> wire.Message:
    """The body has been read, and the batch itself watches for a client that disconnects."""
    await asyncio.Event().wait()
    raise AssertionError


class _Waiting:
    """The requests of a batch whose turn has not come: until then `notifications/cancelled` is noted here."""

    def __init__(self, messages: list[Any], soft: ClientState | None) -> None:
        self._soft = soft
        self._cancelled: set[Any] = set()
        self._noted: dict[Any, Callable[[], None]] = {}
        for number in (key(id_of(each)) for each in messages):
            if soft is not None and number is not None:
                self._noted[number] = partial(self._cancelled.add, number)
                soft.begin(number, self._noted[number])

    def take(self, message: Any) -> bool:
        """Begin with a request; returns True if it was cancelled before."""
        number = key(id_of(message))
        self._end(number)
        return number in self._cancelled

    def close(self) -> None:
        """Forget the requests that were not begun."""
        for number in list(self._noted):
            self._end(number)

    def _end(self, number: Any) -> None:
        if number in self._noted and self._soft is not None:
            self._soft.end(number, self._noted.pop(number))


class _Responses:
    """Collects the bodies of responses instead of sending them; a notification has none."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def refuse(self, message: Any, code: int, text: str) -> None:
        """Add the error of a request that does not run; a notification gets none."""
        if (number := id_of(message)) is not None and "method" in message:
            self.bodies.append(wire.error(number, code, text))

    async def __call__(self, message: wire.Message) -> None:
        """See ASGI's `send`."""
        if body := message.get("body"):
            self.bodies.append(body)


class _HeldReplies(Replies):
    """Holds the work after each response until the whole batch has been sent."""

    def __init__(self) -> None:
        super().__init__()
        self._answered: list[Any] = []

    async def sent(self, request: Any) -> None:
        """Note a request whose response is part of the batch."""
        self._answered.append(request)

    async def release(self) -> None:
        """Run the work of all requests."""
        for request in self._answered:
            await super().sent(request)
