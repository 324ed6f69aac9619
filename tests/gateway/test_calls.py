"""The checks around a call come in one order, and each refusal is counted once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.streamable.gateways import Inside, message, modern, modern_headers
from tests.waiting import wait_for

QUOTES = "/v2/quotes?tickers=BTC/USD"
CALL = message("tools/call", {"name": "list_indicators"})
WRITE = message("tools/call", {"name": "place_order"})


def test_a_request_without_a_slot_is_counted_once(tmp_path: Path) -> None:
    with Inside(tmp_path, MAX_REQUESTS_EACH="1") as gateway:
        whole = gateway.bytes_of("POST", "/mcp", json.dumps(CALL).encode())
        with gateway.connect() as connection:
            connection.sendall(whole[:-10])
            wait_for(lambda: gateway.gateway._watch._slots.total == 1, "the request to hold a slot")
            assert gateway.post(CALL).status == 429
            assert gateway.gateway.metrics.summary() == "0 calls, 1 refusal"
            connection.sendall(whole[-10:])
            assert connection.recv(12) == b"HTTP/1.1 200"


def test_the_checks_come_in_one_order(tmp_path: Path) -> None:
    with Inside(tmp_path, MAX_REQUESTS_EACH="1", RATE_READ="1", BURST_READ="1") as gateway:
        whole = gateway.bytes_of("POST", "/mcp", json.dumps(CALL).encode(), "reader")
        with gateway.connect() as connection:
            connection.sendall(whole[:-10])
            wait_for(lambda: gateway.gateway._watch._slots.total == 1, "the request to hold a slot")
            assert gateway.post(CALL, None).status == 401, "token before slot"
            assert gateway.post(WRITE, "reader").status == 429, "slot before scope"
            assert gateway.request("GET", QUOTES, "reader").status == 429, "of all APIs together"
            connection.sendall(whole[-10:])
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert gateway.post(CALL, "reader").status == 429, "its rate"
        assert gateway.post(WRITE, "reader").status == 403, "scope before rate"


@pytest.mark.parametrize("is_modern", [False, True])
@pytest.mark.parametrize(
    ("path", "tool", "arguments"),
    [
        ("/market-data/mcp", "get_candles", {"symbol": "AAPL", "limit": 3}),
        ("/market-data/mcp", "get_candles", {"symbol": "AAPL", "limit": -1}),
        ("/mcp", "list_indicators", {}),
        ("/mcp", "no_such_tool", {}),
        ("/chart-signals/mcp", "get_signals", {"symbol": "nothing", "timeframe": "1min"}),
    ],
)
def test_a_call_has_the_same_result_with_and_without_the_sdk(
    tmp_path: Path, path: str, tool: str, arguments: dict[str, Any], is_modern: bool
) -> None:
    with Inside(tmp_path, AS_OF="2025-09-19T15:00:00Z", CHART_SIGNALS_HTTP="1") as gateway:

        def asked() -> Any:
            params = {"name": tool, "arguments": arguments}
            if is_modern:
                answer = gateway.post(modern("tools/call", params), path=path, **modern_headers("tools/call", tool))
            else:
                answer = gateway.post(message("tools/call", params), path=path)
            timeless = re.sub(rb'(latency_ms|cache_ttl_remaining)(\\?"):[0-9.]+', rb"\1\2:0", answer.body)
            return answer.status, json.loads(timeless)

        asked()  # both that are compared are answered from the cache
        direct = asked()
        gateway.gateway._endpoints[path]._dispatcher._runner = None
        assert asked() == direct
