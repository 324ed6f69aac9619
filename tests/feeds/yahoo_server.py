"""A local server with the protocol of Yahoo's charts: cookie, crumb, reach by interval, live rows and Yahoo's defects.

The feed is pointed at it with a proxy URL, so that the requests name Yahoo's real hosts and paths.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from openbell.market.bars import bucket_bounds
from openbell.market.clock import Clock
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.series import Series
from openbell.market.sessions import Phase, eastern, phase, session_on
from openbell.market.timeframes import Timeframe
from tests.feeds.exchange_server import LATENCY, ExchangeServer, Rate
from tests.feeds.prices import prices

if TYPE_CHECKING:
    from aiohttp import web

AAPL, SPY, BTC, EUR = (parse(symbol) for symbol in ("AAPL", "SPY", "BTC/USD", "EUR/USD"))
DAY = 86400
COOKIE, CRUMB = "d=AQABBEx", "mKz.0pQwX1a"
Row = tuple[int, float | None, float | None, float | None, float | None, float | None]

_INTERVALS = {"1m": Timeframe.M1, "5m": Timeframe.M5, "15m": Timeframe.M15, "1h": Timeframe.H1, "1d": Timeframe.D1}
_DAYS = {"1m": 30, "5m": 60, "15m": 60, "30m": 60, "1h": 730}
"""How far back each interval reaches."""
_KINDS = {AssetClass.STOCK: "EQUITY", AssetClass.CRYPTO: "CRYPTOCURRENCY", AssetClass.FOREX: "CURRENCY"}
_ZONES = {AssetClass.STOCK: "America/New_York", AssetClass.CRYPTO: "UTC", AssetClass.FOREX: "Europe/London"}


class YahooServer(ExchangeServer):
    """Start it with `with`. All attributes may be changed while it runs."""

    exchange = "yahoo"
    page = 0
    pairs: ClassVar[Mapping[str, Instrument]] = {"AAPL": AAPL, "SPY": SPY, "BTC-USD": BTC, "EURUSD=X": EUR}
    rate = Rate(40, 1, {})

    def __init__(self, clock: Clock, latency: float = LATENCY) -> None:
        super().__init__(clock, latency)
        self.listed = 1_451_917_800
        """The time of the first bar: 2016-01-04."""
        self.delay = 0
        """Seconds by which the rows are late."""
        self.crumb = CRUMB
        self.refuse_crumb = False
        """If True, requests for a crumb are answered with 429, and charts need none."""
        self.meta: dict[str, Any] = {}
        """Replaces values of the description of the instrument."""
        self.spoil: Callable[[str, list[Row]], list[Row]] = lambda _interval, rows: rows
        """Changes the rows of a chart."""
        self.answers: deque[tuple[int, str] | str] = deque()
        """The responses to the next requests for charts: a status and a body, `drop` or `hang`."""
        self.queries: list[tuple[str, dict[str, str]]] = []
        """The symbol and the query of each request for a chart."""

    def rows(self, instrument: Instrument, interval: str, start: int, end: int) -> list[Row]:
        """Returns the rows of [start, end) and the row of the latest trade, whatever was requested."""
        timeframe, now = _INTERVALS[interval], int(self.clock.epoch()) - self.delay
        found = prices(Series(instrument, timeframe), max(start, self.listed), min(end, now + 1))
        _, ends = bucket_bounds(instrument, timeframe, found.time)
        narrow = (column.astype(np.float32).astype(np.float64) for column in found.columns()[1:5])
        volume = found.volume if timeframe is Timeframe.D1 else self._volume(instrument, found.time, found.volume)
        columns = [column.tolist() for column in (found.time, *narrow, volume)]
        rows: list[Row] = [tuple(row) for row in zip(*columns, strict=True)]
        if rows and ends[-1] > now:
            at, opened, *_ = rows.pop()
            if interval not in {"1m", "1d"}:
                rows.append((at, opened, opened, opened, opened, 1.0))
        market = phase(instrument, now)
        if market is Phase.REGULAR or (market is not Phase.CLOSED and interval != "1d"):
            rows.append(self._latest_trade(instrument, now))
        elif rows and interval == "1d" and instrument.asset_class is AssetClass.STOCK:
            session = session_on(eastern(rows[-1][0]).date())
            assert session
            rows.append((session.close + 1, *rows[-1][1:]))  # after the close the last day comes twice
        return self.spoil(interval, rows)

    def _latest_trade(self, instrument: Instrument, now: int) -> Row:
        price = float(np.float32(prices(Series(instrument), now - 4 * DAY, now + 60).close[-1]))
        return now, price, price, price, price, 0.0

    def _volume(self, instrument: Instrument, times: Any, volume: Any) -> Any:
        """Returns the volumes of intraday bars: 0 outside the regular hours of stocks, and for forex."""
        if instrument.asset_class is AssetClass.STOCK:
            return np.where(bucket_bounds(instrument, Timeframe.D1, times)[0] >= 0, volume, 0.0)
        return volume if instrument.has_volume else np.zeros(len(times))

    def _chart(self, symbol: str, query: dict[str, str]) -> tuple[int, Any]:
        interval, start, end = query["interval"], int(query["period1"]), int(query["period2"])
        now, instrument = self.clock.epoch(), self.pairs.get(symbol)
        if instrument is None:
            return 404, _error("Not Found", "No data found, symbol may be delisted")
        days, span = _DAYS.get(interval), f"{interval} data not available for startTime={start} and endTime={end}."
        if interval == "1m" and end - start > 8 * DAY:
            text = "Only 8 days worth of 1m granularity data are allowed to be fetched per request."
            return 422, _error("Unprocessable Entity", f"{span} {text}")
        if days and start < now - days * DAY:
            text = f"The requested range must be within the last {days} days."
            return 422, _error("Unprocessable Entity", f"{span} {text}")
        if end <= self.listed:
            return 400, _error("Bad Request", f"Data doesn't exist for startDate = {start}, endDate = {end}")
        # Yahoo returns hours instead of 30 minutes.
        shown = "1h" if interval == "30m" else interval
        rows = self.rows(instrument, shown, start, end)
        if interval == "1h" and instrument.asset_class is AssetClass.STOCK:
            rows = [(row[0] + 1800, *row[1:]) for row in rows]
        columns = [list(column) for column in zip(*rows, strict=True)]
        quote = dict(zip(("open", "high", "low", "close", "volume"), columns[1:], strict=True)) if rows else {}
        meta = {
            "currency": "USD",
            "symbol": symbol,
            "instrumentType": _KINDS[instrument.asset_class],
            "exchangeTimezoneName": _ZONES[instrument.asset_class],
            "firstTradeDate": self.listed,
            "dataGranularity": shown,
            **self.meta,
        }
        result: dict[str, Any] = {"meta": meta, "indicators": {"quote": [quote]}}
        if rows:
            result["timestamp"] = columns[0]
        return 200, {"chart": {"result": [result], "error": None}}

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        url = urlsplit(unquote(request.raw_path[1:]))
        query, (_, _, symbol) = dict(parse_qsl(url.query)), url.path.rpartition("/")
        kind = {"getcrumb": "crumb", "": "cookie", "consent": "consent"}.get(symbol, query.get("interval", "other"))
        self.counts[kind] += 1
        self.urls.append(f"{url.scheme}://{url.netloc}{url.path}")
        await asyncio.sleep(self.latency)
        if not self._allowed(kind):
            self.refused += 1
            return web.Response(status=429, text="Too Many Requests\r\n")
        if kind == "cookie":
            reply = web.Response(status=404, text="<html>Not Found</html>", content_type="text/html")
            reply.set_cookie("A3", COOKIE, path="/")
            return reply
        if kind == "consent":
            return web.Response(text="<html>No form here</html>", content_type="text/html")
        if kind == "crumb" and self.refuse_crumb:
            return web.Response(status=429, text="Too Many Requests\r\n")
        crumb = query.pop("crumb", "") if kind != "crumb" and not self.refuse_crumb else self.crumb
        if request.cookies.get("A3") != COOKIE or crumb != self.crumb:
            return web.json_response({"finance": {"result": None, "error": {"code": "Unauthorized"}}}, status=401)
        if kind == "crumb":
            return web.Response(text=self.crumb)
        self.queries.append((symbol, query))
        return await self._reply(request, symbol, query)

    async def _reply(self, request: web.Request, symbol: str, query: dict[str, str]) -> web.StreamResponse:
        from aiohttp import web

        answer = self.answers.popleft() if self.answers else None
        if answer == "hang":
            await asyncio.sleep(30)
        if isinstance(answer, str):
            assert request.transport
            request.transport.abort()
            return web.Response()
        if answer:
            return web.Response(status=answer[0], text=answer[1])
        status, body = await asyncio.to_thread(self._chart, symbol, query)
        return web.json_response(body, status=status)


def _error(code: str, description: str) -> dict[str, Any]:
    return {"chart": {"result": None, "error": {"code": code, "description": description}}}
