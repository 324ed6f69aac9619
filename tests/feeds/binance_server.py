"""A local server with the part of Binance's API that ccxt uses, in a thread, with the test's clock.

Its candles are the simulator's, so that a test can compute the expected bars; `fail` and the switches inject faults. Like
Binance, it returns the forming candle together with the closed ones.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from openbell.feeds.sim.bars import minute_bars
from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.market.timeframes import SHORT
from tests.feeds.prices import SEED, prices
from tests.looped import LoopServer

if TYPE_CHECKING:
    from aiohttp import web

BTC, ETH, SOL, LTC = (parse(f"{coin}/USDT") for coin in ("BTC", "ETH", "SOL", "LTC"))
HOUR = 3600
_SPOT = {"BTCUSDT": BTC, "ETHUSDT": ETH, "SOLUSDT": SOL}
_FUNDING_STEP = {"BTCUSDT": 8 * HOUR, "ETHUSDT": 4 * HOUR}
_DAY = 86400
_BODIES = {
    "401": '{"code": -2015, "msg": "Invalid API-key, IP, or permissions for action."}',
    "418": '{"code": -1003, "msg": "Way too much request weight used; IP banned."}',
    "429": '{"code": -1003, "msg": "Too much request weight used."}',
}


@cache
def _day(instrument: Instrument, day: int) -> Bars:
    return minute_bars(instrument, SEED, day * _DAY, (day + 1) * _DAY)


def funding(moment: int) -> float:
    """Returns the funding rate per 8 hours."""
    return round(1e-5 * (moment // HOUR % 97 - 30), 8)


class BinanceServer(LoopServer):
    """Start it with `with`; all attributes may be changed while it runs."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.requests: list[tuple[str, dict[str, str], float]] = []
        """Path, query and monotonic time of every request."""
        self.connections = 0
        """The number of sockets opened so far."""
        self.page = 1000
        """The maximum number of candles in one response."""
        self.narrow = False
        """If True, a response has no candles later than `limit` minutes after its start, as on some exchanges."""
        self.quiet: Callable[[Instrument, int], bool] = lambda _instrument, _minute: False
        """Returns True for minutes without trades, which have no candle."""
        self.duplicate = self.reorder = self.mute = self.garble = self.refuse = self.hang = False
        """Faults of the socket: send every message twice; send a minute's end after the start of the next one; send nothing;
        send invalid JSON; refuse connections; do not respond to connections."""
        self.lag = 0.3
        """The delay of a slow response in seconds."""
        self._faults: deque[tuple[str, str]] = deque()
        self._corrections: list[tuple[Instrument, int, float]] = []
        self._open: dict[Any, Any] = {}
        self._port = 0

    def options(self, **more: Any) -> dict[str, Any]:
        """Returns ccxt's options to use this server, without rate limit."""
        base = f"http://127.0.0.1:{self._port}"
        rest = {"public": "api/v3", "fapiPublic": "fapi/v1", "dapiPublic": "dapi/v1", "fapiData": "futures/data"}
        api: dict[str, Any] = {name: f"{base}/{path}" for name, path in rest.items()}
        api["ws"] = {"spot": f"ws://127.0.0.1:{self._port}/stream/ws"}
        return {"urls": {"api": api}, "rateLimit": 1, "timeout_on_exit": 1, "verify": False, **more}

    def fail(self, *faults: str, on: str = "klines") -> None:
        """Adds faults for the next requests whose path contains `on`, in order; "" is a normal response.

        A number is a status (`429:1` with Retry-After), `half` an incomplete body, `text` a body that is not JSON, `shape`
        other JSON, `slow` a delay, `drop` a closed connection, `unknown` a refused symbol.
        """
        self._faults.extend((fault, on) for fault in faults)

    @property
    def pending(self) -> int:
        """The number of faults that have not occurred yet."""
        return len(self._faults)

    def mend(self) -> None:
        """End all faults."""
        self._faults.clear()
        self.duplicate = self.reorder = self.mute = self.garble = self.refuse = self.hang = False

    def drop(self) -> None:
        """Abort all open sockets without a closing handshake."""
        self._loop.call_soon_threadsafe(lambda: [request.transport.abort() for request in self._open.values()])

    def correct(self, instrument: Instrument, minute: int, factor: float) -> None:
        """Change a closed candle and send it on the socket."""
        self._corrections.append((instrument, minute, factor))

    def truth(self, instrument: Instrument, start: int, end: int) -> Bars:
        """Returns the exchange's candles in [start, end), independent of the clock."""
        days = range(start // _DAY, (end - 1) // _DAY + 1)
        found = barlib.merge(barlib.empty(instrument), *(_day(instrument, day) for day in days)).between(start, end)
        found = found.take(np.array([not self.quiet(instrument, at) for at in found.time.tolist()], dtype=bool))
        factors = {minute: factor for corrected, minute, factor in self._corrections if corrected == instrument}
        volume = found.volume * np.array([factors.get(at, 1.0) for at in found.time.tolist()])
        return barlib.make(instrument, found.timeframe, *found.columns()[:5], volume)

    async def _listen(self) -> None:
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/stream/ws/{stream}", self._socket)
        for path, answer in (
            ("/api/v3/exchangeInfo", self._spot),
            ("/fapi/v1/exchangeInfo", self._swaps),
            ("/dapi/v1/exchangeInfo", lambda _query: {"symbols": []}),
            ("/api/v3/klines", self._klines),
            ("/fapi/v1/fundingRate", self._funding),
            ("/futures/data/openInterestHist", self._open_interest),
            ("/futures/data/globalLongShortAccountRatio", self._long_short),
        ):
            app.router.add_get(path, self._handler(answer))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        for request in self._open.values():
            request.transport.abort()
        await runner.cleanup()

    def _handler(self, answer: Callable[[dict[str, str]], Any]) -> Callable[[web.Request], Any]:
        async def handler(request: web.Request) -> web.StreamResponse:
            from aiohttp import web

            if failed := await self._apply_fault(request):
                return failed
            found = answer(dict(request.query))
            return web.json_response(found, status=400 if isinstance(found, dict) and "code" in found else 200)

        return handler

    async def _apply_fault(self, request: web.Request) -> web.StreamResponse | None:
        """Records the request and applies the next fault if it is for this path."""
        from aiohttp import web

        self.requests.append((request.path, dict(request.query), time.monotonic()))
        fault = self._faults.popleft()[0] if self._faults and self._faults[0][1] in request.path else ""
        if fault == "slow":
            await asyncio.sleep(self.lag)
        elif fault == "drop":
            request.transport.abort()  # type: ignore[union-attr]
        elif fault == "half":
            answer = web.StreamResponse(headers={"Content-Length": "5000", "Content-Type": "application/json"})
            await answer.prepare(request)
            await answer.write(b"[[1767790800000,")
            request.transport.close()  # type: ignore[union-attr]
            return answer
        elif fault == "text":
            return web.Response(text="<html>bad gateway</html>", content_type="text/html")
        elif fault == "shape":
            return web.json_response({"answer": "of another shape"})
        elif fault == "unknown":
            return web.json_response({"code": -1121, "msg": "Invalid symbol."}, status=400)
        elif fault:
            status, _, wait = fault.partition(":")
            headers = {"Retry-After": wait} if wait else {}
            return web.Response(text=_BODIES.get(status, "out of order"), status=int(status), headers=headers)
        return None

    def _klines(self, query: dict[str, str]) -> Any:
        instrument = _SPOT.get(query["symbol"])
        if instrument is None:
            return {"code": -1121, "msg": "Invalid symbol."}
        start, limit = int(query["startTime"]) // 1000, min(int(query["limit"]), self.page)
        now = int(self.clock.epoch())
        if query["interval"] != "1m":
            series = Series(instrument, SHORT[query["interval"]])
            found = prices(series, start, min(now, start + (limit + 1) * series.timeframe.seconds))
            rows = [_row(*values) for values in zip(*(column.tolist() for column in found.columns()), strict=True)]
            return rows[:limit]
        forming = now // MINUTE * MINUTE
        end = min(forming, start + int(query["limit"]) * MINUTE) if self.narrow else forming
        # The oldest candles first, up to the limit; searches at most four days.
        closed = self.truth(instrument, start, min(end, start + 4 * _DAY)) if end > start else barlib.empty(instrument)
        rows = [_row(*values) for values in zip(*(column.tolist() for column in closed.columns()), strict=True)]
        if start <= forming < start + 4 * _DAY and not self.narrow:
            rows += [_row(*values) for values in self._forming(instrument, forming)]
        return rows[:limit]

    def _forming(self, instrument: Instrument, minute: int) -> list[tuple[Any, ...]]:
        """Returns the candle of a minute that has just begun; none if the minute has no trades."""
        found = self.truth(instrument, minute, minute + MINUTE)
        return [(minute, o, o, o, o, v / 4) for o, v in zip(found.open.tolist(), found.volume.tolist(), strict=True)]

    def _spot(self, _query: dict[str, str]) -> Any:
        trading = dict.fromkeys(_SPOT, "TRADING") | {"LTCUSDT": "BREAK"}
        return {"symbols": [_symbol(name, status=status) for name, status in trading.items()]}

    def _swaps(self, _query: dict[str, str]) -> Any:
        swaps = [_symbol(name, status="TRADING") for name in _FUNDING_STEP]
        return {"symbols": [swap | {"contractType": "PERPETUAL", "marginAsset": "USDT"} for swap in swaps]}

    def _funding(self, query: dict[str, str]) -> Any:
        step = _FUNDING_STEP[query["symbol"]]
        return [
            {
                "symbol": query["symbol"],
                "fundingTime": at * 1000,
                "fundingRate": f"{funding(at) * step / 8 / HOUR:.10f}",
            }
            for at in self._moments(query, step)
        ]

    def _open_interest(self, query: dict[str, str]) -> Any:
        found = self._moments(query, HOUR, newest="endTime" not in query)
        return [
            {"symbol": query["symbol"], "sumOpenInterest": f"{at % 1000}.5", "timestamp": at * 1000} for at in found
        ]

    def _long_short(self, query: dict[str, str]) -> Any:
        found = self._moments(query, HOUR, newest="endTime" not in query)
        return [
            {"symbol": query["symbol"], "longShortRatio": f"1.{at // HOUR % 10}", "timestamp": at * 1000}
            for at in found
        ]

    def _moments(self, query: dict[str, str], step: int, *, newest: bool = False) -> list[int]:
        """Returns the times of a series from startTime on: the first ones, or the latest if `newest`."""
        start, limit = int(query["startTime"]) // 1000, int(query["limit"])
        end = min(int(self.clock.epoch()), int(query.get("endTime", 10**14)) // 1000)
        moments = list(range(-(-start // step) * step, end + 1, step))
        return moments[-limit:] if newest else moments[:limit]

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import WSMsgType, web

        while self.hang:
            await asyncio.sleep(0.002)
        if self.refuse:
            return web.Response(status=503)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connections += 1
        self._open[socket] = request
        sent: dict[Instrument, int] = {}
        pump = asyncio.ensure_future(self._pump(socket, sent))
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    asked = json.loads(message.data)
                    for name in asked["params"]:
                        sent.setdefault(_SPOT[name.partition("@")[0].upper()], 0)
                    await socket.send_json({"result": None, "id": asked["id"]})
        finally:
            del self._open[socket]
            pump.cancel()
        return socket

    async def _pump(self, socket: web.WebSocketResponse, sent: dict[Instrument, int]) -> None:
        """Sends candles: first the forming one, then each completed one and the start of the next, and corrections."""
        corrected = len(self._corrections)
        while not socket.closed:
            forming = int(self.clock.epoch()) // MINUTE * MINUTE
            for instrument, at in list(sent.items()):
                messages = [] if at else [self._kline(instrument, forming, ended=False)]
                for minute in range(at or forming, forming, MINUTE):
                    turn = [
                        self._kline(instrument, minute, ended=True),
                        self._kline(instrument, minute + MINUTE, ended=False),
                    ]
                    messages += turn[::-1] if self.reorder else turn
                sent[instrument] = forming
                await self._send(socket, [message for message in messages if message])
            for instrument, minute, _ in self._corrections[corrected:]:
                corrected += 1
                message = self._kline(instrument, minute, ended=True)
                await self._send(socket, [message] if message and instrument in sent else [])
            await asyncio.sleep(0.002)

    async def _send(self, socket: web.WebSocketResponse, messages: list[str]) -> None:
        for message in () if self.mute else messages:
            for _ in range(2 if self.duplicate else 1):
                if not socket.closed:
                    await socket.send_str('{"e":' if self.garble else message)

    def _kline(self, instrument: Instrument, minute: int, *, ended: bool) -> str:
        found = self.truth(instrument, minute, minute + MINUTE)
        rows = (
            list(zip(*(c.tolist() for c in found.columns()), strict=True))
            if ended
            else self._forming(instrument, minute)
        )
        if not rows:
            return ""
        _, o, h, low, c, v = (repr(value) for value in rows[0])
        name = instrument.file_name.replace("_", "")
        candle = {"t": minute * 1000, "s": name, "i": "1m", "o": o, "h": h, "l": low, "c": c, "v": v, "x": ended}
        return json.dumps({"e": "kline", "E": minute * 1000, "s": name, "k": candle})


def _row(time: int, *values: float) -> list[Any]:
    return [time * 1000, *map(repr, values), time * 1000 + 59_999, "0", 1, "0", "0", "0"]


def _symbol(name: str, *, status: str) -> dict[str, Any]:
    return {
        "symbol": name,
        "status": status,
        "baseAsset": name.removesuffix("USDT"),
        "quoteAsset": "USDT",
        "isSpotTradingAllowed": True,
        "permissions": ["SPOT"],
        "filters": [{"filterType": "PRICE_FILTER", "minPrice": "0.01", "maxPrice": "1000000", "tickSize": "0.01"}],
    }
