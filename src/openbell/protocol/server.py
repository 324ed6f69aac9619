"""A service on the official SDK's low-level server: every protocol revision that it knows."""

from __future__ import annotations

import logging
from base64 import b64encode
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from openbell import __version__
from openbell.desk.desk import Desk
from openbell.protocol.call import LOCAL_OPERATOR, Call, Connection, Notify
from openbell.protocol.dialects import Reply
from openbell.protocol.finite import finite_or_null
from openbell.protocol.replies import Replies
from openbell.protocol.service import Runner, Service
from openbell.protocol.tool import Tool
from openbell.protocol.truth import TRUTH

log = logging.getLogger(__name__)
Context = ServerRequestContext[Any, Any]


class _MethodParams(types.RequestParams):
    """Parameters of a method of our own: any, checked by the tool behind it."""

    model_config = ConfigDict(extra="allow")


class _Notification(BaseModel):
    method: str
    params: dict[str, Any]


def build(service: Service, desk: Desk, replies: Replies | None = None) -> Server[Any]:
    """The SDK server of a service; `replies` is told by the transport when an answer has left."""
    runner = Runner(service, desk)
    offered = service.offered(desk)
    listing: list[types.ListToolsResult] = []
    connection = Connection()
    # Whoever may be alerted is, from the first call on: the subscription may be an earlier process's.
    pushes = desk.settings.trade and not desk.settings.read_only and any(tool.trade for tool in service.tools)

    async def list_tools(context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        if pushes:
            desk.trading.push_to(connection, LOCAL_OPERATOR.subject, _notifier(context))
        if not listing:
            listing.append(types.ListToolsResult(tools=[declare(tool, service) for tool in offered]))
        return listing[0]

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Any:
        if params.name not in service.by_name:
            raise MCPError(service.dialect.unknown_tool, service.unknown(params.name), None)
        call = Call(desk, notify=_notifier(context), connection=connection)
        if replies is not None:
            call.later = partial(replies.hold, context.request_id)
        if pushes:
            desk.trading.push_to(connection, call.principal.subject, call.notify)
        result = _wire(await runner.run(params.name, params.arguments or {}, call))
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            result["resultType"] = "complete"
        return result

    server: Server[Any] = Server(
        service.name,
        version=__version__,
        title=service.title,
        instructions=_instructions(service, desk),
        get_tool_input_schema=lambda name: service.by_name[name].input_schema if name in service.by_name else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # The SDK's tracing spans go nowhere without an exporter, and every call would pay for them.
    server.middleware.clear()
    for tool in service.tools:
        if tool.method:
            server.add_request_handler(tool.name, _MethodParams, _method(tool, runner, desk))
    return server


def _method(tool: Tool, runner: Runner, desk: Desk) -> Any:
    """The handler of a tool that is also a JSON-RPC method: the result is the payload itself."""

    async def handle(context: Context, _params: _MethodParams) -> dict[str, Any]:
        arguments = {key: value for key, value in (context.params or {}).items() if key != "_meta"}
        reply = await runner.run(tool.name, arguments, Call(desk, notify=_notifier(context)))
        _raise_if_rpc_error(reply)
        return {**(reply.payload or {}), "_meta": {TRUTH: reply.truth}}

    return handle


def _notifier(context: Context) -> Notify:
    session = context.session

    async def notify(method: str, params: dict[str, Any]) -> None:
        await session.send_notification(_Notification(method=method, params=finite_or_null(params)))  # type: ignore[arg-type]

    return notify


def _wire(reply: Reply) -> dict[str, Any]:
    """The result of tools/call: images, then the whole JSON as text, and the same object."""
    _raise_if_rpc_error(reply)
    content: list[dict[str, Any]] = [
        {"type": "image", "data": b64encode(image.data).decode(), "mimeType": image.mime} for image in reply.images
    ]
    if reply.text is not None:
        content.append({"type": "text", "text": reply.text})
    elif reply.payload is not None:
        content.append({"type": "text", "text": to_json(reply.payload, inf_nan_mode="null").decode()})
    result = {"content": content, "isError": reply.is_error, "_meta": {TRUTH: reply.truth}}
    if reply.payload is not None and reply.text is None:
        result["structuredContent"] = reply.payload
    return result


def _raise_if_rpc_error(reply: Reply) -> None:
    if reply.code is not None:
        failure = reply.payload or {}
        raise MCPError(reply.code, failure["message"], failure.get("data"))


def declare(tool: Tool, service: Service) -> types.Tool:
    """What `tools/list` says of a tool."""
    declared = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }
    if tool.output_schema:
        declared["outputSchema"] = service.dialect.schema(tool.output_schema)
    return types.Tool.model_validate(declared)


def _instructions(service: Service, desk: Desk) -> str:
    said = {
        "simulated": "All market data is SIMULATED, not real.",
        "imported": "Market data is what was imported on this machine; nothing is live.",
        "replay": "Market data is a replay of stored bars, not live.",
        "live": f"Market data comes live from {desk.settings.feed}.",
    }[desk.data]
    if any(tool.trade for tool in service.tools) and desk.settings.trade:
        money = "LIVE: orders move real money." if desk.account == "live" else "on PAPER: no real money moves."
        said = f"{said} Trading is {money}"
    return f"{said} {service.instructions}"
