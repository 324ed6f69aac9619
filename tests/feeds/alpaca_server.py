"""A local server with Alpaca's REST and WebSocket protocol, in a thread, with faults that a test switches on.

It uses the test's clock: a bar is available when its minute has ended, its correction 30 s later. Messages that are due are
sent before any ping is answered, as by a server that is on time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from zoneinfo import ZoneInfo

import numpy as np
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from openbell.feeds.sim.bars import minute_bars
from openbell.feeds.sim.universe import LISTINGS
from openbell.market.bars import MINUTE, Bars, bucket_bounds, make
from openbell.market.clock import Clock, iso, parse_time
from openbell.market.errors import InvalidSymbol
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from tests.feeds.prices import SEED, prices
from tests.looped import LoopServer

KEY, SECRET = "PKTESTKEY0123456789", "s3cr3t/that+nobody=sees"
FIRST_AFTER, CORRECTED_AFTER = 0.5, 30.0
"""Seconds after its end at which a minute's bar and its correction are sent."""

PUBLISHED_AFTER = 4 * 3600
"""Seconds after a session's close at which its daily bar is final."""
_NEW_YORK = ZoneInfo("America/New_York")
_TIMEFRAMES = {
    "1Min": Timeframe.M1,
    "3Min": Timeframe.M3,
    "5Min": Timeframe.M5,
    "15Min": Timeframe.M15,
    "30Min": Timeframe.M30,
    "1Hour": Timeframe.H1,
    "1Day": Timeframe.D1,
}

Values = tuple[int, float, float, float, float, float]


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    """If True, half of the body is sent."""


_frames = logging.getLogger(f"{__name__}.frames")
_frames.setLevel(logging.CRITICAL)  # keeps the server's frames out of the log that tests check


class StreamConnection(ServerConnection):
    """A connection that sends the messages that are due before it reads, so that no pong overtakes a bar."""

    vendor: AlpacaServer
    subscribed: tuple[Instrument, ...] = ()
    opened_at = 0.0
    deaf = False
    sent: set[tuple[str, Instrument, int]]

    def data_received(self, data: bytes) -> None:
        if self.subscribed:
            self.vendor.flush(self)
        if not self.deaf:
            super().data_received(data)

    def push(self, text: str) -> None:
        self.protocol.send_text(text.encode())
        self.send_data()


class AlpacaServer(LoopServer):
    """Start it with `with`, and pass `urls` to the feed."""

    def __init__(self, clock: Clock, corrected: Callable[[Instrument, int], bool] = lambda _i, _t: False) -> None:
        super().__init__()
        self.clock = clock
        self.corrected = corrected
        """Returns True for minutes that are corrected 30 s after their end."""
        self.page = 10_000
        self.shown_after = 0.5
        """Seconds after which a bar or a correction is also in the history."""
        self.bad_answers: deque[Answer | str] = deque()
        """The responses to the next requests for bars: an answer, `drop` or `slow`."""
        self.bad_messages: deque[str] = deque()
        """The faults of the next messages: see `flush`."""
        self.refused: tuple[int, str] | None = None
        """The code and text of the error in reply to an authentication."""
        self.spoil: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] | None = None
        """Changes the rows of a response of the history."""
        self.spoil_message: Callable[[str], str] = lambda text: text
        self.unlisted: set[str] = set()
        self.requests: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.assets_answer: Answer | None = None
        self.rate: dict[str, str] = {}
        self.late = 0.0
        """The delay of a minute's first bar in seconds."""
        self.lines: set[StreamConnection] = set()
        self.opened = 0
        self.at_once = 0
        self._now_open = 0
        self.latency = 0.0
        """The delay of every response in seconds."""
        self.per_minute = 10**9
        """The number of requests that it accepts in a minute; the free plan has 200."""
        self.counts: Counter[str] = Counter()
        """The number of requests by timeframe."""
        self._recent: list[float] = []

    @property
    def urls(self) -> dict[str, str]:
        http = f"http://127.0.0.1:{self._http_port}"
        return {"data_url": http, "trading_url": http, "stream_url": f"ws://127.0.0.1:{self._ws_port}"}

    def truth(self, instrument: Instrument, start: int, end: int, now: float = 1e12) -> Bars:
        """Returns the vendor's bars of [start, end) at `now`."""
        rows = self._rows(instrument, start, end, now)
        return make(instrument, Timeframe.M1, *(zip(*rows, strict=True) if rows else ([] for _ in range(6))))

    def _rows(self, instrument: Instrument, start: int, end: int, now: float) -> list[Values]:
        end = min(end, int((now - self.shown_after) // MINUTE) * MINUTE)
        if instrument.symbol in self.unlisted or instrument not in LISTINGS:
            return []
        bars = minute_bars(instrument, SEED, start, end)
        known_after = MINUTE + CORRECTED_AFTER + self.shown_after
        rows = zip(*(column.tolist() for column in bars.columns()), strict=True)
        return [
            _correction(row) if self.corrected(instrument, row[0]) and row[0] + known_after <= now else row
            for row in rows
        ]

    def longer(self, series: Series, start: int, end: int, now: float = 1e12) -> Bars:
        """Returns the vendor's hours, days and so on that open in [start, end), as they are at `now`."""
        if series.timeframe is not Timeframe.D1:
            return prices(series, start, min(end, int(now)))
        # The closing auction is in the close and the volume, and late trades are in the volume only some hours later.
        days = prices(series, start, min(end, int(now)))
        _, closes = bucket_bounds(series.instrument, Timeframe.D1, days.time)
        close = np.minimum(days.high, days.close * 1.0005).round(2)
        volume = days.volume * np.where(closes + PUBLISHED_AFTER <= now, 1.5, 1.1)
        return make(series.instrument, Timeframe.D1, days.time, days.open, days.high, days.low, close, volume)

    def _longer(self, series: Series, start: int, end: int, now: float) -> list[Values]:
        """Returns the rows of longer bars, the forming one last; a stock's day is stamped at midnight in New York."""
        if series.instrument.symbol in self.unlisted or series.instrument not in LISTINGS:
            return []
        daily = series.timeframe is Timeframe.D1
        found = self.longer(series, start, end + 86400 if daily else end, now)
        rows: list[Values] = list(zip(*(column.tolist() for column in found.columns()), strict=True))
        if rows and bucket_bounds(series.instrument, series.timeframe, found.time)[1][-1] > now:
            at, opened, *_, volume = rows[-1]
            rows[-1] = (at, opened, opened, opened, opened, volume / 4)
        if daily:
            rows = [(_midnight(row[0]), *row[1:]) for row in rows]
        return [row for row in rows if start <= row[0] < end]

    async def _listen(self) -> None:
        http = await asyncio.start_server(self._serve_http, "127.0.0.1", 0)
        async with (
            http,
            serve(
                self._serve_stream,
                "127.0.0.1",
                0,
                create_connection=StreamConnection,
                ping_interval=None,
                logger=_frames,
            ) as ws,
        ):
            self._http_port = http.sockets[0].getsockname()[1]
            self._ws_port = next(iter(ws.sockets)).getsockname()[1]
            self._ready.set()
            while not self._stop.is_set():
                for line in list(self.lines):
                    self.flush(line)
                try:  # polls the test's clock, which another thread advances
                    async with asyncio.timeout(0.003):
                        await self._stop.wait()
                except TimeoutError:
                    pass
            for line in list(self.lines):
                line.transport.abort()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._now_open += 1
        self.at_once = max(self.at_once, self._now_open)
        try:
            while head := await _head(reader):
                lines = head.split("\r\n")
                url = urlsplit(lines[0].split()[1])
                pairs = (line.split(": ", 1) for line in lines[1:])
                headers = {name.lower(): value for name, value in pairs}
                params = {name: values[0] for name, values in parse_qs(url.query).items()}
                self.requests.append((unquote(url.path), params, headers))
                answer = await self._answer(url.path, params, headers)
                if answer is None:
                    break
                fields = {
                    "Date": formatdate(self.clock.epoch(), usegmt=True),
                    "Content-Length": str(len(answer.body)),
                    **self.rate,
                    **dict(answer.headers),
                }
                text = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
                body = answer.body[: len(answer.body) // 2] if answer.cut else answer.body
                writer.write(f"HTTP/1.1 {answer.status} X\r\n{text}\r\n".encode() + body)
                await writer.drain()
                if answer.cut:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._now_open -= 1
            writer.close()

    async def _answer(self, path: str, params: dict[str, str], headers: dict[str, str]) -> Answer | None:
        if (headers.get("apca-api-key-id"), headers.get("apca-api-secret-key")) != (KEY, SECRET):
            return answer(401, {"message": "unauthorized."})
        if path.startswith("/v2/assets/"):
            self.counts["assets"] += 1
            if self.assets_answer:
                return self.assets_answer
            symbol = unquote(path.removeprefix("/v2/assets/"))
            known = symbol not in self.unlisted and parse(symbol) in LISTINGS
            return (
                answer(200, {"symbol": symbol}) if known else answer(404, {"message": f"asset not found for {symbol}"})
            )
        self.counts[params.get("timeframe", path)] += 1
        await asyncio.sleep(self.latency)
        now = time.monotonic()
        self._recent = [at for at in self._recent if at > now - 60.0] + [now]
        if len(self._recent) > self.per_minute:
            return answer(429, {"message": "too many requests."})
        if self.bad_answers:
            bad = self.bad_answers.popleft()
            if isinstance(bad, Answer):
                return bad
            if bad == "slow":
                await self._stop.wait()
            return None
        return self._bars(path, params)

    def _bars(self, path: str, params: dict[str, str]) -> Answer:
        crypto = {"/v2/stocks/bars": False, "/v1beta3/crypto/us/bars": True}[path]
        timeframe = _TIMEFRAMES[params["timeframe"]]
        assert params["sort"] == "asc"
        assert crypto or {"feed", "adjustment"} <= params.keys()
        start, end = parse_time(params["start"]), parse_time(params["end"])
        rows: list[tuple[str, Values]] = []
        for symbol in params["symbols"].split(","):
            try:
                instrument = parse(symbol)
            except InvalidSymbol:
                return answer(400, {"message": f"invalid symbol: {symbol}"})
            assert (instrument.asset_class is AssetClass.CRYPTO) is crypto
            # The range is inclusive at both ends; only complete minutes, in their version at this time.
            span, now = (int(start), int(end) + 1), self.clock.epoch()
            series = Series(instrument, timeframe)
            minutes = timeframe is Timeframe.M1
            found = self._rows(instrument, *span, now) if minutes else self._longer(series, *span, now)
            rows += [(symbol, row) for row in found]
        at = int(params.get("page_token", "0"))
        size = min(self.page, int(params["limit"]))
        bars: dict[str, list[Values]] = {}
        for symbol, row in rows[at : at + size]:
            bars.setdefault(symbol, []).append(row)
        token = str(at + size) if at + size < len(rows) else None
        by_symbol = ",".join(f"{json.dumps(symbol)}: {self._bars_text(found)}" for symbol, found in bars.items())
        return Answer(200, f'{{"bars": {{{by_symbol}}}, "next_page_token": {json.dumps(token)}}}'.encode())

    def _bars_text(self, rows: list[Values]) -> str:
        """Returns JSON. Bars are formatted as text, because some tests read hundreds of thousands."""
        if self.spoil:
            return json.dumps(self.spoil([_json(row) for row in rows]))
        times = np.datetime_as_string(np.array([row[0] for row in rows], dtype="datetime64[s]")).tolist()
        texts = [
            f'{{"t":"{at}Z","o":{o!r},"h":{h!r},"l":{low!r},"c":{c!r},"v":{v!r},"n":3,"vw":{o!r}}}'
            for at, (_, o, h, low, c, v) in zip(times, rows, strict=True)
        ]
        return f"[{','.join(texts)}]"

    async def _serve_stream(self, line: ServerConnection) -> None:
        assert isinstance(line, StreamConnection)
        assert line.request is not None
        assert line.request.path in {"/v2/iex", "/v1beta3/crypto/us"}
        line.vendor = self
        try:
            await line.send('[{"T":"success","msg":"connected"}]')
            if self.bad_messages and self.bad_messages[0] == "mute":
                self.bad_messages.popleft()
                line.deaf = True
            signed = json.loads(await line.recv())
            right = signed == {"action": "auth", "key": KEY, "secret": SECRET}
            if self.refused or not right:
                code, text = self.refused or (402, "auth failed")
                await line.send(json.dumps([{"T": "error", "code": code, "msg": text}]))
                return
            await line.send('[{"T":"success","msg":"authenticated"}]')
            await self._subscribe(line, json.loads(await line.recv()))
            self.lines.add(line)
            self.opened += 1
            async for more in line:  # a client with many symbols subscribes to them in several messages
                await self._subscribe(line, json.loads(more))
        except ConnectionClosed:
            pass
        finally:
            self.lines.discard(line)

    async def _subscribe(self, line: StreamConnection, wanted: dict[str, Any]) -> None:
        assert wanted["action"] == "subscribe"
        assert wanted["bars"] == wanted["updatedBars"]
        if not line.subscribed:
            line.opened_at, line.sent = self.clock.epoch(), set()
        symbols = [*(each.symbol for each in line.subscribed), *wanted["bars"]]
        await line.send(json.dumps([{"T": "subscription", "bars": symbols, "updatedBars": symbols}]))
        line.subscribed = tuple(parse(symbol) for symbol in symbols)

    def flush(self, line: StreamConnection) -> None:
        """Sends the messages that are due, with the next fault of `bad_messages` if there is one."""
        if line not in self.lines or line.protocol.state is not State.OPEN:  # the client may be closing
            return
        now = self.clock.epoch()
        messages = self._due(line, now)
        broken = {"drop", "half", "garbage", "shape", "deaf", "slow client"}
        if self.bad_messages and (messages or self.bad_messages[0] in broken):
            messages = self._apply_fault(self.bad_messages.popleft(), line, messages)
        for text in messages:
            line.push(self.spoil_message(text))

    def _apply_fault(self, fault: str, line: StreamConnection, messages: list[str]) -> list[str]:
        if fault == "duplicate":
            return [text for text in messages for _ in range(2)]
        if fault == "reorder":
            return messages[::-1]
        if fault == "garbage":
            return ['[{"T":"b","S":"BTC']
        if fault == "shape":
            return ['{"T":"b"}']
        if fault == "slow client":
            return ['[{"T":"error","code":407,"msg":"slow client"}]']
        self.lines.discard(line)
        if fault == "deaf":
            line.deaf = True
        elif fault == "half":  # a frame with a length of 4,096 bytes and three bytes of data
            line.transport.write(b'\x81\x7e\x10\x00[{"')
            line.transport.close()
        else:
            assert fault == "drop"
            line.transport.abort()
        return []

    def _due(self, line: StreamConnection, now: float) -> list[str]:
        """Returns the unsent messages that became due since the connection was opened, in order."""
        found: list[tuple[float, str]] = []
        back = int(max(line.opened_at - 120, now - 900) // MINUTE) * MINUTE
        for instrument in line.subscribed:
            bars = minute_bars(instrument, SEED, back, int(now // MINUTE) * MINUTE)
            for row in zip(*(column.tolist() for column in bars.columns()), strict=True):
                kinds = {"b": (FIRST_AFTER + self.late, row)}
                if self.corrected(instrument, row[0]):
                    kinds["u"] = (CORRECTED_AFTER, _correction(row))
                for kind, (after, values) in kinds.items():
                    moment, key = row[0] + MINUTE + after, (kind, instrument, row[0])
                    if line.opened_at < moment <= now and key not in line.sent:
                        line.sent.add(key)
                        found.append((moment, _message(kind, instrument, values)))
        return [text for _, text in sorted(found, key=lambda item: item[0])]


def answer(status: int, body: object, **headers: str) -> Answer:
    """Returns a JSON response with a status and headers (`retry_after="1"`)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(body).encode(), named)


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode().strip()
    except asyncio.IncompleteReadError:
        return ""


def _correction(row: Values) -> Values:
    time, open_, high, low, _, volume = row
    return (time, open_, high, low, low, volume + 7)


def _midnight(opened: int) -> int:
    return int(datetime.fromtimestamp(opened, _NEW_YORK).replace(hour=0, minute=0).timestamp())


def _json(row: Values) -> dict[str, Any]:
    names = zip("ohlcv", row[1:], strict=True)
    return {"t": iso(row[0]).replace("+00:00", "Z"), **dict(names), "n": 3, "vw": row[1]}


def _message(kind: str, instrument: Instrument, row: Values) -> str:
    return json.dumps([{"T": kind, "S": instrument.symbol, **_json(row)}])
