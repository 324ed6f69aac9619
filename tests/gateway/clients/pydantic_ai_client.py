"""Calls tools of the servers on standard input with pydantic-ai; runs in an environment of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp.shared.exceptions import MCPError
from pydantic_ai import ModelRetry
from pydantic_ai.mcp import MCPToolset

MODES = {"legacy": "legacy", "modern": "2026-07-28"}
AT_ONCE = 3


def transport_of(server: dict[str, Any], transport: str) -> Any:
    if transport == "http":
        return StreamableHttpTransport(server["url"], headers={"Authorization": f"Bearer {server['token']}"})
    program, *arguments = server["command"]
    return StdioTransport(program, arguments, env=server["environment"], keep_alive=False)


def watch(client: Any) -> list[bool]:
    """Note of each result whether it has structuredContent, which pydantic-ai does not tell of errors."""
    call_tool, noted = client.call_tool, []

    async def noting(*given: Any, **more: Any) -> Any:
        found = await call_tool(*given, **more)
        noted.append(found.structured_content is not None)
        return found

    client.call_tool = noting
    return noted


async def call(toolset: Any, noted: list[bool], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    noted.clear()
    try:
        found = await toolset.direct_call_tool(tool, arguments)
    except ModelRetry as refused:  # what a model reads of an error
        code = refused.__cause__.error.code if isinstance(refused.__cause__, MCPError) else None
        return {"is_error": True, "text": str(refused), "structured": noted == [True], "code": code}
    return {"is_error": False, "text": json.dumps(found, default=str), "structured": noted == [True], "code": None}


async def see(server: dict[str, Any], transport: str, era: str) -> dict[str, Any]:
    client: Any = Client(transport_of(server, transport), mode=MODES[era])
    noted = watch(client)
    async with MCPToolset(client) as toolset:
        tools = await toolset.list_tools()
        return {
            "name": server["name"],
            "transport": transport,
            "era": era,
            "revision": client.protocol_version,
            "tools": [tool.name for tool in tools],
            "answers": [await call(toolset, noted, each["tool"], each["arguments"]) for each in server["calls"]],
        }


async def main() -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(server: dict[str, Any], transport: str, era: str) -> dict[str, Any]:
        async with free:
            return await see(server, transport, era)

    servers = json.load(sys.stdin)
    work = [one(server, *route) for server in servers for route in server["routes"]]
    json.dump(await asyncio.gather(*work), sys.stdout)


asyncio.run(main())
