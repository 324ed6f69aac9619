"""The quotes API on 50 tickers and a year of minutes: as a tool in one process, and over HTTP at `openbell up`.

Times are those of a whole call: the tool's with its result checked, the request's until the last byte of its body. The range
is a year that ends now, so that no response could be kept by a cache.
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

from tests.sessions import session

from gateway import Server
from gateway_home import Home
from measure import row
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.feeds.sim.bars import minute_bars
from openbell.market.bars import Bars
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.protocol.service import Runner
from openbell.servers import load as server
from openbell.stores.port import Span

DAY = 86400
END = 1_763_000_000 // DAY * DAY + 12 * 3600
YEAR = 365
TICKERS = [f"{a}{b}/USD" for a in ("AA", "BB", "CC", "DD", "EE") for b in "ABCDEFGHIJ"]
"""Crypto, which trades at all hours: no ticker is stale."""
REPEAT = 60
SETTINGS = {"FEED": "none", "AS_OF": iso(END), "TIMEOUT": "60", "RATE_QUOTES": "0", "RATE_QUOTES_LIVE": "0"}
SETTINGS |= {"RATE_QUOTES_HISTORICAL": "0"}
RANGE = {"from": iso(END - (YEAR - 1) * DAY)[:10], "to": iso(END)[:10], "interval": "1m", "page_size": 200}


def variables(home: Path) -> dict[str, str]:
    return {f"OPENBELL_{name}": value for name, value in {**SETTINGS, "HOME": str(home)}.items()}


def stored(home: Path) -> None:
    """Store two days of every ticker, and a year of the first."""
    store = Desk(load(variables(home))).store
    year = minute_bars(parse("BTC/USD"), 7, END - YEAR * DAY, END)
    for number, name in enumerate(TICKERS):
        some = year if number == 0 else year.tail(3000)
        bars = Bars(parse(name), some.timeframe, *some.columns())
        store.write([bars], Source(Origin.IMPORTED, "import"), covers=Span(int(bars.time[0]), END))
    store.close()


def pages() -> list[int]:
    """Numbers of pages from the whole year, so that no two are from the same day."""
    count = (YEAR - 1) * 1440 // RANGE["page_size"]  # type: ignore[operator]
    return [1 + index * (count - 1) // (REPEAT - 1) for index in range(REPEAT)]


async def tool(runner: Runner, name: str, arguments: dict[str, Any]) -> float:
    began = time.perf_counter()
    reply = await runner.run(name, arguments, session())
    spent = time.perf_counter() - began
    assert not reply.is_error, reply.payload
    assert len(reply.payload.get("quotes") or reply.payload["items"]) in {len(TICKERS), 200}
    return spent


async def tools(home: Path) -> tuple[list[float], list[float], float]:
    """Seconds of live calls, of pages, and of the first page."""
    async with Desk(load(variables(home))) as desk:
        runner = Runner(server("arche"), desk)
        await tool(runner, "quotes.live", {"tickers": TICKERS})
        live = [await tool(runner, "quotes.live", {"tickers": TICKERS}) for _ in range(REPEAT)]
        first = await tool(runner, "quotes.historical", {"tickers": TICKERS[:1], **RANGE})
        wanted = [{"tickers": TICKERS[:1], **RANGE, "page": page} for page in pages()]
        return live, [await tool(runner, "quotes.historical", each) for each in wanted], first


class Requests:
    """Requests over one connection."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
        self._headers = {"X-Api-Key": token}

    def seconds(self, path: str) -> float:
        began = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        spent = time.perf_counter() - began
        assert response.status == 200, body
        found = json.loads(body)
        assert len(found["items"] if "items" in found else found["data"]["items"]) in {len(TICKERS), 200}
        return spent


def requests(home: Home) -> tuple[list[float], list[float]]:
    """Seconds of live requests and of pages."""
    command = [sys.executable, "-m", "openbell.cli.entry", "up", "--port", "PORT"]
    with Server(*command, **variables(home.folder)) as up:
        client = Requests(up.port, home.tokens[0])
        quotes = f"/v2/quotes?tickers={','.join(TICKERS)}"
        history = "&".join(f"{name}={value}" for name, value in {"tickers": TICKERS[0], **RANGE}.items())
        bars = f"/v2/quotes/historical?{history}"
        client.seconds(quotes)
        live = [client.seconds(quotes) for _ in range(REPEAT)]
        client.seconds(bars)
        return live, [client.seconds(f"{bars}&page={page}") for page in pages()]


def show(what: str, spent: list[float], target: float) -> None:
    median = statistics.median(spent) * 1000
    figure = f"{median:.2f} ms (slowest {max(spent) * 1000:.1f})"
    row(what, figure, f"≤ {target:g} ms", median <= target)


def main() -> int:
    with TemporaryDirectory() as folder:
        home = Home(Path(folder), 1)
        stored(home.folder)
        live, page, first = asyncio.run(tools(home.folder))
        show("quotes.live of 50 tickers, as a tool", live, 5)
        show("quotes.historical, 200 of a year of minutes, as a tool", page, 15)
        row("  its first page, which counts the year", f"{first * 1000:.0f} ms", "(none)", True)
        live, page = requests(home)
        show("GET /v2/quotes of 50 tickers", live, 5)
        show("GET /v2/quotes/historical, 200 of a year of minutes", page, 15)
    return 0


if __name__ == "__main__":
    sys.exit(main())
