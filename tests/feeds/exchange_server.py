"""A local server that stands in for an exchange, in a thread, with the test's clock: its limits, latency and counters.

ccxt is pointed at it with a proxy URL, so that the requests name the exchange's real host and path. `dialects` has the
JSON of each exchange.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from openbell.market.clock import Clock
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from tests.feeds.prices import prices
from tests.looped import LoopServer

if TYPE_CHECKING:
    from aiohttp import web

LATENCY = 0.08
Candle = tuple[int, float, float, float, float, float]
"""The open time in seconds, open, high, low, close and volume."""


@dataclass(frozen=True)
class Rate:
    """A rate limit: `weight` in `seconds`; a request costs 1 or its kind's `costs`."""

    weight: float
    seconds: float
    costs: Mapping[str, float]


class ExchangeServer(LoopServer):
    """Start it with `with`; a subclass has the dialect of one exchange. All attributes may be changed while it runs."""

    exchange: str
    """ccxt's name."""
    page: int
    """The most candles of one response."""
    pairs: ClassVar[Mapping[str, Instrument]]
    """The instruments by the exchange's own names."""
    rate: Rate

    def __init__(self, clock: Clock, latency: float = LATENCY) -> None:
        super().__init__()
        self.clock = clock
        self.latency = latency
        self.counts: Counter[str] = Counter()
        """The number of requests by kind, refused ones included."""
        self.refused = 0
        """The number of requests that were answered with 429."""
        self.most_at_once = 0
        """The largest number of requests that waited for their response at the same time."""
        self._waiting = 0
        self.urls: list[str] = []
        self.listed = 1_502_928_000
        """The time of the first candle: 2017-08-17."""
        self._spent: deque[tuple[float, float]] = deque()
        self._port = 0

    @property
    def total(self) -> int:
        """The number of requests of all kinds."""
        return sum(self.counts.values())

    @property
    def proxy(self) -> str:
        """The value of CCXT_PROXY_URL."""
        return f"http://127.0.0.1:{self._port}/"

    def options(self) -> dict[str, Any]:
        """Returns ccxt's options to use the test's clock, without sockets and without pauses.

        ccxt pauses between requests, and for 250 ms when it closes.
        """
        return {
            "rateLimit": 1,
            "timeout_on_exit": 1,
            "milliseconds": lambda: int(self.clock.epoch() * 1000),
            "has": {"watchOHLCV": False, "watchOHLCVForSymbols": False},
        }

    def respond(self, host: str, path: str, query: dict[str, str]) -> tuple[str, Any]:
        """Returns the kind of a request and the JSON of its response; None if there is no such path."""
        raise NotImplementedError

    def candles(self, pair: str, timeframe: Timeframe, start: int, end: int | None = None) -> list[Candle]:
        """Returns the candles that have opened in [start, end), oldest first; the last one may still be forming.

        Without an end, those of a page and a few more.
        """
        now, step = self.clock.epoch(), timeframe.seconds
        start = max(start, self.listed)
        end = start + (self.page + 3) * step if end is None else end
        found = prices(Series(self.pairs[pair], timeframe), start, min(end, int(now) + 1))
        rows: list[Candle] = list(zip(*(column.tolist() for column in found.columns()), strict=True))
        if rows and rows[-1][0] + step > now:  # it has begun, but not ended
            at, opened, *_, volume = rows[-1]
            rows[-1] = (at, opened, opened, opened, opened, volume / 4)
        return rows

    async def _listen(self) -> None:
        from aiohttp import web

        app = web.Application()
        app.router.add_route("*", "/{url:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        text = unquote(request.raw_path[1:])
        url = urlsplit(text)
        query = dict(parse_qsl(url.query))
        kind, found = self.respond(url.netloc, url.path, query)
        self.counts[kind] += 1
        self.urls.append(text)
        self._waiting += 1
        self.most_at_once = max(self.most_at_once, self._waiting)
        await asyncio.sleep(self.latency)
        self._waiting -= 1
        if not self._allowed(kind):
            self.refused += 1
            return web.json_response({"message": "too many requests"}, status=429)
        return web.json_response(found, status=200 if found is not None else 404)

    def _allowed(self, kind: str) -> bool:
        now = time.monotonic()
        while self._spent and self._spent[0][0] <= now - self.rate.seconds:
            self._spent.popleft()
        self._spent.append((now, self.rate.costs.get(kind, 1.0)))
        return sum(cost for _, cost in self._spent) <= self.rate.weight
