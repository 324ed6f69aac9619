"""Alpaca as a feed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence

from openbell.feeds.alpaca.refusals import header_key
from openbell.feeds.alpaca.rest import Rest
from openbell.feeds.alpaca.stream import FINAL_AFTER, MinuteStream, UncertainSpans
from openbell.feeds.alpaca.wire import Row
from openbell.feeds.port import Batch, Feed
from openbell.market.bars import COLUMNS, MINUTE, Bars, bucket_bounds, empty_of, make
from openbell.market.clock import Clock, bounded
from openbell.market.errors import NoSuchSeries, SettingsError, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.provenance import Adjustment, Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.sessions import eastern, session_on
from openbell.market.timeframes import Timeframe

log = logging.getLogger(__name__)

FEEDS = ("iex", "sip")

_DAY = 86400
_EARLIEST = 1_451_606_400  # 2016-01-01
_DAY_PUBLISHED = 16_200.0
"""Seconds after the close at which a stock's daily bar does not change any more: half an hour after extended hours."""
_INTRADAY = dict.fromkeys(
    (Timeframe.M1, Timeframe.M3, Timeframe.M5, Timeframe.M15, Timeframe.M30, Timeframe.H1),
    Native(_EARLIEST, delay=FINAL_AFTER),
)
"""Longer bars within a day are cut at New York's hours, which are not ours."""
NATIVES = {
    AssetClass.STOCK: {**_INTRADAY, Timeframe.D1: Native(_EARLIEST, delay=_DAY_PUBLISHED)},
    # Days of crypto have been cut at midnight of other zones at times.
    AssetClass.CRYPTO: _INTRADAY,
}
_UNLISTED_FOR = 3600.0
"""Seconds for which a symbol counts as not listed by Alpaca; then it is checked again, because new symbols are added."""


class AlpacaFeed:
    """US stocks and crypto from Alpaca: history by REST, live bars by WebSocket, with the keys of any plan.

    `feed` is the source of stock prices (`iex`: one exchange, free; `sip`: all exchanges, paid). `pause` is the function
    that waits between two tries.
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
        _one_of("OPENBELL_ALPACA_ADJUSTMENT", adjustment, tuple(Adjustment))
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
        self._streams: list[MinuteStream] = []
        self._uncertain = UncertainSpans()

    def route(self, instrument: Instrument) -> Feed:  # noqa: ARG002 - the port's signature
        """Returns itself."""
        return self

    def supports(self, instrument: Instrument) -> bool:
        """Returns True for stocks and crypto, unless Alpaca does not list the symbol."""
        return instrument.asset_class in NATIVES and not self._is_unlisted(instrument)

    def listed(self) -> Iterable[Instrument]:
        """Returns none: the list is not fetched."""
        return ()

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        """Returns minutes to hours and, for stocks, days from 2016 on; crypto starts later."""
        return NATIVES[instrument.asset_class]

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """Returns None: Alpaca does not publish where a symbol's history begins."""
        return None

    def watermark(self, now: float) -> float:
        """Returns the time up to which all streams are complete; without a stream, up to which Alpaca changes no bars."""
        completed = [stream.complete_until for stream in self._streams if stream.healthy]
        return min(now, max(now - FINAL_AFTER, min(completed, default=0)))

    async def history(self, series: Series, start: int, end: int) -> Bars:
        """Returns the closed bars that opened in [start, end). Raises `FeedUnavailable` and `UnknownSymbol`."""
        instrument = series.instrument
        self._check(instrument)
        now = self._clock.epoch()
        start, end = max(start, _EARLIEST), min(end, int(now // MINUTE * MINUTE))
        if start >= end:
            return empty_of(series)
        # A daily bar is stamped at midnight in New York, before its session opens.
        first = start - _DAY if series.timeframe is Timeframe.D1 else start
        try:
            rows = (await self._rest.rows([instrument], first, end, series.timeframe))[instrument]
        except UnknownSymbol:
            self._unlisted[instrument] = time.monotonic()
            raise
        if not rows:
            await self._check_listed(instrument)
            return empty_of(series)
        self._listed.add(instrument)
        if series.timeframe is Timeframe.D1:
            rows = _at_opens(instrument, rows)
        return _closed(make(instrument, series.timeframe, *_columns(rows)).between(start, end), now)

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:  # noqa: ARG002
        """Raises `NoSuchSeries`: Alpaca has bars, trades and quotes only."""
        hint = "Alpaca offers none; set OPENBELL_FEED to a feed that has it, such as sim"
        raise NoSuchSeries(self.name, kind, instrument.symbol, hint)

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """Yields the bars closed since `since`, then each minute when it is complete, and corrections when they arrive.

        Raises `FeedUnavailable` if a connection breaks, and `UnknownSymbol`.
        """
        for instrument in instruments:
            self._check(instrument)
        since = max(since, _EARLIEST)
        stream = MinuteStream(self._clock, self._rest, self._keys, self._urls, instruments, since, self._uncertain)
        self._streams.append(stream)
        batches = stream.batches()
        try:
            async for batch in batches:
                yield batch
        finally:
            self._streams.remove(stream)
            await batches.aclose()

    async def close(self) -> None:
        """Close idle connections now; otherwise they close after 10 s, or with the event loop."""
        await self._rest.close()

    def _check(self, instrument: Instrument) -> None:
        if instrument.asset_class not in NATIVES:
            raise UnknownSymbol(instrument.symbol, "Alpaca has US stocks and crypto")
        if self._is_unlisted(instrument):
            raise UnknownSymbol(instrument.symbol, "Alpaca does not list it")

    def _is_unlisted(self, instrument: Instrument) -> bool:
        checked_at = self._unlisted.get(instrument)
        return checked_at is not None and time.monotonic() - checked_at < _UNLISTED_FOR

    async def _check_listed(self, instrument: Instrument) -> None:
        """Raises `UnknownSymbol` if Alpaca does not list a symbol without bars. Each listed symbol is checked once."""
        if instrument in self._listed:
            return
        listed = await self._rest.listed(instrument)
        if listed:
            self._listed.add(instrument)
        elif listed is False:
            self._unlisted[instrument] = time.monotonic()
            self._check(instrument)


def _at_opens(instrument: Instrument, rows: Sequence[Row]) -> list[Row]:
    """Returns daily rows, which are stamped at midnight in New York, with the opens of their sessions as times.

    Rows of days without a session are dropped and logged.
    """
    sessions = [session_on(eastern(row[0]).date()) for row in rows]
    found = [(session.open, *row[1:]) for session, row in zip(sessions, rows, strict=True) if session]
    if len(found) < len(rows):
        dropped = len(rows) - len(found)
        log.warning("dropped %d bars of Alpaca's history (%s): no session on that day", dropped, instrument)
    return found


def _columns(rows: Sequence[Row]) -> Iterable[Sequence[float]]:
    return zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)


def _closed(bars: Bars, now: float) -> Bars:
    """Returns the bars without the forming one."""
    _, ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)
    return bars.take(ends <= now)


def _one_of(variable: str, value: str, accepted: Sequence[str]) -> None:
    if value not in accepted:
        raise SettingsError(f"{variable} is {value!r}: use one of {', '.join(accepted)}")
