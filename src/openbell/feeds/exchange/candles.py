"""Candles as ccxt gives them (milliseconds, open, high, low, close, volume), and the bars that they become."""

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
"""Candles that are asked for at once where ccxt does not know the exchange's own limit."""


def to_bars(instrument: Instrument, rows: Sequence[Sequence[Any]], now: float) -> Bars:
    """The candles that have closed by `now` and can be true, sorted, none double; the rest is dropped."""
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
    """Minute bars that opened in [start, end) and have closed by `now`, page by page.

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
            break  # the first candle that there is comes later
        else:
            at += limit * MINUTE  # nothing was traded there; some exchanges look no further than one page
    return barlib.merge(*parts)


async def page_size(connection: Connection) -> int:
    """The most candles that the exchange gives at once. Raises `FeedUnavailable` if it has no minute candles."""
    rest = await connection.rest()
    if rest.has.get("fetchOHLCV") is not True or "1m" not in (rest.timeframes or {}):
        raise FeedUnavailable(f"{connection.exchange} offers no 1-minute candles: use another exchange")
    spot = (rest.features or {}).get("spot") or {}
    return int((spot.get("fetchOHLCV") or {}).get("limit") or _PAGE)


async def _page(connection: Connection, instrument: Instrument, at: int, limit: int, now: float) -> Bars:
    async def call(rest: Any) -> Bars:
        return to_bars(instrument, await rest.fetch_ohlcv(instrument.symbol, "1m", at * 1000, limit), now)

    return await connection.ask(call, instrument.symbol)
