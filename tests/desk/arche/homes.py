"""Homes with bars that a test has chosen, and the quotes API on them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from openbell.desk.desk import Desk
from openbell.desk.quotes.arche.requests import HISTORICAL, LIVE, ArcheResponse
from openbell.desk.settings import load
from openbell.market.bars import Bars, closed_at, make
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span

DAY = 86400
MONDAY = 1_749_427_200
"""2025-06-09 00:00 UTC."""
IMPORTED = Source(Origin.IMPORTED, "import")


def bars_at(
    symbol: str, times: Sequence[int], timeframe: Timeframe = Timeframe.M1, price: float = 100.0, volume: float = 2.5
) -> Bars:
    """Bars whose prices grow by a hundredth from one to the next."""
    close = price + np.arange(len(times)) / 100
    values = (close, close + 1, close - 1, close, np.full(len(times), volume))
    return make(parse(symbol), timeframe, list(times), *values)


@asynccontextmanager
async def desk_with(home: Path, now: float, *bars: Bars, **settings: str) -> AsyncIterator[Desk]:
    """A desk without a feed whose clock stands, and the bars in its store."""
    given = {"HOME": str(home), "FEED": "none", "AS_OF": iso(now), "TIMEOUT": "60", **settings}
    async with Desk(load({f"OPENBELL_{name}": value for name, value in given.items()})) as desk:
        for each in bars:
            covers = None if each.timeframe is Timeframe.M1 else Span(int(each.time[0]), closed_at(each))
            desk.store.write([each], IMPORTED, covers=covers)
        yield desk


class Answer:
    """A response of the quotes API, read."""

    def __init__(self, response: ArcheResponse) -> None:
        self.response = response
        self.status = response.status
        self.body: Any = json.loads(response.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error of an envelope."""
        assert self.status >= 400, self.body
        assert set(self.body) == {"error"}
        found: dict[str, Any] = self.body["error"]
        assert set(found) == {"code", "http_status", "message", "details", "trace_id"}
        assert found["http_status"] == self.status
        return found

    @property
    def quotes(self) -> dict[str, dict[str, Any]]:
        """The live quotes by ticker."""
        assert self.status in {200, 206}, self.body
        return {each["ticker"]: each for each in self.body["data"]["items"]}

    @property
    def missing(self) -> list[str]:
        """The tickers without an answer."""
        found = self.body.get("data", self.body)
        return [each["ticker"] for each in found.get("missing", [])]


async def ask(desk: Desk, path: str, **params: object) -> Answer:
    """The answer to a request. A parameter that is a Python keyword has an underscore at its end."""
    given = [(name.rstrip("_"), str(value)) for name, value in params.items()]
    return Answer(await desk.arche.local.get(path, given, "the-request"))


async def live(desk: Desk, tickers: str) -> Answer:
    """Live quotes."""
    return await ask(desk, LIVE, tickers=tickers)


async def historical(desk: Desk, tickers: str, first: str, to: str, interval: str = "1m", **more: object) -> Answer:
    """A page of bars."""
    return await ask(desk, HISTORICAL, tickers=tickers, from_=first, to=to, interval=interval, **more)
