"""No first call stops the event loop: what a tool loads or counts when it is first used is loaded before, or in a thread."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openbell.gateway.app import MAIN
from openbell.protocol.tool import Effect, Tool
from openbell.servers import NAMES
from tests.gateway.guard.loop_time import LONGEST
from tests.gateway.guard.serving import Answer
from tests.gateway.guard.timed_gateway import TimedUp
from tests.gateway.streamable.gateways import UNLIMITED, Client, add_tokens, message
from tests.servers.every_tool import BTC, every_tool, samples

WATCHED = "USD/JPY"
STOCKS = tuple("AAPL MSFT GOOGL AMZN META NVDA TSLA BBAI RIOT NVDX SMR APLD SOUN SERV".split())
"""Stocks of the simulated market: their hours make them slower to count than coins."""
SPELLINGS = {"BINANCE:BTCUSD": "NASDAQ:", BTC: "", "Bitcoin": ""}
"""How samples name a symbol, and what stands before the name of a stock there."""
SEARCHING = "still being searched"
"""In the error of a strategy tool whose symbol is new."""


class FirstCalls:
    """Calls of a new process, each about a symbol that nobody has asked for."""

    def __init__(self, up: TimedUp, client: Client) -> None:
        self._up = up
        self._client = client
        self._symbols: Iterator[str] = iter(STOCKS)
        self.slow: list[str] = []
        up.take()  # the start

    def call(self, server: str, tool: Tool, arguments: dict[str, Any]) -> Answer:
        """The answer to a call; what has stopped the loop meanwhile is noted."""
        given = self._about_a_new_symbol(arguments)
        body = message("tools/call", {"name": tool.name, "arguments": given})
        answer = self._client.post(body, path="/mcp" if server == MAIN else f"/{server}/mcp")
        seconds, callback = self._up.take()
        if seconds > LONGEST:
            self.slow.append(f"{tool.name} {given}: {seconds * 1000:.0f} ms in {callback}")
        return answer

    def _about_a_new_symbol(self, arguments: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(arguments)
        if any(name in text for name in SPELLINGS):
            stock = next(self._symbols)
            for name, prefix in SPELLINGS.items():
                text = text.replace(name, prefix + stock)
        found: dict[str, Any] = json.loads(text)
        return found


def _plain(tool: Tool, sample: dict[str, Any]) -> dict[str, Any]:
    """The arguments that a call must have, and its symbol."""
    needed = {*tool.input_schema.get("required", ()), "symbol"}
    return {name: value for name, value in sample.items() if name in needed}


@pytest.mark.parametrize("server", NAMES)
def test_no_first_call_stops_the_event_loop(tmp_path: Path, server: str) -> None:
    """Each tool is called for the first time in its process: plainly, and with the arguments of its sample."""
    tokens = add_tokens(tmp_path)
    # An address of https, where nothing listens: the certificates are loaded for it.
    settings = {**UNLIMITED, "CHART_SIGNALS_HTTP": "1", "CHART_IMG_DOCS_URL": "https://127.0.0.1:9/"}
    with TimedUp(tmp_path, "--trade", "--watch", WATCHED, **settings) as up:
        calls = FirstCalls(up, Client(up.port, tokens))
        for name, tool in every_tool():
            if name != server:
                continue
            sample = samples(server, tool.name)[0]
            plain = _plain(tool, sample)
            answer = calls.call(server, tool, plain)
            assert answer.status == 200, (tool.name, answer.body)
            if tool.effect in {Effect.READ, Effect.BY_ARGUMENT} and SEARCHING not in answer.body.decode():
                assert not answer.json["result"]["isError"], (tool.name, answer.body)
            if sample != plain:
                calls.call(server, tool, sample)
    assert not calls.slow, "\n".join(calls.slow)
