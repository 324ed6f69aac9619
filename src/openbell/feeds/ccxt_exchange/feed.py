"""An exchange as a feed: bars, and the funding, open interest and long/short ratio of the perpetual swap on a pair."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import numpy as np

from openbell.feeds.ccxt_exchange.candle_stream import CandleStream, RecentBars, Sockets
from openbell.feeds.ccxt_exchange.candles import EARLIEST, fetch, natives, page_size
from openbell.feeds.ccxt_exchange.connection import ExchangeConnection
from openbell.feeds.port import Batch, Feed
from openbell.market.bars import MINUTE, Bars, Values, empty_of
from openbell.market.clock import Clock, bounded
from openbell.market.errors import NoSuchSeries, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe

_HOUR = 3600
_DAY = 24 * _HOUR
_FUNDING_PERIOD = 8 * _HOUR
"""The period that funding rates are converted to."""


@dataclass(frozen=True, slots=True)
class _Series:
    """How to fetch one kind of series with ccxt."""

    has: str
    """The name of the capability in ccxt's `has`."""
    value: str
    """The name of the value in ccxt's rows."""
    limit: int
    """Values per page that every exchange allows."""
    kept: int
    """The seconds of history that exchanges keep."""
    call: Callable[[Any, str, int, int], Awaitable[list[dict[str, Any]]]]
    """Arguments: ccxt's object, the swap's symbol, the start in milliseconds, the limit."""


_SERIES = {
    "funding": _Series(
        "fetchFundingRateHistory",
        "fundingRate",
        100,
        10 * 365 * _DAY,
        lambda rest, swap, since, limit: rest.fetch_funding_rate_history(swap, since, limit),
    ),
    "open_interest": _Series(
        "fetchOpenInterestHistory",
        "openInterestAmount",
        200,
        29 * _DAY,
        lambda rest, swap, since, limit: rest.fetch_open_interest_history(swap, "1h", since, limit),
    ),
    "long_short": _Series(
        "fetchLongShortRatioHistory",
        "longShortRatio",
        200,
        29 * _DAY,
        # Without an end Binance returns the latest page instead of the first.
        lambda rest, swap, since, limit: rest.fetch_long_short_ratio_history(
            swap, "1h", since, limit, {"until": since + limit * _HOUR * 1000}
        ),
    ),
}


async def fetch_extra(
    connection: ExchangeConnection, feed: str, kind: str, instrument: Instrument, start: int, end: int, now: float
) -> Extra:
    """Returns the values of one kind in [start, end) up to `now`.

    Open interest is in the exchange's unit: coins on Binance, contracts on some other exchanges. Raises `NoSuchSeries`,
    `FeedUnavailable` and `UnknownSymbol`.
    """
    series = _SERIES.get(kind)
    if series is None:
        raise NoSuchSeries(feed, kind, instrument.symbol, f"exchanges have {', '.join(_SERIES)}")
    if (await connection.rest()).has.get(series.has) is not True:
        raise NoSuchSeries(feed, kind, instrument.symbol, "the exchange does not publish it; binance, bybit and okx do")
    swap = (await connection.load_listing(swaps=True)).swaps.get(instrument.symbol)
    if swap is None:
        raise NoSuchSeries(feed, kind, instrument.symbol, "the exchange has no perpetual swap on this pair")
    end = min(end, int(now) + 1)
    start = max(start, int(now) - series.kept)
    # Funding is converted to a rate per 8 hours. The value before the first one is needed to compute the interval.
    first = start - _FUNDING_PERIOD if kind == "funding" else start
    times, values = (
        await _pages(connection, series, swap, first, end) if end > start else (np.empty(0, np.int64), np.empty(0))
    )
    if kind == "funding":
        values = values * _to_eight_hours(times)
    inside = times >= start
    return Extra(times[inside], values[inside])


async def _pages(
    connection: ExchangeConnection, series: _Series, swap: str, start: int, end: int
) -> tuple[Times, Values]:
    """Returns all values in [start, end), fetched page by page."""
    found: dict[int, float] = {}
    at = start
    while at < end:
        page = await _page(connection, series, swap, at)
        fresh = {moment: value for moment, value in page.items() if at <= moment < end}
        if not fresh:
            break
        found |= fresh
        at = max(fresh) + 1
    times = np.array(sorted(found), dtype=np.int64)
    return times, np.array([found[moment] for moment in times.tolist()], dtype=np.float64)


async def _page(connection: ExchangeConnection, series: _Series, swap: str, at: int) -> dict[int, float]:
    async def request(rest: Any) -> dict[int, float]:
        rows = await series.call(rest, swap, at * 1000, series.limit)
        values = {int(row["timestamp"]) // 1000: row.get(series.value) for row in rows}
        return {moment: float(value) for moment, value in values.items() if value is not None}

    return await connection.with_retries(request, swap)


def _to_eight_hours(times: Times) -> Values:
    """Returns the factor that converts each rate to 8 hours; 1 if its interval does not divide 8 hours."""
    if len(times) < 2:
        return np.ones(len(times))
    steps = np.round(np.diff(times, prepend=2 * times[0] - times[1]) / _HOUR)
    return np.where(np.isin(steps, (1, 2, 4, 8)), 8 / np.maximum(steps, 1), 1.0)


_HISTORY_DELAY = 60.0
"""The watermark's delay in seconds while no stream is running."""


class CcxtFeed:
    """Spot candles of one exchange through ccxt: history by REST, live candles by WebSocket or, without one, by polling.

    `options` are added to the configuration of ccxt's objects. `proxy` is put before the URLs of HTTP requests. ccxt and the
    markets are loaded on first use, which raises `SettingsError` if the exchange does not exist or a package is missing.
    Connections are closed by `close` or with the event loop. A feed must be used by one event loop at a time.
    """

    origin = Origin.LIVE

    def __init__(
        self, clock: Clock, exchange: str, *, options: Mapping[str, Any] | None = None, proxy: str = ""
    ) -> None:
        self.name = f"ccxt:{exchange}"
        self.source: Source | None = Source(Origin.LIVE, f"ccxt-{exchange}")
        self._clock = bounded(clock)
        self._connection = ExchangeConnection(exchange, options or {}, proxy)
        self._sockets = Sockets(self._connection)
        self._recent = RecentBars()
        self._natives: Mapping[Timeframe, Native] | None = None
        self._completed: dict[object, int] = {}

    def route(self, instrument: Instrument) -> Feed:  # noqa: ARG002 - the port's signature
        """Returns itself."""
        return self

    def supports(self, instrument: Instrument) -> bool:
        """Returns True if it is an active spot pair; before the markets are loaded, if it is any crypto pair."""
        listing = self._connection.listing
        return instrument.asset_class is AssetClass.CRYPTO and (listing is None or instrument.symbol in listing.spot)

    def listed(self) -> Iterable[Instrument]:
        """Returns the active spot pairs; none before the markets are loaded."""
        listing = self._connection.listing
        return [] if listing is None else [Instrument(each, AssetClass.CRYPTO) for each in sorted(listing.spot)]

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        """Returns the timeframes of the exchange, from 2017-01-01 on where it has older candles.

        A pair may be younger than that.
        """
        await self._check(instrument)
        if self._natives is None:
            self._natives = await natives(self._connection)
        return self._natives

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """Returns None: exchanges do not publish where a pair's history begins."""
        return None

    def watermark(self, now: float) -> float:
        """Returns the time up to which all running streams are complete; without a stream, a minute ago."""
        return min(now, max(now - _HISTORY_DELAY, min(self._completed.values(), default=0)))

    async def history(self, series: Series, start: int, end: int) -> Bars:
        """Returns the closed bars that opened in [start, end). Raises `FeedUnavailable` and `UnknownSymbol`."""
        native = (await self.natives(series.instrument))[series.timeframe]
        now = self._clock.epoch()
        start = max(_next_minute(start), _next_minute(native.earliest(now)))
        end = min(_next_minute(end), int(now // MINUTE * MINUTE))
        if start >= end:
            return empty_of(series)
        bars = await fetch(self._connection, series, start, end, now)
        if series.timeframe is Timeframe.M1:
            self._recent.record(bars)
        return bars

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:
        """Returns funding, open interest or long/short ratio of the pair's perpetual swap. Raises `NoSuchSeries`."""
        return await fetch_extra(self._connection, self.name, kind, instrument, start, end, self._clock.epoch())

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """Yields the bars closed since `since`, then each minute a few seconds after its end.

        Also yields corrections of the last ten minutes, including bars that `history` or an earlier stream returned.
        Raises `FeedUnavailable` if the connection breaks or sends nothing, and `UnknownSymbol`.
        """
        for instrument in instruments:
            await self._check(instrument)
        # The socket is opened before the history is fetched, so that there is no gap between them.
        socket = await self._sockets.open([instrument.symbol for instrument in instruments])
        candles = CandleStream(self._connection, self._clock, self._recent, socket, max(_next_minute(since), EARLIEST))
        this = object()
        try:
            async with aclosing(candles.batches(instruments)) as batches:
                async for batch in batches:
                    self._completed[this] = batch.complete_until
                    yield batch
        finally:
            self._completed.pop(this, None)
            if socket is not None:
                await self._sockets.close(socket)

    async def close(self) -> None:
        """Close the HTTP connections; the next call opens them again. A stream closes its socket when it is closed."""
        await self._connection.close()

    async def _check(self, instrument: Instrument) -> None:
        await page_size(self._connection)
        await self._connection.load_listing()
        if not self.supports(instrument):
            raise UnknownSymbol(
                instrument.symbol, f"{self.name.removeprefix('ccxt:')} lists no active spot market for it"
            )


def _next_minute(epoch: int) -> int:
    """Returns the time rounded up to a full minute."""
    return -(-epoch // MINUTE) * MINUTE
