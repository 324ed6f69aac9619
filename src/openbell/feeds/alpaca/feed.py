"""Alpaca behind the feeds' port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from openbell.feeds.alpaca.rest import Rest
from openbell.feeds.alpaca.session import header_key
from openbell.feeds.alpaca.stream import FINAL, Doubts, Stream
from openbell.feeds.port import Batch
from openbell.market.bars import MINUTE, Bars, empty, make
from openbell.market.clock import Clock, bounded
from openbell.market.errors import NoSuchSeries, SettingsError, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe

FEEDS = ("iex", "sip")
ADJUSTMENTS = ("raw", "split", "dividend", "all")

_EARLIEST = 1_451_606_400  # 2016-01-01
_CLASSES = frozenset({AssetClass.STOCK, AssetClass.CRYPTO})
_REMEMBERED = 3600.0
"""Seconds for which a symbol that Alpaca does not list stays unknown: new ones are listed every day."""


class AlpacaFeed:
    """US stocks and crypto from Alpaca: history by REST, live by WebSocket, with keys of any plan.

    `feed` is where stock prices come from (`iex`: one exchange, free; `sip`: all, paid). `pause` is how it waits between
    two tries.
    """

    name = "alpaca"
    origin = Origin.LIVE

    def __init__(
        self,
        clock: Clock,
        key: str,
        secret: str,
        *,
        feed: str = "iex",
        adjustment: str = "raw",
        data_url: str = "https://data.alpaca.markets",
        stream_url: str = "wss://stream.data.alpaca.markets",
        trading_url: str = "https://paper-api.alpaca.markets",
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        _one_of("OPENBELL_ALPACA_FEED", feed, FEEDS)
        _one_of("OPENBELL_ALPACA_ADJUSTMENT", adjustment, ADJUSTMENTS)
        self.source: Source | None = Source(Origin.LIVE, f"alpaca-{feed}", adjustment)
        self._clock = bounded(clock)
        self._keys = (
            header_key("ALPACA_API_KEY", key, "the feed alpaca"),
            header_key("ALPACA_SECRET_KEY", secret, "the feed alpaca"),
        )
        self._rest = Rest(
            self._clock,
            self._keys,
            feed=feed,
            adjustment=adjustment,
            data_url=data_url,
            trading_url=trading_url,
            pause=pause,
        )
        base = stream_url.rstrip("/")
        self._urls = {AssetClass.STOCK: f"{base}/v2/{feed}", AssetClass.CRYPTO: f"{base}/v1beta3/crypto/us"}
        self._listed: set[Instrument] = set()
        self._unlisted: dict[Instrument, float] = {}
        self._streams: list[Stream] = []
        self._doubts = Doubts()

    def knows(self, instrument: Instrument) -> bool:
        """Stocks and crypto, but for those that Alpaca has said it does not list."""
        return instrument.asset_class in _CLASSES and not self._said_unknown(instrument)

    def earliest(self, now: float) -> int:  # noqa: ARG002 - the port's signature
        """Where Alpaca's history of stocks begins; crypto's is younger."""
        return _EARLIEST

    def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """Unknown: Alpaca does not tell where a symbol's history begins."""
        return None

    def watermark(self, now: float) -> float:
        """What the running streams have completed; without one, the time from which on Alpaca revises nothing."""
        completed = [stream.complete_until for stream in self._streams if stream.healthy]
        return min(now, max(now - FINAL, min(completed, default=0)))

    async def history(self, instrument: Instrument, start: int, end: int) -> Bars:
        """Closed minute bars that opened in [start, end). Raises `FeedUnavailable` and `UnknownSymbol`."""
        self._check(instrument)
        now = self._clock.epoch()
        start, end = max(start, _EARLIEST), min(end, int(now // MINUTE * MINUTE))
        if start >= end:
            return empty(instrument)
        try:
            rows = (await self._rest.rows([instrument], start, end))[instrument]
        except UnknownSymbol:
            self._unlisted[instrument] = time.monotonic()
            raise
        if rows:
            self._listed.add(instrument)
            return make(instrument, Timeframe.M1, *zip(*rows, strict=True))
        await self._ask_whether_listed(instrument)
        return empty(instrument)

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:  # noqa: ARG002
        """None: Alpaca has bars, trades and quotes only."""
        hint = "Alpaca offers none; set OPENBELL_FEED to a feed that has it, such as sim"
        raise NoSuchSeries(self.name, kind, instrument.symbol, hint)

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """What closed since then, from the history, then each minute as it completes, and corrections as they come.

        Raises `FeedUnavailable` when a connection breaks and `UnknownSymbol`.
        """
        for instrument in instruments:
            self._check(instrument)
        since = max(since, _EARLIEST)
        stream = Stream(self._clock, self._rest, self._keys, self._urls, instruments, since, self._doubts)
        self._streams.append(stream)
        batches = stream.batches()
        try:
            async for batch in batches:
                yield batch
        finally:
            self._streams.remove(stream)
            await batches.aclose()

    async def close(self) -> None:
        """Let go of idle connections now; without this they close after some seconds, or with the event loop."""
        await self._rest.close()

    def _check(self, instrument: Instrument) -> None:
        if instrument.asset_class not in _CLASSES:
            raise UnknownSymbol(instrument.symbol, "Alpaca has US stocks and crypto")
        if self._said_unknown(instrument):
            raise UnknownSymbol(instrument.symbol, "Alpaca does not list it")

    def _said_unknown(self, instrument: Instrument) -> bool:
        said = self._unlisted.get(instrument)
        return said is not None and time.monotonic() - said < _REMEMBERED

    async def _ask_whether_listed(self, instrument: Instrument) -> None:
        """No bars may mean that nothing traded or that there is no such thing; it is asked once per symbol."""
        if instrument in self._listed:
            return
        listed = await self._rest.listed(instrument)
        if listed:
            self._listed.add(instrument)
        elif listed is False:
            self._unlisted[instrument] = time.monotonic()
            self._check(instrument)


def _one_of(variable: str, value: str, accepted: Sequence[str]) -> None:
    if value not in accepted:
        raise SettingsError(f"{variable} is {value!r}: use one of {', '.join(accepted)}")
