"""The rival: a hello-world server of the bare SDK, as its documentation shows it."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    tool = types.Tool(name="hello", description="Says hello.", input_schema={"type": "object", "properties": {}})
    return types.ListToolsResult(tools=[tool])


async def call_tool(_context: Any, _params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text="hello")])


async def main() -> None:
    server: Server[Any] = Server("hello", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
