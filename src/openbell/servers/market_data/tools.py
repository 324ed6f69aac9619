"""get_candles, get_current_price and get_volatility."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from openbell.desk.bars.facts import stored_instead
from openbell.desk.quotes.service import Quote
from openbell.market.bars import Bars, closed_at
from openbell.market.clock import iso
from openbell.market.digit_columns import volumes_of
from openbell.market.digits import difference, volume
from openbell.market.errors import (
    CallTimeout,
    FeedUnavailable,
    InsufficientData,
    InvalidSymbol,
    InvalidTimeframe,
    NoData,
    StaleData,
    StoreError,
    UnknownSymbol,
)
from openbell.market.instruments import parse
from openbell.market.price_history import PERIODS, RegularClose, percent_change
from openbell.market.provenance import BarFacts
from openbell.market.timeframes import name_of, parse_timeframe
from openbell.protocol.call import Call, Result, on_bars
from openbell.protocol.pages import pagination
from openbell.protocol.source_fields import stated
from openbell.protocol.tool import Arguments, Reads, Tool
from openbell.servers.market_data import shapes

Symbol = Annotated[str, Field(description="BTC/USD, AAPL")]
Refresh = Annotated[bool, Field(description="bypass the cache")]


class CandlesInput(Arguments):
    """Input of get_candles."""

    symbol: Symbol
    timeframe: shapes.CandleTimeframe = "1h"
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    offset: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    force_refresh: Refresh = False


class PriceInput(Arguments):
    """Input of get_current_price."""

    symbol: Symbol
    force_refresh: Refresh = False


class VolatilityInput(Arguments):
    """Input of get_volatility."""

    symbol: Symbol
    timeframe: shapes.VolatilityTimeframe = "1h"
    force_refresh: Refresh = False


async def get_candles(call: Call, given: CandlesInput) -> Result[shapes.CandlePage]:
    """Return a page of closed bars; bars missing from the store are fetched from the feed."""
    timeframe = parse_timeframe(given.timeframe, shapes.CANDLES)
    instrument = parse(given.symbol)
    bars, total = await call.desk.bars.page(instrument, timeframe, given.limit, given.offset)
    if not total:
        hint = await stored_instead(call.desk.bars, instrument)
        raise NoData(
            f"No closed {name_of(timeframe, shapes.CANDLES)} candles of {instrument}{hint}", symbol=instrument.symbol
        )
    facts = await call.desk.facts(bars)
    page: shapes.CandlePage = {
        "items": await call.desk.threads.run(_candles, bars, facts),
        "pagination": pagination(given.offset, given.limit, total),
        **stated(call, instrument, facts.sources),
    }
    if not len(bars):
        return Result(page)
    return Result(page, on_bars(instrument, closed_at(bars), facts))


def _candles(bars: Bars, facts: BarFacts) -> list[shapes.Candle]:
    times = np.datetime_as_string(bars.time.astype("datetime64[s]")).tolist()
    prices = (column.tolist() for column in (bars.open, bars.high, bars.low, bars.close))
    volumes = volumes_of(bars, native=facts.are_native(bars.timeframe)).tolist()
    return [
        {"timestamp": f"{time}+00:00", "open": o, "high": h, "low": low, "close": c, "volume": v}
        for time, o, h, low, c, v in zip(times, *prices, volumes, strict=True)
    ]


async def get_current_price(call: Call, given: PriceInput) -> Result[shapes.PriceShape]:
    """Return the newest close. Raises `StaleData` if it is too old."""
    instrument = parse(given.symbol)
    quote = await call.desk.quotes.quote(instrument)
    facts, before = await call.desk.facts(quote.bar), quote.previous
    price: shapes.PriceShape = {
        "price": quote.price,
        "change_1h": quote.change_1h,
        "change_24h": quote.change_24h,
        "change_24h_since": None if quote.day_since is None else iso(quote.day_since),
        "volume_24h": volume(quote.volume_24h),
        "previous_close": before.price if before else None,
        "previous_close_time": iso(before.at) if before else None,
        "change_day": difference(quote.price, before.price) if before else None,
        "change_day_pct": quote.change_day,
        "day": {"open": quote.day.open, "high": quote.day.high, "low": quote.day.low},
        "range_52w": _year(quote),
        "regular_close": _regular(quote.regular),
        "extended_hours": _extended(quote),
        "changes": _changes(quote),
        "timestamp": iso(quote.end),
        **stated(call, instrument, facts.sources),
    }
    return Result(price, on_bars(instrument, quote.end, facts, quote.note))


def _regular(close: RegularClose | None) -> shapes.RegularCloseShape | None:
    if close is None:
        return None
    before = close.before.price if close.before else None
    return {
        "price": close.price,
        "time": iso(close.at),
        "change": None if before is None else difference(close.price, before),
        "change_pct": None if before is None else percent_change(before, close.price),
    }


def _extended(quote: Quote) -> shapes.ExtendedShape | None:
    if quote.newest is None or quote.regular is None:
        return None
    return {
        "price": quote.newest.price,
        "time": iso(quote.newest.at),
        "change": difference(quote.newest.price, quote.regular.price),
        "change_pct": percent_change(quote.regular.price, quote.newest.price),
    }


def _year(quote: Quote) -> shapes.YearRangeShape | None:
    year = quote.past.year if quote.past else None
    if year is None:
        return None
    return {
        "high": year.high,
        "high_date": f"{year.high_date}",
        "low": year.low,
        "low_date": f"{year.low_date}",
        "from_high_pct": percent_change(year.high, quote.price),
        "from_low_pct": percent_change(year.low, quote.price),
        "since": f"{year.since}",
    }


def _changes(quote: Quote) -> dict[str, shapes.PeriodChangeShape | None]:
    found = quote.past.changes if quote.past else dict.fromkeys(PERIODS)
    return {
        name: {"pct": change.pct, "close": change.close, "date": f"{change.date}"} if change else None
        for name, change in found.items()
    }


async def get_volatility(call: Call, given: VolatilityInput) -> Result[shapes.VolatilityAnswer]:
    """Return the deviation of returns, the average true range and the high-low range over one window."""
    timeframe = parse_timeframe(given.timeframe, shapes.VOLATILITY)
    instrument = parse(given.symbol)
    found = await call.desk.quotes.volatility(instrument, timeframe)
    bars = found.bars
    last, last_close = int(bars.time[-1]), float(bars.close[-1])
    # The newest of equal extremes, as in other results.
    highest, lowest = (len(bars) - 1 - int(each[::-1].argmax()) for each in (bars.high, -bars.low))
    facts = await call.desk.facts(bars)
    answer: shapes.VolatilityAnswer = {
        "volatility": found.deviation,
        "annualized_pct": found.annualized,
        "atr": found.atr,
        "atr_pct": found.atr / last_close * 100,
        "high_low_range": found.reach,
        "high": float(bars.high[highest]),
        "high_time": iso(int(bars.time[highest])),
        "low": float(bars.low[lowest]),
        "low_time": iso(int(bars.time[lowest])),
        "last_close": last_close,
        "window": {
            "timeframe": name_of(timeframe, shapes.VOLATILITY),
            "bars": len(bars),
            "start": iso(int(bars.time[0])),
            "end": iso(last),
        },
        **stated(call, instrument, facts.sources),
    }
    return Result(answer, on_bars(instrument, closed_at(bars), facts))


_ANY = (InvalidSymbol, FeedUnavailable, StoreError, CallTimeout)

TOOLS = (
    Tool(
        name="get_candles",
        description="Fetch OHLCV candle data for a symbol: closed bars, oldest first; offset counts from the newest.",
        arguments=CandlesInput,
        returns=shapes.CandlePage,
        handler=get_candles,
        toolset="market",
        reads=Reads.BARS,
        cache="cache_candles",
        errors=(*_ANY, InvalidTimeframe, NoData, UnknownSymbol),
    ),
    Tool(
        name="get_current_price",
        description=(
            "Get the current price and recent change for a symbol, in per cent over 1 h, 24 h, since the previous close, "
            "over a week to a year; the day's range, the 52-week range, the volume of 24 h. Of a closed stock market: the "
            "regular close, and extended_hours apart."
        ),
        arguments=PriceInput,
        returns=shapes.PriceShape,
        handler=get_current_price,
        toolset="market",
        reads=Reads.BARS,
        cache="cache_price",
        errors=(*_ANY, NoData, StaleData, UnknownSymbol),
    ),
    Tool(
        name="get_volatility",
        description=(
            "Calculate volatility metrics for a symbol: standard deviation of log returns (per bar, and in per cent a "
            "year), ATR(14) and high-low range of the newest 100 closed bars."
        ),
        arguments=VolatilityInput,
        returns=shapes.VolatilityAnswer,
        handler=get_volatility,
        toolset="market",
        reads=Reads.BARS,
        cache="cache_volatility",
        errors=(*_ANY, InvalidTimeframe, InsufficientData, UnknownSymbol),
    ),
)
