"""Desks for the tests of the trading servers, in this process where a process of its own adds nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import cache, wraps
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec

import jsonschema_rs
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for

from openbell.desk.desk import Desk
from openbell.desk.settings import load as settings_of
from openbell.protocol.dialects import Reply
from openbell.protocol.service import Runner
from openbell.protocol.session import LOCAL_OPERATOR, Principal, Scope
from openbell.servers import load
from tests.client import Client
from tests.sessions import answered
from tests.stores.records.postgres_server import PostgresServer

P = ParamSpec("P")
OTHER = Principal("other", frozenset(Scope))
_numbers = count(1)


def fresh_database(server: PostgresServer) -> str:
    """The address of a new, empty database on a server."""
    name = f"desk{next(_numbers)}"
    server.ask(f"CREATE DATABASE {name}")
    return f"{server.url.rpartition('/')[0]}/{name}"


def awaited(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that awaits, as one that does not."""

    @wraps(test)
    def whole(*given: P.args, **named: P.kwargs) -> None:
        asyncio.run(test(*given, **named))

    return whole


@cache
def _checked_schema(server: str, tool: str) -> tuple[Any, jsonschema_rs.Validator] | None:
    """Returns the schema of a tool's results and its validator, which is that of schemathesis: the other one takes 33 ms
    instead of 0.2 ms for a thousand bars. It checks the schema when it is made, once for each process."""
    service = load(server)
    if not (result := service.by_name[tool].output_schema):
        return None
    schema = service.dialect.schema(result)
    return schema, jsonschema_rs.validator_for(schema)


def check_result(server: str, tool: str, payload: Any) -> None:
    """Raises an error that explains itself if a payload is not what the tool's schema describes."""
    found = _checked_schema(server, tool)
    if found and not found[1].is_valid(payload):
        schema, validator = found
        raise best_match(validator_for(schema)(schema).iter_errors(payload)) or next(validator.iter_errors(payload))


class Bench:
    """One desk and the servers on it, as one process has them."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._runners: dict[str, Runner] = {}

    async def reply(
        self, server: str, tool: str, arguments: dict[str, Any], principal: Principal = LOCAL_OPERATOR
    ) -> Reply:
        """The reply to one call, checked against its schema."""
        runner = self._runners.setdefault(server, Runner(load(server), self.desk))
        reply = await answered(runner, tool, arguments, principal)
        if not reply.is_error:
            check_result(server, tool, reply.payload)
        return reply

    async def ask(self, server: str, tool: str, principal: Principal = LOCAL_OPERATOR, **arguments: Any) -> Any:
        """What a tool answers; TradeStream's without the envelope."""
        reply = await self.reply(server, tool, arguments, principal)
        assert not reply.is_error, reply.payload
        return reply.payload["data"] if "_metadata" in reply.payload else reply.payload

    async def refused(self, server: str, tool: str, principal: Principal = LOCAL_OPERATOR, **arguments: Any) -> Any:
        """The error of a call: chartgen's text, TradeStream's error object."""
        reply = await self.reply(server, tool, arguments, principal)
        assert reply.is_error, reply.payload
        return reply.payload["error"]

    async def chartgen(self, tool: str, **arguments: Any) -> Any:
        """An answer of chartgen to the operator."""
        return await self.ask("chartgen", tool, **arguments)

    async def no(self, tool: str, **arguments: Any) -> str:
        """Why chartgen refuses the operator something."""
        return str(await self.refused("chartgen", tool, **arguments))

    async def entries(self) -> int:
        """How long the ledger is."""
        from openbell.stores.records.journal import head_of

        return (await self.desk.trading.records.read(lambda view: head_of(view.connection))).seq


@asynccontextmanager
async def bench_as_found(home: Path, as_of: str = "", **settings: str) -> AsyncIterator[Bench]:
    """A desk that may trade, with orders and alerts as they were left."""
    given = {"HOME": str(home), "AS_OF": as_of, "TRADE": "1", "TIMEOUT": "60", **settings}
    desk = Desk(settings_of({f"OPENBELL_{name}": value for name, value in given.items()}))
    try:
        yield Bench(desk)
    finally:
        await desk.close()
        # A desk ends its process's threads with itself; here the next desk lives in the same loop.
        loop: Any = asyncio.get_running_loop()
        loop._default_executor, loop._executor_shutdown_called = None, False


@asynccontextmanager
async def bench(home: Path, as_of: str = "", **settings: str) -> AsyncIterator[Bench]:
    """The same, when what became of orders and alerts until then has been done, as `openbell call` does it."""
    async with bench_as_found(home, as_of, **settings) as made:
        await made.desk.trading.catch_up()
        yield made


def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call over the pipes; its text is the same object, and only an error has no other."""
    answer: dict[str, Any] = client.call(tool, arguments)["result"]
    if answer["isError"]:
        assert "structuredContent" not in answer
    else:
        assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
    return answer


def payload(result: dict[str, Any]) -> dict[str, Any]:
    """The object of a result, or of an error, as an agent reads it."""
    found: dict[str, Any] = json.loads(result["content"][0]["text"])
    return found


def data(client: Client, tool: str, **arguments: Any) -> Any:
    """The data of a TradeStream answer."""
    answer = ask(client, tool, **arguments)
    assert answer["isError"] is False, answer
    return answer["structuredContent"]["data"]


def metadata(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a TradeStream answer says about itself."""
    answer = ask(client, tool, **arguments)
    assert answer["isError"] is False, answer
    found: dict[str, Any] = answer["structuredContent"]["_metadata"]
    assert set(found) == {"latency_ms", "cached", "cache_ttl_remaining", "source"}
    return found


def error(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a TradeStream answer, in the one form that the contract has."""
    answer = ask(client, tool, **arguments)
    assert answer["isError"] is True, answer
    written = payload(answer)
    assert set(written) == {"error", "_metadata"}
    assert set(written["error"]) == {"code", "message", "details"}
    assert set(written["_metadata"]) == {"latency_ms"}
    found: dict[str, Any] = written["error"]
    return found


NULLABLE = frozenset(
    "sharpe_ratio win_rate sharpe forward_sharpe forward_accuracy avg_sharpe opportunity_score change_1h change_24h "
    "current_price unrealized_pnl total_balance margin_used".split()
)
"""Fields of the contracts that are null where no number exists; docs/answers.md says when."""


def with_nulls(returns: Any) -> Any:
    """A schema of the contract that also accepts null for the fields that may be null."""
    if isinstance(returns, list):
        return [with_nulls(each) for each in returns]
    if not isinstance(returns, dict):
        return returns
    return {
        name: {**each, "type": [each["type"], "null"]} if name in NULLABLE and "type" in each else with_nulls(each)
        for name, each in returns.items()
    }


def _check_returned(own: dict[str, Any], contract: dict[str, Any], path: str) -> None:
    """A result is declared with the contract's types, enums, formats and words."""
    if "anyOf" in own:
        kinds = [each for each in own["anyOf"] if each != {"type": "null"}]
        assert path.rpartition(".")[2] in NULLABLE, path
        assert len(kinds) == 1 == len(own["anyOf"]) - 1, path
        own = {**own, **kinds[0]}
    for key in ("type", "enum", "format"):
        assert own.get(key) == contract.get(key) or (key == "enum" and key not in contract), (path, key)
    assert own.get("description", "").startswith(contract.get("description", "")), path
    for name, each in contract.get("properties", {}).items():
        assert name in own["required"], f"{path}.{name} may be absent"
        _check_returned(own["properties"][name], each, f"{path}.{name}")
    if "items" in contract:
        _check_returned(own["items"], contract["items"], f"{path}[]")


def check_against_contract(client: Client, contract: list[dict[str, Any]]) -> None:
    """Every tool has the contract's name, words and arguments to the letter, and answers at least what the contract returns.

    The snapshots of the tools have the fields beside those.
    """
    wanted = {tool["name"]: tool for tool in contract}
    offered = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
    assert set(offered) == set(wanted)
    for name, tool in offered.items():
        assert tool["description"].startswith(wanted[name]["description"]), name
        schema, contracts = tool["inputSchema"], wanted[name]["parameters"]
        assert schema.get("required", []) == contracts.get("required", [])
        assert set(schema["properties"]) == set(contracts["properties"])
        for argument, parts in contracts["properties"].items():
            mine = schema["properties"][argument]
            for key, value in parts.items():
                same = mine[key].startswith(value) if key == "description" else mine[key] == value
                assert same, (name, argument, key)
            assert ("default" in mine) == ("default" in parts), (name, argument)
            assert ("enum" in mine) == ("enum" in parts), (name, argument)
        _check_returned(tool["outputSchema"]["properties"]["data"], wanted[name]["returns"], name)
