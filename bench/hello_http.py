"""The rival over HTTP: a hello-world server of the bare SDK with its session manager, on the port that is given."""

from __future__ import annotations

import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    tool = types.Tool(name="hello", description="Says hello.", input_schema={"type": "object", "properties": {}})
    return types.ListToolsResult(tools=[tool])


async def call_tool(_context: Any, _params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text="hello")])


server: Server[Any] = Server("hello", on_list_tools=list_tools, on_call_tool=call_tool)
sessions = StreamableHTTPSessionManager(server, json_response=True)


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "lifespan":
        await sessions.handle_request(scope, receive, send)
        return
    await receive()
    async with sessions.run():
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})


uvicorn.run(app, port=int(sys.argv[1]), http="h11", loop=sys.argv[2], access_log=False, log_level="error")
