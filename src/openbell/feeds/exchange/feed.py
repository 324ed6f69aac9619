"""An exchange behind the feeds' port."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from openbell.feeds.exchange.candles import fetch, page_size
from openbell.feeds.exchange.connection import Connection
from openbell.feeds.exchange.extras import fetch_extra
from openbell.feeds.exchange.live import Live
from openbell.feeds.exchange.recent import Recent
from openbell.feeds.exchange.sockets import Sockets
from openbell.feeds.port import Batch
from openbell.market.bars import MINUTE, Bars, empty
from openbell.market.clock import Clock, bounded
from openbell.market.errors import UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe

EARLIEST = 1_483_228_800
"""2017-01-01: before most exchanges that are still there."""
_BEHIND = 60.0
"""Seconds by which history is behind the clock while nothing streams."""


class CcxtFeed:
    """Spot candles of one exchange, through ccxt: history by REST, live by WebSocket or, without one, by asking.

    `options` go into the configuration of ccxt's objects. ccxt is loaded and the markets are asked for on first use, so a
    wrong name or a missing package is a `SettingsError` then. `close` ends the connections; they also end with their event
    loop. One event loop at a time uses a feed.
    """

    origin = Origin.LIVE

    def __init__(self, clock: Clock, exchange: str, *, options: Mapping[str, Any] | None = None) -> None:
        self.name = f"ccxt:{exchange}"
        self.source: Source | None = Source(Origin.LIVE, f"ccxt-{exchange}")
        self._clock = bounded(clock)
        self._connection = Connection(exchange, options or {})
        self._sockets = Sockets(self._connection)
        self._recent = Recent()
        self._marks: dict[object, int] = {}

    def knows(self, instrument: Instrument) -> bool:
        """Whether it is an active spot pair; before the markets are loaded, whether it could be one."""
        listing = self._connection.listing
        return instrument.asset_class is AssetClass.CRYPTO and (listing is None or instrument.symbol in listing.spot)

    def earliest(self, now: float) -> int:  # noqa: ARG002 - the port's signature
        """Long ago: an exchange that began later, or keeps less, has no candles there."""
        return EARLIEST

    def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """Unknown: exchanges do not tell where a pair's history begins."""
        return None

    def watermark(self, now: float) -> float:
        """What all running streams have completed; without one, a minute ago."""
        return min(now, max(now - _BEHIND, min(self._marks.values(), default=0)))

    async def history(self, instrument: Instrument, start: int, end: int) -> Bars:
        """Closed minute bars that opened in [start, end). Raises `FeedUnavailable` and `UnknownSymbol`."""
        await self._check(instrument)
        now = self._clock.epoch()
        start, end = max(_next_minute(start), EARLIEST), min(_next_minute(end), int(now // MINUTE * MINUTE))
        if start >= end:
            return empty(instrument)
        bars = await fetch(self._connection, instrument, start, end, now)
        self._recent.note(bars)
        return bars

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:
        """Funding, open interest or long to short of the pair's perpetual swap. Raises `NoSuchSeries`."""
        return await fetch_extra(self._connection, self.name, kind, instrument, start, end, self._clock.epoch())

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """What closed since then, then each minute a few seconds after its end.

        Corrections of the last ten minutes are delivered too, also of bars that `history` or an earlier stream gave.
        Raises `FeedUnavailable` when the connection breaks or falls silent, and `UnknownSymbol`.
        """
        for instrument in instruments:
            await self._check(instrument)
        # Listening begins before the past is asked for, so that nothing falls between.
        socket = await self._sockets.open([instrument.symbol for instrument in instruments])
        live = Live(self._connection, self._clock, self._recent, socket, max(_next_minute(since), EARLIEST))
        this = object()
        try:
            async with aclosing(live.batches(instruments)) as batches:
                async for batch in batches:
                    self._marks[this] = batch.complete_until
                    yield batch
        finally:
            self._marks.pop(this, None)
            if socket is not None:
                await self._sockets.close(socket)

    async def close(self) -> None:
        """Close the connections for HTTP; streams close theirs when they are closed. The next call opens them again."""
        await self._connection.close()

    async def _check(self, instrument: Instrument) -> None:
        await page_size(self._connection)
        await self._connection.load_listing()
        if not self.knows(instrument):
            raise UnknownSymbol(
                instrument.symbol, f"{self.name.removeprefix('ccxt:')} lists no active spot market for it"
            )


def _next_minute(epoch: int) -> int:
    """The first whole minute that is not before."""
    return -(-epoch // MINUTE) * MINUTE
