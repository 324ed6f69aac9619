"""Fetches Yahoo's charts and converts them to bars: their symbols, their timeframes, and when their bars are final.

Only timeframes whose buckets are ours are declared. Left out are 30m, for which Yahoo returns bars of an hour; hours of
stocks, which begin at 9:30 New York; days of forex, which begin at midnight in London; and weeks. Bars of those are made of
the declared ones.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.feeds.yahoo.connection import Chart, YahooConnection, YahooRefusal, shortest
from openbell.market import bars as barlib
from openbell.market.bars import Bars, bucket_bounds
from openbell.market.clock import iso
from openbell.market.errors import FeedUnavailable, UnknownSymbol
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.session_table import Times
from openbell.market.sessions import eastern, session_on
from openbell.market.timeframes import Timeframe

log = logging.getLogger(__name__)

_DAY = 86400
_UNLISTED = "No data found"
_NO_BARS = "Data doesn't exist for startDate"
"""The beginnings of Yahoo's errors for a symbol that it does not list, and for a time without bars."""
_RECENT = 5 * _DAY
"""Seconds. A daily row without prices that is older counts as a day without trades, otherwise as not published yet."""
_NUMBERED = {"UNI": "UNI7083", "APT": "APT21794", "SUI": "SUI20947", "PEPE": "PEPE24478", "ARB": "ARB11841"}
"""Coins whose plain name is another coin at Yahoo."""
_KINDS = {
    AssetClass.STOCK: {"EQUITY", "ETF", "MUTUALFUND"},
    AssetClass.CRYPTO: {"CRYPTOCURRENCY"},
    AssetClass.FOREX: {"CURRENCY"},
}
"""Yahoo's kinds of instruments by asset class."""
DELAY = 1200.0
"""Seconds after its end at which an intraday bar is final: 15 minutes, the delay of many exchanges, and some more."""
_MARGIN = 600
"""Seconds. Bars that leave the reach within this time are not offered: a request may have to wait so long."""

INTERVALS = {
    Timeframe.M1: "1m",
    Timeframe.M5: "5m",
    Timeframe.M15: "15m",
    Timeframe.H1: "1h",
    Timeframe.D1: "1d",
}
"""Yahoo's names of the timeframes."""
_REACH = {
    Timeframe.M1: 30 * _DAY,
    Timeframe.M5: 60 * _DAY,
    Timeframe.M15: 60 * _DAY,
    Timeframe.H1: 730 * _DAY,
}
"""Seconds before the present for which Yahoo has bars; without a limit for days."""
PAGE = {Timeframe.M1: 7 * _DAY}
"""Seconds that one request may span, if that is less than the reach."""
_SHORT = (Timeframe.M1, Timeframe.M5, Timeframe.M15)
_DAYS = {
    # The calendar of sessions begins in 1971. A daily bar may still change half an hour after extended hours.
    AssetClass.STOCK: Native(31_536_000, delay=16_200.0),
    # From 2014-09-17 on. Yahoo often has no values of the last day for hours.
    AssetClass.CRYPTO: Native(1_410_912_000, delay=float(_DAY)),
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """Closed bars of a chart."""

    bars: Bars
    reached: int
    """The time of the newest row, which may still be forming: Yahoo has all earlier bars. 0 if there is no row."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The times that decide which bars are closed."""

    now: float
    """The clock's time."""
    final: float
    """The time before which Yahoo's bars are final, by the machine's clock."""


async def fetch(connection: YahooConnection, series: Series, start: int, end: int, moment: Moment) -> Fetched:
    """Returns the closed bars that opened in [start, end), fetched page by page.

    Raises `FeedUnavailable` and `UnknownSymbol`.
    """
    parts = []
    at, longest = start, PAGE.get(series.timeframe, end - start)
    while at < end:
        until = min(end, at + longest)
        parts.append(await _page(connection, series, at, until, moment))
        at = until
    bars = barlib.merge(barlib.empty_of(series), *(part.bars for part in parts))
    return Fetched(bars, max((part.reached for part in parts), default=0))


async def _page(connection: YahooConnection, series: Series, start: int, end: int, moment: Moment) -> Fetched:
    instrument = series.instrument
    # A daily row is found by its date, whatever time of that day it has. A row after `end` shows that the last bar has
    # closed.
    params = {
        "period1": str(start if series.timeframe.intraday else start - _DAY),
        "period2": str(end + 2 * series.timeframe.seconds),
        "interval": INTERVALS[series.timeframe],
        "includePrePost": "true",
    }
    try:
        chart = await connection.chart(yahoo_symbol(instrument), params)
    except YahooRefusal as why:
        if str(why).startswith(_NO_BARS):
            return Fetched(barlib.empty_of(series), 0)
        if str(why).startswith(_UNLISTED):
            raise UnknownSymbol(instrument.symbol, "Yahoo does not list it") from None
        raise FeedUnavailable(f"Yahoo refuses the request for {series}: {why}") from None
    if reason := mismatch(instrument, chart.meta):
        raise UnknownSymbol(instrument.symbol, reason)
    return await connection.in_thread(read_bars, series, chart, start, end, moment)


def read_bars(series: Series, chart: Chart, start: int, end: int, moment: Moment) -> Fetched:
    """Returns the closed bars of a chart that opened in [start, end), sorted, without duplicates.

    A bar is closed if it ended by the clock's time and Yahoo has a later row. The clock alone does not decide, because
    Yahoo's bars of a delayed exchange are still forming when they have ended.

    Rows without prices are times without trades. Rows that begin at other times than our buckets are kept, except for the
    last one, so that the desk can refuse the timeframe. Raises `FeedUnavailable` if the newest day has no prices yet.
    """
    seen = chart.time[np.isfinite(chart.prices).all(axis=1)]
    reached = int(seen[-1]) if len(seen) else 0
    times, rows = _bar_times(series, chart.time)
    prices, volume = shortest(chart.prices[rows]), chart.volume[rows]
    priced = np.isfinite(prices).all(axis=1)
    found = barlib.make(series.instrument, series.timeframe, times, *prices.T, volume)
    _, ends = bucket_bounds(series.instrument, series.timeframe, found.time)
    closed = (ends <= min(moment.now, max(reached, moment.final))) & (found.time >= start) & (found.time < end)
    bars = barlib.sort(found.take(priced & closed))
    if series.timeframe is Timeframe.D1:
        _require_newest(bars, found.time[closed], moment.now)
    return Fetched(bars, reached)


def _bar_times(series: Series, times: Times) -> tuple[Times, npt.NDArray[np.int64]]:
    """Returns the times at which bars begin, and the index of each bar's row.

    The last row may be the latest trade, with the time of that trade. Of a daily chart it is the newest version of its day.
    In an intraday chart it belongs to a bar that is still forming.
    """
    rows = np.arange(len(times))
    if series.timeframe.intraday:
        forming = len(times) > 0 and times[-1] % series.timeframe.seconds != 0
        return (times[:-1], rows[:-1]) if forming else (times, rows)
    if series.instrument.asset_class is AssetClass.STOCK:
        return _session_opens(series.instrument, times)
    starts = times.copy()
    starts[-1:] -= starts[-1:] % _DAY
    return starts, rows


def _session_opens(instrument: Instrument, times: Times) -> tuple[Times, npt.NDArray[np.int64]]:
    """Returns the opens of the sessions on the dates of daily rows; rows of other dates are dropped and logged."""
    sessions = [session_on(eastern(at).date()) for at in times.tolist()]
    rows = np.array([row for row, session in enumerate(sessions) if session], dtype=np.int64)
    if dropped := len(times) - len(rows):
        log.warning("dropped %d bars of Yahoo's history (%s): no session on that day", dropped, instrument)
    return np.array([session.open for session in sessions if session], dtype=np.int64), rows


def _require_newest(bars: Bars, due: Times, now: float) -> None:
    """Raises `FeedUnavailable` if the newest of the daily rows that are due has no prices.

    Otherwise the day would be stored as a day without trades, and never be fetched again.
    """
    newest = int(due.max(initial=0))
    if newest > now - _RECENT and newest not in bars.time[-1:]:
        raise FeedUnavailable(
            f"Yahoo has not published the day {iso(newest)[:10]} of {bars.instrument} yet: try again in an hour"
        )


def yahoo_symbol(instrument: Instrument) -> str:
    """Returns Yahoo's symbol of an instrument."""
    if instrument.asset_class is AssetClass.STOCK:
        return instrument.symbol.replace(".", "-")
    base, _, quote = instrument.symbol.partition("/")
    if instrument.asset_class is AssetClass.FOREX:
        return f"{base}{quote}=X"
    return f"{_NUMBERED.get(base, base)}-{quote}"


def mismatch(instrument: Instrument, meta: Mapping[str, Any]) -> str | None:
    """Returns why Yahoo's symbol is not this instrument; None if it is.

    `meta` describes Yahoo's instrument. Yahoo also describes names that it does not list, without a currency.
    """
    if not meta.get("currency"):
        return "Yahoo does not list it"
    kind = meta.get("instrumentType")
    if kind not in _KINDS[instrument.asset_class]:
        return f"at Yahoo this symbol is of the kind {str(kind)[:40]}"
    zone = meta.get("exchangeTimezoneName")
    if instrument.asset_class is AssetClass.STOCK and zone != "America/New_York":
        return f"Yahoo lists it on an exchange in {str(zone)[:40]}, not in the US"
    return None


def natives_of(asset_class: AssetClass, present: float) -> Mapping[Timeframe, Native]:
    """Returns the timeframes of an asset class. `present` is the machine's time, from which Yahoo counts its reach."""
    intraday = _SHORT if asset_class is AssetClass.STOCK else (*_SHORT, Timeframe.H1)
    found = {}
    for timeframe in intraday:
        reach = _REACH[timeframe] - _MARGIN
        found[timeframe] = Native(int(present) - reach, reach, DELAY)
    return {**found, Timeframe.D1: _DAYS[asset_class]} if asset_class in _DAYS else found
