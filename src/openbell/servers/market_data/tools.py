"""get_candles, get_current_price and get_volatility."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from openbell.desk.bar_facts import stored_instead
from openbell.market.bars import Bars, closed_at
from openbell.market.clock import iso
from openbell.market.digit_columns import volumes_of
from openbell.market.digits import volume
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
from openbell.market.provenance import BarFacts
from openbell.market.timeframes import name_of, parse_timeframe
from openbell.protocol.call import Call, Result, on_bars
from openbell.protocol.pages import pagination
from openbell.protocol.stated import stated
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
        "items": _candles(bars, facts),
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


async def get_current_price(call: Call, given: PriceInput) -> Result[shapes.Price]:
    """Return the newest close. Raises `StaleData` if it is too old."""
    instrument = parse(given.symbol)
    quote = await call.desk.quotes.quote(instrument)
    facts = await call.desk.facts(quote.bar)
    price: shapes.Price = {
        "price": quote.price,
        "change_1h": quote.change_1h,
        "change_24h": quote.change_24h,
        "change_24h_since": None if quote.day_since is None else iso(quote.day_since),
        "volume_24h": volume(quote.volume_24h),
        "timestamp": iso(quote.end),
        **stated(call, instrument, facts.sources),
    }
    return Result(price, on_bars(instrument, quote.end, facts, quote.note))


async def get_volatility(call: Call, given: VolatilityInput) -> Result[shapes.VolatilityAnswer]:
    """Return the deviation of returns, the average true range and the high-low range over one window."""
    timeframe = parse_timeframe(given.timeframe, shapes.VOLATILITY)
    instrument = parse(given.symbol)
    found = await call.desk.quotes.volatility(instrument, timeframe)
    last = int(found.bars.time[-1])
    facts = await call.desk.facts(found.bars)
    answer: shapes.VolatilityAnswer = {
        "volatility": found.deviation,
        "atr": found.atr,
        "high_low_range": found.reach,
        "window": {
            "timeframe": name_of(timeframe, shapes.VOLATILITY),
            "bars": len(found.bars),
            "start": iso(int(found.bars.time[0])),
            "end": iso(last),
        },
        **stated(call, instrument, facts.sources),
    }
    return Result(answer, on_bars(instrument, closed_at(found.bars), facts))


_ANY = (InvalidSymbol, FeedUnavailable, StoreError, CallTimeout)

TOOLS = (
    Tool(
        name="get_candles",
        description="Closed OHLCV candles of a symbol, oldest first; offset counts from the newest.",
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
        description="The newest price of a symbol, its change in per cent over 1 h and 24 h, and the volume of 24 h.",
        arguments=PriceInput,
        returns=shapes.Price,
        handler=get_current_price,
        toolset="market",
        reads=Reads.BARS,
        cache="cache_price",
        errors=(*_ANY, NoData, StaleData, UnknownSymbol),
    ),
    Tool(
        name="get_volatility",
        description="Standard deviation of log returns, ATR(14) and high-low range over the newest 100 closed bars.",
        arguments=VolatilityInput,
        returns=shapes.VolatilityAnswer,
        handler=get_volatility,
        toolset="market",
        reads=Reads.BARS,
        cache="cache_volatility",
        errors=(*_ANY, InvalidTimeframe, InsufficientData, UnknownSymbol),
    ),
)
