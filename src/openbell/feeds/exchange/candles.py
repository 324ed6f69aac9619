"""Fetches ccxt's candles (milliseconds, open, high, low, close, volume) and converts them to bars."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from openbell.feeds.exchange.connection import Connection
from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import FeedUnavailable
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe

log = logging.getLogger(__name__)

_PAGE = 100
"""The number of candles per request if ccxt does not have the exchange's limit."""


def to_bars(instrument: Instrument, rows: Sequence[Sequence[Any]], now: float) -> Bars:
    """Returns the closed candles as bars, sorted, without duplicates. Impossible candles are dropped and logged."""
    if not rows:
        return barlib.empty(instrument)
    table = np.array([list(row)[:6] for row in rows], dtype=np.float64)
    table = table[(table[:, 0] > 0) & (table[:, 0] <= (now - MINUTE) * 1000)]
    found = barlib.sort(barlib.make(instrument, Timeframe.M1, table[:, 0] // 1000, *table.T[1:]))
    bad = np.zeros(len(found), dtype=bool)
    for reason, mask in barlib.faults(found, now):
        log.warning("%s: dropped %d candles: %s", instrument, mask.sum(), reason)
        bad |= mask
    return found.take(~bad) if bad.any() else found


async def fetch(connection: Connection, instrument: Instrument, start: int, end: int, now: float) -> Bars:
    """Returns the minute bars that opened in [start, end) and are closed at `now`, fetched page by page.

    Raises `FeedUnavailable` and `UnknownSymbol`.
    """
    limit = await page_size(connection)
    parts = [barlib.empty(instrument)]
    at = start
    while at < end:
        page = await _page(connection, instrument, at, min(limit, (end - at) // MINUTE), now)
        inside = page.between(at, end)
        parts.append(inside)
        if len(inside):
            at = int(inside.time[-1]) + MINUTE
        elif len(page) and page.time[-1] >= end:
            break  # the exchange's next candle is after `end`
        else:
            at += limit * MINUTE  # no trades in this page; some exchanges do not search beyond one page
    return barlib.merge(*parts)


async def page_size(connection: Connection) -> int:
    """Returns the maximum number of candles per request. Raises `FeedUnavailable` if there are no minute candles."""
    rest = await connection.rest()
    if rest.has.get("fetchOHLCV") is not True or "1m" not in (rest.timeframes or {}):
        raise FeedUnavailable(f"{connection.exchange} offers no 1-minute candles: use another exchange")
    spot = (rest.features or {}).get("spot") or {}
    return int((spot.get("fetchOHLCV") or {}).get("limit") or _PAGE)


async def _page(connection: Connection, instrument: Instrument, at: int, limit: int, now: float) -> Bars:
    async def request(rest: Any) -> Bars:
        return to_bars(instrument, await rest.fetch_ohlcv(instrument.symbol, "1m", at * 1000, limit), now)

    return await connection.with_retries(request, instrument.symbol)
