"""Fetches ccxt's candles (milliseconds, open, high, low, close, volume) and converts them to bars."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from openbell.feeds.ccxt_exchange.connection import ExchangeConnection, together
from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.clock import iso
from openbell.market.errors import FeedUnavailable
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import SHORT, Timeframe, name_of

log = logging.getLogger(__name__)

EARLIEST = 1_483_228_800
"""2017-01-01; few exchanges have older candles."""
_PAGE = 100
"""The number of candles per request if ccxt does not have the exchange's limit."""
_DELAY = 20.0
"""Seconds after its end at which a candle longer than a minute is final. A bar counts as closed after the same time
(`desk.bars.GRACE`), so that minutes are not needed for the latest one."""
_NEWEST_ONLY = frozenset({"kraken"})
"""Exchanges that return their newest page of candles whatever is requested; ccxt has no field for this."""
_MOST_CONCURRENT = 8
"""Pages that are requested at the same time; the exchange's rate still separates the requests."""
_MARGIN = 600
"""Seconds. Candles that leave the newest page within this time are not offered: a request may have to wait so long."""


def to_bars(series: Series, rows: Sequence[Sequence[Any]], now: float) -> Bars:
    """Returns the closed candles as bars, sorted, without duplicates. Impossible candles are dropped and logged.

    Candles longer than a minute that begin at other times than ours are kept, so that the desk can refuse the timeframe.
    """
    instrument = series.instrument
    if not rows:
        return barlib.empty_of(series)
    table = np.array([list(row)[:6] for row in rows], dtype=np.float64)
    table = table[(table[:, 0] > 0) & (table[:, 0] <= (now - series.timeframe.seconds) * 1000)]
    found = barlib.sort(barlib.make(instrument, series.timeframe, table[:, 0] // 1000, *table.T[1:]))
    bad = np.zeros(len(found), dtype=bool)
    for reason, mask in barlib.faults(replace(found, timeframe=Timeframe.M1), now):
        log.warning("%s: dropped %d candles: %s", instrument, mask.sum(), reason)
        bad |= mask
    return found.take(~bad) if bad.any() else found


async def fetch(connection: ExchangeConnection, series: Series, start: int, end: int, now: float) -> Bars:
    """Returns the bars that opened in [start, end) and are closed at `now`, fetched page by page.

    The next pages are requested concurrently, twice as many each time, as long as every page is complete: where candles are
    missing, the start of the next page depends on the last one.
    Bars that are cut at other times than ours are returned as they are, of the first page that has one: the desk does not
    use them. Raises `FeedUnavailable` and `UnknownSymbol`.
    """
    limit, step = await page_size(connection), series.timeframe.seconds
    if connection.exchange in _NEWEST_ONLY:
        return await _newest(connection, series, start, end, now)
    parts = [barlib.empty_of(series)]
    at, end = -(-start // step) * step, min(end, int(now // step) * step)  # without the forming candle
    concurrent = 1
    while at < end:
        starts = range(at, end, limit * step)[:concurrent]
        sizes = [min(limit, -(-(end - each) // step)) for each in starts]
        pages = await together(_page(connection, series, *each, now) for each in zip(starts, sizes, strict=True))
        concurrent = min(2 * concurrent, _MOST_CONCURRENT)
        for first, page in zip(starts, pages, strict=True):
            inside = page.between(first, end)
            parts.append(inside)
            if (inside.time % step).any():
                return barlib.merge(*parts)
            at = _next_page(page, inside, first + limit * step, end)
            if at != first + limit * step:  # the exchange returned fewer candles or later ones
                concurrent = 1
                break
    return barlib.merge(*parts)


def _next_page(page: Bars, inside: Bars, after: int, end: int) -> int:
    """Returns where to continue after a page; `after` is the end of its last candle if none is missing."""
    if len(inside):
        return int(inside.time[-1]) + inside.timeframe.seconds
    # Without trades in this page, some exchanges return the next candles, others none.
    return end if len(page) and page.time[-1] >= end else after


async def page_size(connection: ExchangeConnection) -> int:
    """Returns the maximum number of candles per request. Raises `FeedUnavailable` if there are no minute candles."""
    rest = await connection.rest()
    if rest.has.get("fetchOHLCV") is not True or "1m" not in (rest.timeframes or {}):
        raise FeedUnavailable(f"{connection.exchange} offers no 1-minute candles: use another exchange")
    spot = (rest.features or {}).get("spot") or {}
    return int((spot.get("fetchOHLCV") or {}).get("limit") or _PAGE)


async def natives(connection: ExchangeConnection) -> dict[Timeframe, Native]:
    """Returns the timeframes of the exchange's candles and how far back they reach.

    Weeks begin on other days at some exchanges and are left out. Raises `FeedUnavailable`.
    """
    limit, rest = await page_size(connection), await connection.rest()
    offered = rest.timeframes or {}
    found = [each for name, each in SHORT.items() if name in offered and each is not Timeframe.W1]
    if connection.exchange not in _NEWEST_ONLY:
        return dict.fromkeys(found, Native(EARLIEST, delay=_DELAY))
    reaches = {each: limit * each.seconds - _MARGIN for each in found}  # one of the candles is still forming
    # The newest candles end at the machine's time, which is later than the clock's with --as-of.
    newest = rest.milliseconds() // 1000
    return {each: Native(max(EARLIEST, newest - reach), reach, _DELAY) for each, reach in reaches.items()}


async def _page(connection: ExchangeConnection, series: Series, at: int, limit: int, now: float) -> Bars:
    symbol, name = series.instrument.symbol, name_of(series.timeframe, SHORT)

    async def request(rest: Any) -> Bars:
        return to_bars(series, await rest.fetch_ohlcv(symbol, name, at * 1000, limit), now)

    return await connection.with_retries(request, symbol)


async def _newest(connection: ExchangeConnection, series: Series, start: int, end: int, now: float) -> Bars:
    """Returns the bars of [start, end) from the newest candles of the exchange, which has no others.

    Raises `FeedUnavailable` if the oldest of them are gone, because the caller would take the missing bars for a time
    without trades.
    """
    symbol, name, limit = series.instrument.symbol, name_of(series.timeframe, SHORT), await page_size(connection)

    async def request(rest: Any) -> Bars:
        rows = await rest.fetch_ohlcv(symbol, name)
        oldest = min((row[0] // 1000 for row in rows), default=start)
        if len(rows) >= limit and oldest > -(-start // series.timeframe.seconds) * series.timeframe.seconds:
            raise FeedUnavailable(f"{connection.exchange} has only its newest {limit} candles, from {iso(oldest)} on")
        return to_bars(series, rows, now).between(start, end)

    return await connection.with_retries(request, symbol)
