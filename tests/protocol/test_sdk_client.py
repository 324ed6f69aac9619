"""The official client against our server, in both eras of the protocol: what a real agent's host does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from tests.client import OPENBELL, environment
from tests.launching import loaded


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_lists_and_calls_everything(tmp_path: Path, mode: Any) -> None:
    async def main() -> None:
        command = [*OPENBELL, "mcp", "chart-signals"]
        program, *words = command if mode == "legacy" else loaded(command)
        parameters = StdioServerParameters(command=program, args=words, env=environment(tmp_path))
        async with Client(stdio_client(parameters), mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == {
                "get_signals",
                "get_watchlist",
                "check_market_status",
                "get_storage_info",
                "get_capabilities",
                "subscribe_alerts",
                "unsubscribe_alerts",
            }
            reads = [tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint]
            assert len(reads) == 5
            # The client checks each result against the tool's output schema.
            for name in reads:
                arguments = {"symbol": "NASDAQ:AAPL", "timeframe": "5min"} if name == "get_signals" else {}
                result: Any = await client.call_tool(name, arguments)
                assert result.is_error is False
                assert result.structured_content
            with pytest.raises(MCPError) as refused:
                await client.call_tool("get_signals", {"symbol": "AAPL", "timeframe": "7min"})
            assert refused.value.error.code == -32003

    asyncio.run(main())
