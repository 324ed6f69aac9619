"""A server with everything that the suite asks for, on the SDK's low-level server and the gateway's transport.

`python -m tests.gateway.conformance.everything` serves it on a free port, which it prints.
"""

from __future__ import annotations

import asyncio
import re
import socket
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPDeprecationWarning

from openbell.desk.settings import Settings
from openbell.gateway.admission import Admission
from openbell.gateway.app import guarded
from openbell.gateway.calls import CallWatch
from openbell.gateway.guard.connections import server_options
from openbell.gateway.guard.metrics import GatewayMetrics
from openbell.gateway.streamable import wire
from openbell.gateway.streamable.endpoint import Endpoint
from openbell.gateway.streamable.pushes import Listening, PushStreams
from openbell.protocol.dialects import JsonRpcDialect
from openbell.protocol.sdk import MCPError, Server
from openbell.protocol.service import Service
from openbell.protocol.session import Principal
from tests.gateway.conformance import client_input, fixtures
from tests.gateway.conformance.fixtures import INVALID_PARAMS, PROMPTS, RESOURCES, TEMPLATE, Context

NAME = "openbell-conformance"
TOOLS = {**fixtures.TOOLS, **client_input.TOOLS}
_FROM_TEMPLATE = re.compile("test://template/([^/]+)/data")
_CACHEABLE = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")


def pushed(_principal: Principal) -> frozenset[str]:
    """The methods that tools send to all streams."""
    return frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))


async def _list_tools(_context: Context, _params: Any) -> dict[str, Any]:
    return {
        "tools": [
            {"name": name, "description": each.description, "inputSchema": each.schema} for name, each in TOOLS.items()
        ]
    }


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
    if params.name not in TOOLS:
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}", None)
    return await TOOLS[params.name].handler(context, params)


async def _list_resources(_context: Context, _params: Any) -> dict[str, Any]:
    listed = [
        {"uri": uri, "name": uri, "description": uri, "mimeType": each["mimeType"]} for uri, each in RESOURCES.items()
    ]
    return {"resources": listed}


async def _list_templates(_context: Context, _params: Any) -> dict[str, Any]:
    return {"resourceTemplates": [{"uriTemplate": TEMPLATE, "name": "template", "mimeType": "application/json"}]}


async def _read_resource(_context: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
    uri = str(params.uri)
    if (found := _FROM_TEMPLATE.fullmatch(uri)) is not None:
        data = f'{{"id":"{found[1]}","templateTest":true,"data":"Data for ID: {found[1]}"}}'
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": data}]}
    if uri not in RESOURCES:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, **RESOURCES[uri]}]}


async def _list_prompts(_context: Context, _params: Any) -> dict[str, Any]:
    return {
        "prompts": [
            {"name": name, "description": name, "arguments": [{"name": each, "required": True} for each in arguments]}
            for name, arguments in PROMPTS.items()
        ]
    }


async def _get_prompt(context: Context, params: types.GetPromptRequestParams) -> dict[str, Any]:
    if params.name == "test_input_required_result_prompt":
        given = client_input.answers(context)
        if "user_context" not in given:
            return client_input.asked(client_input.PROMPT_INPUT)
        contents = [fixtures.text(f"The context is {given['user_context']['content']['context']}.")]
    elif params.name not in PROMPTS or not set(PROMPTS[params.name]) <= set(params.arguments or {}):
        raise MCPError(INVALID_PARAMS, f"Unknown prompt or missing argument: {params.name}", None)
    else:
        contents = fixtures.messages(params.name, params.arguments or {})
    return {"messages": [{"role": "user", "content": each} for each in contents]}


async def _complete(_context: Context, params: types.CompleteRequestParams) -> dict[str, Any]:
    values = [each for each in ("paris", "park", "party", "test") if each.startswith(params.argument.value)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


async def _nothing(_context: Context, _params: Any) -> Any:
    return {}


def _typed(handler: Callable[[Context, Any], Awaitable[dict[str, Any]]]) -> Callable[[Context, Any], Awaitable[Any]]:
    """A handler whose results name their type, as 2026-07-28 requires; the SDK removes it in earlier revisions."""

    async def handle(context: Context, params: Any) -> Any:
        return {"resultType": "complete", **await handler(context, params)}

    return handle


def build(listen: Listening) -> Server[Any]:
    """The SDK's server."""
    server: Server[Any] = Server(
        NAME,
        version="1",
        cache_hints={method: CacheHint(60_000, "public") for method in _CACHEABLE},  # type: ignore[misc]
        get_tool_input_schema=lambda name: TOOLS[name].schema if name in TOOLS else None,
        on_list_tools=_typed(_list_tools),
        on_call_tool=_typed(_call_tool),
        on_list_resources=_typed(_list_resources),
        on_list_resource_templates=_typed(_list_templates),
        on_read_resource=_typed(_read_resource),
        on_subscribe_resource=_nothing,
        on_unsubscribe_resource=_nothing,
        on_list_prompts=_typed(_list_prompts),
        on_get_prompt=_typed(_get_prompt),
        on_completion=_typed(_complete),
        on_subscriptions_listen=listen,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _nothing)
    server.middleware[:] = [RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)]
    return server


SETTINGS = Settings(rate_read=0)


class _NoTokens:
    async def principal(self, _token: str, _resource: str) -> Principal | None:
        return None


def application(port: int) -> Any:
    """The ASGI application: clients on this machine need no token."""
    pushes = PushStreams(lambda: None)
    resource = f"http://localhost:{port}/mcp"
    endpoint = Endpoint(
        NAME,
        Service(NAME, NAME, "", (), JsonRpcDialect({})),
        build(Listening(pushes, pushed)),
        resource=resource,
        admission=Admission(_NoTokens(), lambda *_: "Bearer", open_reading=True),
        pushes=pushes,
        pushed=pushed,
        watch=CallWatch(SETTINGS, GatewayMetrics({}), None),
    )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/mcp":
            await endpoint(scope, receive, send)
        else:
            await wire.answer(send, 404)

    return guarded(app, SETTINGS, port)


def main() -> None:
    """Serve until this process is killed."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config = uvicorn.Config(application(port), lifespan="off", **server_options(SETTINGS))
        print(port, flush=True)
        asyncio.run(uvicorn.Server(config).serve([listener]))


if __name__ == "__main__":
    main()
