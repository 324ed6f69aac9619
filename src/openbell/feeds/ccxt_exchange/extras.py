"""Fetches extra series (funding, open interest, long/short ratio) of the perpetual swap on a pair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from openbell.feeds.ccxt_exchange.connection import ExchangeConnection
from openbell.market.bars import Values
from openbell.market.errors import NoSuchSeries
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.session_table import Times

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
