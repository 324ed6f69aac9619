"""The server chart-image: times of whole calls in one process, and of a chart over HTTP at `openbell up`.

The limits are far below the contract's. The desk draws itself, from simulated bars.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.charts.language.corpus import visible
from tests.sessions import session

from gateway import Server
from gateway_home import Home
from measure import row
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.protocol.service import Runner
from openbell.servers import load as server

REPEAT = 40
AS_OF = "2026-01-07T15:00:00Z"
CLOSED = "http://127.0.0.1:9"
"""Nobody listens here: the documentation is the package's."""
STUDIES = [{"name": name} for name in ("BollingerBands", "RSI", "MACD", "Volume")]
LINE = {"type": "Horizontal Line", "coordinates": {"price": 90000}}
CONFIG = {"symbol": "BINANCE:BTCUSDT", "interval": "1h", "range": "7D", "studies": STUDIES, "drawings": [LINE]}


def variables(home: Path) -> dict[str, str]:
    return {"OPENBELL_HOME": str(home), "OPENBELL_AS_OF": AS_OF, "OPENBELL_CHART_IMG_DOCS_URL": CLOSED}


async def seconds(runner: Runner, tool: str, arguments: dict[str, Any]) -> float:
    began = time.perf_counter()
    reply = await runner.run(tool, arguments, session())
    spent = time.perf_counter() - began
    assert not reply.is_error, reply.payload
    return spent


async def tools(home: Path) -> dict[str, list[float]]:
    """Seconds of the calls of each tool, after the first one."""
    sentences = [each.say for each in visible() if not each.error and not each.args]
    async with Desk(load(variables(home))) as desk:
        runner = Runner(server("chart-image"), desk)
        asked: dict[str, list[dict[str, Any]]] = {
            "construct_chart_config": [{"naturalLanguage": say} for say in sentences],
            "validate_chart_config": [{"config": CONFIG}] * REPEAT,
            "fetch_chart_documentation": [{}] * REPEAT,
            "get_exchanges": [{}] * REPEAT,
            "get_symbols": [{"exchange": "BINANCE"}] * REPEAT,
            "generate_chart_image": [{"config": CONFIG}] * REPEAT,
        }
        found = {}
        for tool, calls in asked.items():
            await seconds(runner, tool, calls[0])
            found[tool] = [await seconds(runner, tool, each) for each in calls]
        return found


def over_http(home: Home) -> list[float]:
    """Seconds of charts from the self-hosted API."""
    command = [sys.executable, "-m", "openbell.cli.entry", "up", "--port", "PORT"]
    with Server(*command, **variables(home.folder)) as up:
        connection = http.client.HTTPConnection("127.0.0.1", up.port, timeout=60.0)
        found = []
        for _ in range(REPEAT):
            began = time.perf_counter()
            connection.request(
                "POST", "/v2/tradingview/advanced-chart", json.dumps(CONFIG), {"x-api-key": home.tokens[0]}
            )
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, body
            found.append(time.perf_counter() - began)
        return found[1:]


LIMITS = {
    "construct_chart_config": 20,
    "validate_chart_config": 5,
    "fetch_chart_documentation": 5,
    "get_exchanges": 5,
    "get_symbols": 5,
    "generate_chart_image": 150,
}
"""Milliseconds."""


def main() -> int:
    with TemporaryDirectory() as folder:
        home = Home(Path(folder), 1)
        found = asyncio.run(tools(home.folder))
        found["POST /v2/tradingview/advanced-chart"] = over_http(home)
    for name, times in found.items():
        limit = LIMITS.get(name, 150)
        median = statistics.median(times) * 1e3
        row(name, f"{median:.2f} ms (slowest {max(times) * 1e3:.1f})", f"≤ {limit} ms", median <= limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
