"""A double of the vendor of chart images on a real socket.

It checks requests as the vendor does and records them. `script` has what it does with the next requests instead: bytes that
it sends, or a function that writes them.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from contextlib import suppress
from datetime import datetime
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from PIL import Image

from openbell.charts.config.choices import FORMATS, INTERVALS, PRESETS
from openbell.charts.studies.catalogue import all_studies
from tests.servers.quotes_server import QuotesServer, Work, reply

KEY = "k3y-of-the-vendor-0123456789"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n"
TITLES = frozenset(study.title for study in all_studies().values())


class Asked(NamedTuple):
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def message(status: int, text: object, field: str = "message", **headers: str) -> bytes:
    """A refusal of the vendor."""
    return reply(status, {field: text}, **headers)


def problem(value: object, param: str, text: str = "Invalid value") -> dict[str, object]:
    """One field of a 422."""
    return {"value": value, "msg": text, "param": param, "location": "body"}


def picture(width: int = 800, height: int = 600, kind: str = "png") -> bytes:
    sink = BytesIO()
    Image.new("RGB", (width, height), "white").save(sink, kind)
    return sink.getvalue()


def image(data: bytes, kind: str = "image/png", **headers: str) -> bytes:
    return reply(200, data, kind, **headers)


async def cut(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ends the connection in the middle of a picture."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5000\r\n\r\n" + picture()[:100])


async def hung_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Ends the connection without a response."""


class ChartImgServer(QuotesServer):
    """The server, in a thread. Use as a context manager."""

    def __init__(self) -> None:
        super().__init__()
        self.script: deque[bytes | Work] = deque()
        self.always: bytes | Work | None = None
        """What is done with each request when the script is at its end; None: what the vendor does."""
        self.asked: list[Asked] = []
        self.stored: dict[str, Any] = {}
        """The response of the storage, beside `url`."""
        self.exchanges: object = {"updatedAt": None, "payload": ["NASDAQ", "BINANCE", "FX"]}
        self.symbols: dict[str, object] = {}
        self.contract_paths = False
        """True if lists are at the paths of the contract only."""
        self.page: bytes | None = None
        """The documentation."""

    def reset(self) -> None:
        """Forget everything, for the next test."""
        self.script.clear()
        self.asked.clear()
        self.symbols.clear()
        self.always, self.stored, self.contract_paths, self.page = None, {}, False, None
        self.exchanges = {"updatedAt": None, "payload": ["NASDAQ", "BINANCE", "FX"]}

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): text for name, text in (line.split(": ", 1) for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, target, _ = head[0].split()
            asked = Asked(method, target, headers, body)
            self.asked.append(asked)
            plan = self.script.popleft() if self.script else self.always
            plan = self._reply(asked) if plan is None else plan
            if isinstance(plan, bytes):
                writer.write(plan)
                await writer.drain()
            else:
                await plan(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _reply(self, asked: Asked) -> bytes:
        path = urlsplit(asked.path).path
        if path == "/" and self.page is not None:
            assert "x-api-key" not in asked.headers, "the documentation is public"
            return reply(200, self.page, "text/html; charset=utf-8")
        if "x-api-key" not in asked.headers:
            return message(401, "Missing API Key")
        if asked.headers["x-api-key"] != KEY:
            return message(403, "Forbidden")
        if path.startswith("/v3/tradingview/exchange") and asked.method == "GET":
            return self._list(path)
        if path.removesuffix("/storage") != "/v2/tradingview/advanced-chart" or asked.method != "POST":
            return message(404, "Route Not Found")
        return self._chart(asked, stored=path.endswith("/storage"))

    def _chart(self, asked: Asked, *, stored: bool) -> bytes:
        assert asked.headers["content-type"] == "application/json"
        try:
            body = asked.json
        except ValueError:
            return message(400, "Invalid JSON")
        if problems := list(faults(body)):
            return message(422, problems)
        if not re.fullmatch(r"[A-Z_]+:[A-Z0-9.!]+", body["symbol"]):
            return message(422, "Invalid Symbol")
        kind = body.get("format", "png")
        if stored:
            url = f"https://r2.chart-img.com/20261118/tradingview/advanced-chart/0b9c.{kind}"
            return reply(200, {"url": url, "etag": "e7a9", **self.stored})
        return image(picture(body.get("width", 800), body.get("height", 600), kind), f"image/{kind}")

    def _list(self, path: str) -> bytes:
        name = path.removeprefix("/v3/tradingview/exchange").strip("/")
        if name == ("s" if self.contract_paths else "list"):
            return reply(200, self.exchanges)
        exchange = name.removesuffix("/symbols") if self.contract_paths == name.endswith("/symbols") else ""
        return reply(200, self.symbols[exchange]) if exchange in self.symbols else message(404, "Not Found")


def faults(body: Any) -> Any:
    """Yields what the vendor does not accept in a body."""
    if body.get("interval", "1D") not in INTERVALS:
        yield problem(body["interval"], "interval")
    if body.get("format", "png") not in FORMATS:
        yield problem(body["format"], "format")
    shown = body.get("range", "1D")
    if not (shown in PRESETS if isinstance(shown, str) else times(shown)):
        yield problem(shown, "range")
    for at, study in enumerate(body.get("studies", [])):
        if study["name"] not in TITLES or set(study) - {"name", "forceOverlay", "input", "override"}:
            yield problem(study["name"], f"studies[{at}].name")
        for key in study.get("input", {}):
            if not re.fullmatch(r"in_\d|[a-z]+([A-Z][a-z]+)*", key):
                yield problem(key, f"studies[{at}].input")
    for at, drawing in enumerate(body.get("drawings", [])):
        if set(drawing) - {"name", "input", "override", "zOrder"}:
            yield problem(drawing["name"], f"drawings[{at}]")


def times(shown: Any) -> bool:
    """Returns True for two times as the vendor reads them."""
    form = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
    if set(shown) != {"from", "to"} or not all(form.fullmatch(each) for each in shown.values()):
        return False
    return datetime.fromisoformat(shown["from"]) < datetime.fromisoformat(shown["to"])
