"""A server of the contract as an agent's client has it: a process, and results and errors that are read from their text."""

from __future__ import annotations

import json
import time
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import tests.servers
from tests.client import OPENBELL, Client
from tests.contracts.tradestream.schemas import check_result, check_returns

CONTRACTS = Path(tests.servers.__file__).parent / "contracts"
STANDARD_CODES = {"DATABASE_ERROR", "GRPC_ERROR", "TIMEOUT", "INVALID_PARAMETER", "NOT_FOUND", "UNAUTHORIZED"}


def contract_of(server: str) -> dict[str, Any]:
    """The contract's tools of a server by name."""
    return {tool["name"]: tool for tool in json.loads((CONTRACTS / f"{server}.json").read_text())}


class Agent:
    """One server as a process, connected. Use as a context manager."""

    def __init__(self, home: Path, server: str, *flags: str, **settings: str) -> None:
        self.contract = contract_of(server)
        self.client = Client(home, command=[*OPENBELL, "mcp", server, *flags], **{"TIMEOUT": "60", **settings})
        try:
            self.name = self.client.initialize()["serverInfo"]["name"]
        except BaseException:
            self.client.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__()

    @cached_property
    def tools(self) -> dict[str, Any]:
        """The tools that the server lists, by name."""
        return {tool["name"]: tool for tool in self.client.request("tools/list")["result"]["tools"]}

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The whole result of a call."""
        response = self.client.call(tool, arguments)
        assert "result" in response, response
        found: dict[str, Any] = response["result"]
        return found

    def answer(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The object of a result that is no error."""
        found = self.result(tool, **arguments)
        assert found["isError"] is False, found
        payload: dict[str, Any] = json.loads(found["content"][0]["text"])
        assert found["structuredContent"] == payload
        return payload

    def data(self, tool: str, **arguments: Any) -> Any:
        """What a tool returns."""
        return self.answer(tool, **arguments)["data"]

    def returned(self, tool: str, **arguments: Any) -> Any:
        """What a tool returns, after its schema and its values were compared with the contract's `returns`."""
        wanted, found = self.contract[tool]["returns"], self.data(tool, **arguments)
        check_returns(self.tools[tool], wanted)
        check_result(tool, found, wanted)
        return found

    def metadata(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The metadata of a result."""
        found: dict[str, Any] = self.answer(tool, **arguments)["_metadata"]
        return found

    def refusal(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The object of an error, read as clients do: from the text alone."""
        found = self.result(tool, **arguments)
        assert found["isError"] is True, found
        payload: dict[str, Any] = json.loads(found["content"][0]["text"])
        return payload

    def error(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a call; its code is one that the contract declares."""
        found: dict[str, Any] = self.refusal(tool, **arguments)["error"]
        declared = {each["code"] for each in self.contract[tool]["errors"]}
        assert found["code"] in declared | STANDARD_CODES, found
        assert found["message"]
        return found

    def code(self, tool: str, **arguments: Any) -> str:
        """The code of the error of a call."""
        return str(self.error(tool, **arguments)["code"])

    def send(self, number: str, tool: str, **arguments: Any) -> None:
        """Call a tool without waiting for its result; `client.response(number)` returns it."""
        params = {"name": tool, "arguments": arguments}
        self.client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def check_cache(agent: Agent, tool: str, seconds: float, **arguments: Any) -> None:
    """A result is cached for so long; force_refresh computes it again, and the next call returns the new one."""
    for _ in range(2):
        began = time.monotonic()
        fresh = agent.metadata(tool, **arguments, force_refresh=True)
        assert (fresh["cached"], fresh["cache_ttl_remaining"]) == (False, None)
        cached = agent.metadata(tool, **arguments)
        assert cached["cached"] is True
        # Not older than the refresh: the entry that was there before it is older. Milliseconds are rounded.
        age, most = seconds - cached["cache_ttl_remaining"], time.monotonic() - began
        assert 0 <= age <= most + 0.001
