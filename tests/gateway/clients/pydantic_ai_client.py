"""Connects to the servers on standard input with pydantic-ai; runs in an environment of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import ModelRetry
from pydantic_ai.mcp import MCPToolset

MODES = {"legacy": "legacy", "modern": "2026-07-28"}
AT_ONCE = 3


def transport_of(server: dict[str, Any], transport: str) -> Any:
    if transport == "http":
        return StreamableHttpTransport(server["url"], headers={"Authorization": f"Bearer {server['token']}"})
    program, *arguments = server["command"]
    return StdioTransport(program, arguments, env=server["environment"], keep_alive=False)


async def see(server: dict[str, Any], transport: str, era: str) -> dict[str, Any]:
    client: Any = Client(transport_of(server, transport), mode=MODES[era])
    async with MCPToolset(client) as toolset:
        tools = await toolset.list_tools()
        try:
            text, is_error = json.dumps(await toolset.direct_call_tool(server["tool"], server["arguments"])), False
        except ModelRetry as refused:  # what a model reads of an error
            text, is_error = str(refused), True
        return {
            "name": server["name"],
            "transport": transport,
            "era": era,
            "revision": client.protocol_version,
            "tools": [tool.name for tool in tools],
            "is_error": is_error,
            "text": text,
        }


async def main() -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(server: dict[str, Any], transport: str, era: str) -> dict[str, Any]:
        async with free:
            return await see(server, transport, era)

    servers = json.load(sys.stdin)
    work = [one(server, "stdio", server["stdio_era"]) for server in servers if server["stdio_era"]]
    work += [one(server, "http", era) for server in servers for era in MODES]
    json.dump(await asyncio.gather(*work), sys.stdout)


asyncio.run(main())
