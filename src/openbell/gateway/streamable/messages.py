"""JSON-RPC messages of clients: one POST of an admitted client, whether its JSON is a message, and how it is answered."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY

from openbell.gateway.guard.headers import RequestHeaders
from openbell.gateway.guard.limits import Claim
from openbell.gateway.guard.responses import SESSION, session_of
from openbell.gateway.streamable import wire
from openbell.gateway.streamable.sessions import ClientState
from openbell.protocol.argument_limits import MOST_VALUES, Size, size_of
from openbell.protocol.json_text import parse
from openbell.protocol.sdk import MCPError
from openbell.protocol.session import Principal, Replies
from openbell.stores.threads import Threads


class McpRequest:
    """A POST whose token was accepted."""

    __slots__ = ("claim", "echo", "headers", "principal", "receive", "replies", "scope", "send", "streams", "version")

    def __init__(
        self,
        scope: wire.Scope,
        headers: RequestHeaders,
        receive: wire.Receive,
        echo: SessionHeader,
        principal: Principal,
        claim: Claim,
    ) -> None:
        """`echo` sends the response, `claim` is the slot of the request."""
        self.scope = scope
        self.headers = headers
        self.receive = receive
        self.echo = echo
        self.send: wire.Send = echo
        self.principal = principal
        self.claim = claim
        self.version = headers.text(wire.VERSION)
        """The protocol revision of the header."""
        self.replies = Replies()
        """Work that runs after the responses have been sent."""
        self.streams = wire.accepts(headers, wire.EVENTS, missing=False)
        """True if the client accepts a stream of events."""

    @property
    def session(self) -> str | None:
        """The session id of the header, or of the session that begins with this request."""
        return self.echo.session

    @property
    def is_json(self) -> bool:
        """True if the body is declared as JSON that is not compressed."""
        kind, _, _ = (self.headers.first(b"content-type") or b"").partition(b";")
        coding = self.headers.first(b"content-encoding")
        return kind.strip().lower() == wire.JSON and (coding is None or coding.lower() == b"identity")

    async def answer(self, status: int, body: bytes = b"") -> None:
        """Send a whole response."""
        await wire.answer(self.send, status, body)

    async def refuse(self, status: int, code: int, message: str, request: Any = None, data: Any = None) -> None:
        """Send an error response."""
        await self.answer(status, wire.error(request, code, message, data))


class SessionHeader:
    """Sends the messages of one response, with the id of a session that begins in its headers.

    The guard repeats the client's own id in every response.
    """

    __slots__ = ("_begun", "_send", "is_valid", "session")

    def __init__(self, headers: RequestHeaders, send: wire.Send) -> None:
        given, self.is_valid = session_of(headers)
        self.session = None if given is None else given.decode("ascii")
        """The client's id, or that of a session which begins; None for no session."""
        self._begun = False
        self._send = send

    def begin(self, session: str) -> None:
        """Name a new session in the response."""
        self.session, self._begun = session, True

    def __call__(self, message: wire.Message) -> Awaitable[None]:
        """See ASGI's `send`."""
        if self._begun and self.session is not None and message["type"] == "http.response.start":
            headers = [*message["headers"], (SESSION, self.session.encode("ascii"))]
            message = {**message, "headers": headers}
        return self._send(message)


async def read(body: bytes, threads: Threads) -> Any:
    """Returns the JSON of a body, see `parse`; a large one is read in a thread. Raises `ValueError` also if it has too
    many values.
    """
    size = size_of(body)
    if size is Size.TOO_LARGE:
        raise ValueError(f"more than {MOST_VALUES} values")
    return parse(body) if size is Size.QUICK else await threads.run(parse, body)


def resolve(soft: ClientState, message: dict[str, Any]) -> None:
    """Give the answer of the client to the handler that waits for it."""
    future = soft.waiting.get(message.get("id") if isinstance(message.get("id"), str) else "")  # type: ignore[arg-type]
    if future is None or future.done():
        return
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict):
        future.set_result(result)
    else:
        known = error if isinstance(error, dict) else {}
        code, text = known.get("code"), known.get("message")
        future.set_exception(MCPError(code if isinstance(code, int) else -32603, str(text)[:500], None))


def wrong(message: Any) -> str | None:
    """Returns why JSON is not a message; None if it is one."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return "Invalid Request: not a JSON-RPC 2.0 message"
    if "method" in message:
        params = message.get("params")
        if not isinstance(message["method"], str) or not (params is None or isinstance(params, dict)):
            return "Invalid Request: method must be a string and params an object"
        if "id" in message and not is_id(message["id"]):
            return "Invalid Request: the id must be a string or an integer"
        if "result" in message or "error" in message:
            return "Invalid Request: both a request and a response"
    elif "id" not in message or ("result" in message) == ("error" in message):
        return "Invalid Request: neither a request nor a response"
    return None


def tool_of(message: dict[str, Any]) -> Any:
    """Returns the name of the tool that a request may call: by tools/call or, if it is a method too, by its own name."""
    return message["method"] if message["method"] != "tools/call" else (message.get("params") or {}).get("name")


def is_plain_call(message: dict[str, Any]) -> bool:
    """Returns True if a request is a tools/call whose parameters the SDK need not check."""
    params = message.get("params") or {}
    arguments = params.get("arguments")
    has_arguments = arguments is None or isinstance(arguments, dict)
    return message["method"] == "tools/call" and has_arguments and _is_plain(params.get("_meta"))


def _is_plain(meta: Any) -> bool:
    """Returns True if `_meta` is absent, or its values have the types that the protocol names."""
    if meta is None:
        return True
    return (
        isinstance(meta, dict)
        and is_id(meta.get("progressToken", ""))
        and isinstance(meta.get(CLIENT_CAPABILITIES_META_KEY, meta), dict)
        and isinstance(meta.get(CLIENT_INFO_META_KEY, meta), dict)
    )


def id_of(message: Any) -> Any:
    """Returns the id of something that may be a request; None if it has none."""
    given = message.get("id") if isinstance(message, dict) else None
    return given if is_id(given) else None


def is_id(value: Any) -> bool:
    """Returns True if a JSON value is a request id: a string or an integer."""
    return type(value) is str or type(value) is int  # True and False are not integers


def key(request: Any) -> tuple[str, Any] | None:
    """Returns a request id as a key that tells 1 from "1"; None if it is no id."""
    return (type(request).__name__, request) if is_id(request) else None
