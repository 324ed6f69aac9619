"""A scripted market: minute bars from a seed, read at any clock, with a feed and a store that may fail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

import numpy as np

from openbell.market.bars import MINUTE, Bars, make
from openbell.market.errors import FeedUnavailable, OpenbellError, StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span, Version
from openbell.trading import amounts
from tests.stores.samples import LIVE

T = TypeVar("T")
SYMBOLS = (parse("BTC/USD"), parse("ETH/USD"), parse("SOL/USD"))
FIRST = {"BTC/USD": 100.0, "ETH/USD": 40.0, "SOL/USD": 7.5}
NOON = 1_757_073_600.0
BEFORE_MIDNIGHT = NOON + 42_900
DAY = 86400
STALE_AFTER = 900.0
_EARLIER = 10
"""Minutes of bars before a schedule starts, so that every symbol has a price."""


class Clock:
    """A clock that only the schedule moves; its resolution is 1 ms, as in the ledger."""

    moving = True

    def __init__(self, at: float) -> None:
        self.at = round(at, 3)

    def move(self, seconds: float) -> None:
        self.at = round(self.at + seconds, 3)

    def epoch(self) -> float:
        return self.at

    @property
    def closed(self) -> int:
        """The end of the last minute that has closed."""
        return int(self.at // MINUTE * MINUTE)

    async def sleep_until(self, _epoch: float) -> None:
        raise AssertionError("nothing here waits for the clock")


class Script:
    """Minute bars of every symbol, a random walk from the seed. Some minutes have no bar; some walks fall or crash."""

    def __init__(self, chance: random.Random, start: int, count: int) -> None:
        self.thin = chance.random() < 0.5
        self.bars: dict[str, Bars] = {}
        for symbol, price in FIRST.items():
            drift = chance.choice((0.0, 0.0, -0.003, 0.003))
            crash = chance.randrange(count) if chance.random() < 0.4 else -1
            rows, last = [], price
            for number in range(-_EARLIER, count):
                if chance.random() < 0.1 and number > -_EARLIER:
                    continue
                fall = 0.12 if number == crash else 0.0
                close = round(last * (1 + drift - fall + chance.uniform(-0.015, 0.015)), 2)
                high, low = max(last, close) + chance.randrange(3) / 10, min(last, close) - chance.randrange(3) / 10
                volume = chance.choice((0.0, 3.0, 40.0, 250.0)) if self.thin else 1e9
                rows.append((start + number * MINUTE, last, round(high, 2), round(low, 2), close, volume))
                last = close
            self.bars[symbol] = make(parse(symbol), Timeframe.M1, *zip(*rows, strict=True))

    def close(self, symbol: str, moment: float) -> Decimal:
        """Returns the close of the last minute that had ended by a moment."""
        bars = self.bars[symbol]
        return amounts.of_bar(bars.close[int(np.searchsorted(bars.time, moment - MINUTE, side="right")) - 1])

    def closes(self, symbol: str, start: float, end: float) -> set[Decimal]:
        """Returns every price that was the latest at some time from `start` to `end`."""
        bars = self.bars[symbol]
        first = int(np.searchsorted(bars.time, start - MINUTE, side="right")) - 1
        last = int(np.searchsorted(bars.time, end - MINUTE, side="right"))
        return {amounts.of_bar(value) for value in bars.close[max(first, 0) : max(last, 1)]}


@cache
def script(number: int, start: int) -> Script:
    """Returns one of a few cached scripts."""
    return Script(random.Random(number), start, 120)


@dataclass(slots=True)
class Outage:
    """A time during which the bars of a symbol cannot be read or fetched."""

    symbol: str
    store: bool
    """Whether the store raises; otherwise the feed fails, and stored bars can be read."""
    begin: float
    begin_seq: int
    end: float | None = None
    end_seq: int | None = None


class Market:
    """The part of `BarService` that trading uses, at one clock."""

    def __init__(self, script: Script, clock: Clock, down: dict[str, Outage]) -> None:
        self.store = self.feed = self.threads = self.sources = self
        self.source = "scripted"
        self.versions = MarketVersions(self)
        self.script = script
        self.clock = clock
        self.down = down

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Run work at once instead of in a thread."""
        await asyncio.sleep(0)
        return work(*args)

    def supports(self, _instrument: Instrument) -> bool:
        return True

    def route(self, _instrument: Instrument) -> Market:
        return self

    def of(self, _series: Series, _span: Span) -> set[Source]:
        """Returns the sources of stored bars."""
        return {LIVE}

    def closed_until(self) -> int:
        return self.clock.closed

    async def fill(self, instrument: Instrument, span: Span) -> OpenbellError | None:
        outage = self.down.get(instrument.symbol)
        if outage and not outage.store and span.end > outage.begin // MINUTE * MINUTE:
            return FeedUnavailable(f"no bars of {instrument}")
        return None

    def read(self, series: Series, start: int, end: int) -> Bars:
        outage = self.down.get(series.instrument.symbol)
        if outage and outage.store:
            raise StoreError(f"bars of {series} cannot be read")
        known = min(end, outage.begin // MINUTE * MINUTE) if outage else end
        known = min(known, self.clock.closed)
        return self.script.bars[series.instrument.symbol].between(start, known)

    def tail(self, series: Series, count: int, end: int) -> Bars:
        return self.read(series, 0, end).tail(count)

    async def newest(self, instrument: Instrument, _timeframe: Timeframe, count: int) -> Bars:
        return self.tail(Series(instrument), count, self.closed_until())


class MarketVersions:
    """The versions of a market's series: a new one each time, so that nothing is cached."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._made = 0

    def new_bars(self, versions: Mapping[Series, Version], span: Span) -> dict[Series, Bars]:
        """Without symbols that cannot be read or fetched."""
        wanted = (series for series in versions if series.instrument.symbol not in self._market.down)
        return {series: self._market.read(series, span.start, span.end) for series in wanted}

    def of(self, _series: Series) -> Version:
        """Returns the next version."""
        self._made += 2
        return Version(self._made, 0)

    def changed_since(self, _series: Series, _version: Version) -> int:
        """Every bar may have changed."""
        return 0
