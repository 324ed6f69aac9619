"""market-data: candles, the current price, volatility (TradeStream's market-data-mcp)."""

from __future__ import annotations

from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from openbell.desk.bars.facts import stored_instead
from openbell.market.bars import Bars, closed_at
from openbell.market.clock import iso
from openbell.market.digit_columns import volumes_of
from openbell.market.digits import difference, volume
from openbell.market.errors import (
    CallTimeout,
    FeedUnavailable,
    InputError,
    InsufficientData,
    InvalidSymbol,
    InvalidTimeframe,
    NoData,
    NotFinite,
    Refused,
    StaleData,
    StoreError,
    StoreTimeout,
    UnknownSymbol,
)
from openbell.market.instruments import parse
from openbell.market.price_history import PERIODS, PreviousClose, RegularClose, YearRange, percent_change
from openbell.market.provenance import BarFacts
from openbell.market.timeframes import Timeframe, name_of, parse_timeframe
from openbell.protocol.call import Call, Result, on_bars
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.numbers import Computed, Exact
from openbell.protocol.result_fields import From, Pagination, Stated, pagination, shaped, stated
from openbell.protocol.service import Service
from openbell.protocol.tool import Arguments, Reads, Tool

T = TypeVar("T")
Close = PreviousClose | RegularClose

CANDLES = {
    "1m": Timeframe.M1,
    "5m": Timeframe.M5,
    "15m": Timeframe.M15,
    "1h": Timeframe.H1,
    "4h": Timeframe.H4,
    "1d": Timeframe.D1,
}
VOLATILITY = {name: CANDLES[name] for name in ("1h", "4h", "1d")}

CandleTimeframe = Annotated[str, Field(json_schema_extra={"enum": list(CANDLES)})]
VolatilityTimeframe = Annotated[str, Field(json_schema_extra={"enum": list(VOLATILITY)})]
"""Strings, not enums: for a name outside the list, the handler raises the contract's own error."""
Symbol = Annotated[str, Field(description="BTC/USD, AAPL")]
Refresh = Annotated[bool, Field(description="bypass the cache")]
_ANY = (InvalidSymbol, FeedUnavailable, StoreError, CallTimeout)


class Candle(TypedDict):
    """One closed bar; the timestamp is its open time."""

    timestamp: str
    open: Exact
    high: Exact
    low: Exact
    close: Exact
    volume: Exact


class CandlePage(Stated):
    """Candles from oldest to newest, and the position of the page."""

    items: list[Candle]
    pagination: Pagination


class DayShape(TypedDict):
    """The trading day of the price so far; null before its first trade."""

    open: Exact | None
    high: Exact | None
    low: Exact | None


class YearRangeShape(TypedDict):
    """The range of the last year, today included; of stocks in regular hours."""

    high: Exact
    high_date: str
    low: Exact
    low_date: str
    from_high_pct: Annotated[
        Computed | None, Field(description="of the price; above 0 if a price of extended hours is above the high")
    ]
    from_low_pct: Computed | None
    since: Annotated[str, Field(description="the first day of it; less than a year ago if there are no older bars")]


class PeriodChangeShape(TypedDict):
    """The change of the price since a daily close."""

    pct: Computed
    close: Exact
    date: Annotated[str, Field(description="of that close")]


class RegularCloseShape(TypedDict):
    """The last close of regular hours."""

    price: Exact
    time: Annotated[str, From("at")]
    change: Annotated[Exact | None, Field(description="since the close of the session before")]
    change_pct: Computed | None


class ExtendedShape(TypedDict):
    """A price outside of regular hours."""

    price: Exact
    time: Annotated[str, From("at")]
    change: Annotated[Exact, Field(description="since regular_close")]
    change_pct: Computed | None


class PriceShape(Stated):
    """The current price and its changes in per cent; null if there was no price at the earlier time."""

    price: Exact
    change_1h: Annotated[Computed | None, Field(description="per cent; null if no bar is old enough")]
    change_24h: Annotated[
        Computed | None, Field(description="of a stock whose market is closed: since previous_close; null as change_1h")
    ]
    change_24h_since: Annotated[
        str | None, From("day_since"), Field(description="the time of the price that it is compared with")
    ]
    volume_24h: Exact
    previous_close: Annotated[
        Exact | None,
        From("previous.price"),
        Field(description="of the trading day before: regular hours of stocks, the UTC day of crypto"),
    ]
    previous_close_time: Annotated[str | None, From("previous.at")]
    change_day: Annotated[Exact | None, Field(description="price less previous_close")]
    change_day_pct: Annotated[Computed | None, From("change_day")]
    day: Annotated[DayShape, Field(description="regular hours of stocks, the UTC day of crypto")]
    range_52w: YearRangeShape | None
    regular_close: Annotated[
        RegularCloseShape | None, Field(description="of a stock outside of regular hours; price while it is closed")
    ]
    extended_hours: Annotated[
        ExtendedShape | None, Field(description="the newest price before or after regular hours; null if there is none")
    ]
    changes: Annotated[
        dict[str, PeriodChangeShape | None], Field(description="1w, 1m, 3m, 6m, ytd, 1y; null without a close that old")
    ]
    timestamp: Annotated[str, From("end"), Field(description="of the price; as_of is the time of the answer")]


class WindowShape(TypedDict):
    """The closed bars that were measured."""

    timeframe: str
    bars: int
    start: str
    end: str


class VolatilityAnswer(Stated):
    """How much a symbol moves."""

    volatility: Annotated[
        Computed,
        From("deviation"),
        Field(description="Standard deviation of returns: of log returns per bar, 0.01 is 1 %"),
    ]
    annualized_pct: Annotated[
        Computed | None,
        From("annualized"),
        Field(description="the same in per cent a year, to compare symbols and timeframes"),
    ]
    atr: Annotated[Computed, Field(description="Average True Range: Wilder's, 14 bars, in the price's money")]
    atr_pct: Annotated[Computed, Field(description="of the last close")]
    high_low_range: Annotated[Computed, From("reach"), Field(description="high less low of the window")]
    high: Exact
    high_time: str
    low: Exact
    low_time: str
    last_close: Exact
    window: WindowShape


class CandlesInput(Arguments):
    """Input of get_candles."""

    symbol: Symbol
    timeframe: CandleTimeframe = "1h"
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
    timeframe: VolatilityTimeframe = "1h"
    force_refresh: Refresh = False


async def get_candles(call: Call, given: CandlesInput) -> Result[CandlePage]:
    """Return a page of closed bars; bars missing from the store are fetched from the feed."""
    timeframe = parse_timeframe(given.timeframe, CANDLES)
    instrument = parse(given.symbol)
    bars, total = await call.desk.bars.page(instrument, timeframe, given.limit, given.offset)
    if not total:
        hint = await stored_instead(call.desk.bars, instrument)
        raise NoData(f"No closed {name_of(timeframe, CANDLES)} candles of {instrument}{hint}", symbol=instrument.symbol)
    facts = await call.desk.facts(bars)
    page: CandlePage = {
        "items": await call.desk.threads.run(_candles, bars, facts),
        "pagination": pagination(given.offset, given.limit, total),
        **stated(call, instrument, facts.sources),
    }
    if not len(bars):
        return Result(page)
    return Result(page, on_bars(instrument, closed_at(bars), facts))


def _candles(bars: Bars, facts: BarFacts) -> list[Candle]:
    times = np.datetime_as_string(bars.time.astype("datetime64[s]")).tolist()
    prices = (column.tolist() for column in (bars.open, bars.high, bars.low, bars.close))
    volumes = volumes_of(bars, native=facts.are_native(bars.timeframe)).tolist()
    return [
        {"timestamp": f"{time}+00:00", "open": o, "high": h, "low": low, "close": c, "volume": v}
        for time, o, h, low, c, v in zip(times, *prices, volumes, strict=True)
    ]


async def get_current_price(call: Call, given: PriceInput) -> Result[PriceShape]:
    """Return the newest close. Raises `StaleData` if it is too old."""
    instrument = parse(given.symbol)
    quote = await call.desk.quotes.quote(instrument)
    facts, before = await call.desk.facts(quote.bar), quote.previous
    year = quote.past.year if quote.past else None
    price = shaped(
        PriceShape,
        quote,
        volume_24h=volume(quote.volume_24h),
        change_day=before and difference(quote.price, before.price),
        range_52w=year and _year(year, quote.price),
        regular_close=quote.regular and _change(RegularCloseShape, quote.regular, quote.regular.before),
        extended_hours=quote.newest and quote.regular and _change(ExtendedShape, quote.newest, quote.regular),
        changes=quote.past.changes if quote.past else dict.fromkeys(PERIODS),
        **stated(call, instrument, facts.sources),
    )
    return Result(price, on_bars(instrument, quote.end, facts, quote.note))


def _year(year: YearRange, price: float) -> YearRangeShape:
    low, high = percent_change(year.low, price), percent_change(year.high, price)
    return shaped(YearRangeShape, year, from_high_pct=high, from_low_pct=low)


def _change(shape: type[T], close: Close, before: Close | None) -> T:
    """Returns a price with its change since an earlier one; the change is null if there is none."""
    change = before and difference(close.price, before.price)
    return shaped(shape, close, change=change, change_pct=before and percent_change(before.price, close.price))


async def get_volatility(call: Call, given: VolatilityInput) -> Result[VolatilityAnswer]:
    """Return the deviation of returns, the average true range and the high-low range over one window."""
    timeframe = parse_timeframe(given.timeframe, VOLATILITY)
    instrument = parse(given.symbol)
    found = await call.desk.quotes.volatility(instrument, timeframe)
    bars = found.bars
    last_close = float(bars.close[-1])
    # The newest of equal extremes, as in other results.
    highest, lowest = (len(bars) - 1 - int(each[::-1].argmax()) for each in (bars.high, -bars.low))
    facts = await call.desk.facts(bars)
    window: WindowShape = {
        "timeframe": name_of(timeframe, VOLATILITY),
        "bars": len(bars),
        "start": iso(int(bars.time[0])),
        "end": iso(int(bars.time[-1])),
    }
    answer = shaped(
        VolatilityAnswer,
        found,
        atr_pct=found.atr / last_close * 100,
        high=float(bars.high[highest]),
        high_time=int(bars.time[highest]),
        low=float(bars.low[lowest]),
        low_time=int(bars.time[lowest]),
        last_close=last_close,
        window=window,
        **stated(call, instrument, facts.sources),
    )
    return Result(answer, on_bars(instrument, closed_at(bars), facts))


TOOLS = (
    Tool(
        name="get_candles",
        description="Fetch OHLCV candle data for a symbol: closed bars, oldest first; offset counts from the newest.",
        arguments=CandlesInput,
        returns=CandlePage,
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
        returns=PriceShape,
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
        returns=VolatilityAnswer,
        handler=get_volatility,
        toolset="market",
        reads=Reads.BARS,
        cache="cache_volatility",
        errors=(*_ANY, InvalidTimeframe, InsufficientData, UnknownSymbol),
    ),
)


SERVICE = Service(
    name="market-data-mcp",
    command="market-data",
    title="Openbell market data",
    instructions=(
        "Candles are closed bars, oldest first; offset counts from the newest. Times are UTC and name the bar's open."
    ),
    tools=TOOLS,
    dialect=EnvelopeDialect(
        {
            InvalidSymbol: "INVALID_SYMBOL",
            InvalidTimeframe: "INVALID_TIMEFRAME",
            InputError: "INVALID_PARAMETER",
            UnknownSymbol: "NOT_FOUND",
            InsufficientData: "INSUFFICIENT_DATA",
            NotFinite: "INSUFFICIENT_DATA",
            StaleData: "STALE_DATA",
            NoData: "NO_DATA",
            FeedUnavailable: "NO_DATA",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
        },
        by_tool={
            "get_candles": {UnknownSymbol: "NO_DATA"},
            "get_current_price": dict.fromkeys((UnknownSymbol, NoData, FeedUnavailable), "SYMBOL_NOT_FOUND"),
            "get_volatility": dict.fromkeys((NoData, FeedUnavailable), "INSUFFICIENT_DATA"),
        },
    ),
)
