"""Serves a service through the official SDK's low-level server, in every protocol revision that the SDK supports."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from openbell import __version__
from openbell.desk.settings import Settings
from openbell.feeds.registry import feed_of
from openbell.market.errors import OpenbellError
from openbell.market.provenance import TRUTH
from openbell.protocol.dialects import Reply
from openbell.protocol.json_text import finite_or_null
from openbell.protocol.sdk import MODERN_PROTOCOL_VERSIONS, MCPError, Server, ServerRequestContext, types
from openbell.protocol.service import Runner, Service
from openbell.protocol.session import Notify, Principal, Replies, Scope, Session
from openbell.protocol.tool import Tool

log = logging.getLogger(__name__)
Context = ServerRequestContext[Any, Any]


class _MethodParams(types.RequestParams):
    """Parameters of a method outside the protocol: any; the tool behind it checks them."""

    model_config = ConfigDict(extra="allow")


class _Notification(BaseModel):
    method: str
    params: dict[str, Any]


def build(
    runner: Runner, session_of: Callable[[Context], Session], *, pushes: bool = True, listen: Any = None
) -> Server[Any]:
    """Returns the SDK server of a service, for all clients of a transport; `session_of` returns a request's session.

    With `pushes`, notifications are sent to each session; otherwise the transport has streams for them. `listen` serves
    the method subscriptions/listen.
    """
    service = runner.service
    handlers = _Handlers(runner, session_of, pushes)
    server: Server[Any] = Server(
        service.name,
        version=__version__,
        title=service.title,
        instructions=_instructions(service, runner.desk.settings),
        get_tool_input_schema=lambda name: service.by_name[name].input_schema if name in service.by_name else None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        **({"on_subscriptions_listen": listen} if listen else {}),
    )
    # Replaces the SDK's tracing, whose spans are discarded without an exporter.
    server.middleware[:] = [_add_structured_content]
    server.add_notification_handler("notifications/initialized", types.NotificationParams, handlers.initialized)
    for tool in service.tools:
        if tool.method:
            server.add_request_handler(tool.name, _MethodParams, handlers.method(tool))
    return server


class _Handlers:
    """The SDK server's handlers of requests and notifications."""

    def __init__(self, runner: Runner, session_of: Callable[[Context], Session], pushes: bool) -> None:
        self._runner = runner
        self._service = runner.service
        self._session_of = session_of
        self._listing: types.ListToolsResult | None = None
        settings = runner.desk.settings
        trades = any(tool.scope is Scope.TRADE for tool in runner.service.tools)
        self._pushes = pushes and settings.trade and not settings.read_only and trades

    async def initialized(self, context: Context, _params: types.NotificationParams | None) -> None:
        await self._opened(context)

    async def list_tools(self, context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        await self._opened(context)
        if self._listing is None:
            tools = [declare(tool, self._service) for tool in self._runner.offered]
            self._listing = types.ListToolsResult(tools=tools)
        return self._listing

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> Any:
        result = await call_tool(
            self._runner, params.name, params.arguments or {}, await self._opened(context), context.request_id
        )
        if "structuredContent" in result:
            _structured_content.set(result["structuredContent"])
            result["structuredContent"] = {}
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            result["resultType"] = "complete"
        return result

    def method(self, tool: Tool) -> Any:
        """Returns the handler of a tool that is also a JSON-RPC method: its result is the payload itself."""

        async def handle(context: Context, _params: _MethodParams) -> dict[str, Any]:
            arguments = {key: value for key, value in (context.params or {}).items() if key != "_meta"}
            reply = await self._runner.run(tool.name, arguments, self._session_of(context), context.request_id)
            _raise_if_rpc_error(reply)
            return {**(reply.payload or {}), "_meta": {TRUTH: reply.truth}}

        return handle

    async def _opened(self, context: Context) -> Session:
        """Returns the session of a request. From its first request on, notifications are pushed to its client: the
        subscription may have been made by an earlier process.
        """
        session = self._session_of(context)
        if self._pushes:
            trading = self._runner.desk.trading
            trading.push_to(session, session.principal.subject, session.notify)
            with suppress(OpenbellError):  # get_notifications raises it again
                await session.reader(trading.inbox).begin()
        return session


async def call_tool(
    runner: Runner, name: str, arguments: dict[str, Any], session: Session, request: Any
) -> dict[str, Any]:
    """Returns the result of tools/call. Raises `MCPError` if there is no such tool, or if the contract's errors are."""
    service = runner.service
    if name not in service.by_name:
        raise MCPError(service.dialect.unknown_tool, service.unknown(name), None)
    return _wire(await runner.run(name, arguments, session, request))


_structured_content: ContextVar[dict[str, Any] | None] = ContextVar("structured_content", default=None)


async def _add_structured_content(ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
    """Put the payload of a tool into the result in place of an empty object, after the SDK has checked the result.

    The SDK copies what it checks, which takes 2 ms for 1,000 candles.
    """
    result = await call_next(ctx)
    if isinstance(result, dict) and "structuredContent" in result:
        result["structuredContent"] = _structured_content.get()
    return result


def one_client(principal: Principal, replies: Replies) -> Callable[[Context], Session]:
    """Returns a `session_of` for a transport with one client: its session is created at the first request."""
    made: list[Session] = []

    def session_of(context: Context) -> Session:
        if not made:
            made.append(Session(principal, _notifier(context), replies))
        return made[0]

    return session_of


def _notifier(context: Context) -> Notify:
    client = context.session

    async def notify(method: str, params: dict[str, Any]) -> None:
        await client.send_notification(_Notification(method=method, params=finite_or_null(params)))  # type: ignore[arg-type]

    return notify


def _wire(reply: Reply) -> dict[str, Any]:
    """Returns the result of tools/call: images, then the payload as JSON text and as structuredContent.

    A payload that has the images too comes first. An error has no structuredContent: clients check it against the tool's
    outputSchema, which describes results, and would raise their own error instead of showing this one.
    """
    _raise_if_rpc_error(reply)
    images: list[dict[str, Any]] = [
        {"type": "image", "data": b64encode(image.data).decode(), "mimeType": image.mime} for image in reply.images
    ]
    texts: list[dict[str, Any]] = []
    if reply.text is not None:
        texts.append({"type": "text", "text": reply.text})
    elif reply.payload is not None:
        texts.append({"type": "text", "text": to_json(reply.payload, inf_nan_mode="null").decode()})
    content = [*texts, *images] if reply.repeated else [*images, *texts]
    if reply.note is not None:
        content.append({"type": "text", "text": reply.note})
    result = {"content": content, "isError": reply.is_error, "_meta": {TRUTH: reply.truth}}
    if reply.payload is not None and not reply.is_error:
        result["structuredContent"] = reply.payload
    return result


def _raise_if_rpc_error(reply: Reply) -> None:
    if reply.code is not None:
        failure = reply.payload or {}
        raise MCPError(reply.code, failure["message"], failure.get("data"))


def declare(tool: Tool, service: Service) -> types.Tool:
    """Returns the entry of a tool in `tools/list`."""
    declared = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }
    if tool.output_schema:
        declared["outputSchema"] = service.dialect.schema(tool.output_schema)
    return types.Tool.model_validate(declared)


def _instructions(service: Service, settings: Settings) -> str:
    text = {
        "simulated": "All market data is SIMULATED, not real.",
        "imported": "Market data is what was imported on this machine; nothing is live.",
        "replay": "Market data is a replay of stored bars, not live.",
        "live": f"Market data comes live from {settings.feed}.",
    }[feed_of(settings.feed).origin]
    if notice := feed_of(settings.feed).notice:
        text = f"Market data comes from {settings.feed} ({notice})."
    if name := service.remote(settings) if service.remote else "":
        text = f"Market data comes from {name}, not from this desk's feed."
    if settings.trade and any(tool.scope is Scope.TRADE for tool in service.tools):
        money = "LIVE: orders move real money." if settings.account_kind == "live" else "on PAPER: no real money moves."
        text = f"{text} Trading is {money}"
    return f"{text} {service.instructions}"
