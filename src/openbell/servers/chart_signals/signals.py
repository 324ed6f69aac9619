"""get_signals and get_watchlist."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from openbell.market.clock import iso
from openbell.market.digits import volume
from openbell.market.errors import (
    FeedUnavailable,
    InsufficientData,
    InvalidSymbol,
    InvalidTimeframe,
    StoreError,
    UnknownSymbol,
)
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.timeframes import Timeframe, name_of, parse_timeframe
from openbell.protocol.call import Basis, Call, Result, on_bars
from openbell.protocol.stated import stated
from openbell.protocol.tool import Arguments, NoArguments, Reads, Tool
from openbell.servers.chart_signals import shapes
from openbell.signals.crossings import NEEDED, Snapshot

if TYPE_CHECKING:
    from openbell.signals.series import Overview

NOT_READY = f"insufficient bars (need {NEEDED}+)"
SIGNAL_ERRORS = (InsufficientData, InvalidSymbol, UnknownSymbol, InvalidTimeframe, FeedUnavailable, StoreError)
"""The errors of tools that read the signals of a symbol."""


class SignalsInput(Arguments):
    """Input of get_signals."""

    symbol: shapes.Symbol
    timeframe: shapes.TimeframeName


async def get_signals(call: Call, given: SignalsInput) -> Result[shapes.SignalResponse]:
    """Return the indicators and crossings at the newest closed bar."""
    timeframe = parse_timeframe(given.timeframe, shapes.TIMEFRAMES)
    instrument = await call.desk.signals.find(given.symbol)
    reading = await call.desk.signals.read(instrument, timeframe)
    bars = reading.bars
    end = int(bars.time[-1]) + timeframe.seconds if len(bars) else None
    facts = await call.desk.facts(bars)
    basis = on_bars(reading.instrument, end, facts, reading.note)
    if reading.signals is None:
        return Result(_noted({"ready": False, "reason": NOT_READY}, reading.note), basis)
    signals, own = reading.signals, timeframe is Timeframe.M1 or facts.are_native(timeframe)
    shown: shapes.SignalResponse = {
        "ready": True,
        "symbol": instrument.symbol,
        "asset_type": "stock" if instrument.asset_class is AssetClass.STOCK else "crypto",
        "tf": name_of(timeframe, shapes.TIMEFRAMES),
        "snapshot": {**_shape(signals.last, own=own), "prev_snapshot": _shape(signals.previous, own=own)},
        "crossings": signals.crossings.table(),
        "trend_state": signals.trend,
        "risk_anchor": {
            "price": signals.anchor.price,
            "type": signals.anchor.type,
            "distance_pct": signals.anchor.distance_pct,
        },
        **stated(call, instrument, facts.sources),  # type: ignore[typeddict-item]
    }
    return Result(_noted(shown, reading.note), basis)


def _noted(shown: shapes.SignalResponse, note: str | None) -> shapes.SignalResponse:
    return {**shown, "note": note} if note else shown


def _shape(snapshot: Snapshot, *, own: bool) -> shapes.PreviousShape:
    """Returns a snapshot; `own`: its volume is the feed's own, not a sum."""
    return {
        "price": snapshot.price,
        "ema9": snapshot.ema9,
        "ma10": snapshot.ma10,
        "macd": snapshot.macd,
        "signal": snapshot.signal,
        "hist": snapshot.hist,
        "rsi": snapshot.rsi,
        "bb_upper": snapshot.bb_upper,
        "bb_middle": snapshot.bb_middle,
        "bb_lower": snapshot.bb_lower,
        "volume": snapshot.volume if own else volume(snapshot.volume),
        "vwap": snapshot.vwap,
        "time": iso(snapshot.time),
    }


async def get_watchlist(call: Call, _given: NoArguments) -> Result[shapes.WatchlistResponse]:
    """Return price, RSI and active crossings of every watched symbol; null and [] while a symbol is not ready."""
    instruments = call.desk.watchlist.read().instruments
    found = await call.desk.signals.overviews(instruments)
    ready = {each: overview for each, overview in found.items() if isfinite(overview.rsi)}
    by_class: dict[AssetClass, list[shapes.WatchedShape]] = {each: [] for each in AssetClass}
    for instrument in instruments:
        by_class[instrument.asset_class].append(_watched(instrument, ready.get(instrument)))
    shown: shapes.WatchlistResponse = {
        "watchlist": {"stocks": by_class[AssetClass.STOCK], "crypto": by_class[AssetClass.CRYPTO]},
        "timestamp": iso(int(call.desk.clock.epoch())),
        "market_hours": shapes.MARKET_HOURS,
        **stated(call),
    }
    # The age of the list is that of its oldest row.
    oldest = min((overview.time + Timeframe.M1.seconds for overview in ready.values()), default=None)
    return Result(shown, Basis(newest=oldest))


def _watched(instrument: Instrument, overview: Overview | None) -> shapes.WatchedShape:
    if overview is None:
        return {"symbol": instrument.symbol, "price": None, "rsi": None, "signals": []}
    return {
        "symbol": instrument.symbol,
        "price": overview.price,
        "rsi": overview.rsi,
        "signals": overview.crossings.true(),
        "price_time": iso(overview.time + Timeframe.M1.seconds),
    }


TOOLS = (
    Tool(
        "get_signals",
        "EMA9, SMA10, MACD, RSI14, Bollinger and their crossings at the newest closed bar of a symbol.",
        SignalsInput,
        shapes.SignalResponse,
        get_signals,
        toolset="signals",
        reads=Reads.BARS,
        errors=SIGNAL_ERRORS,
    ),
    Tool(
        "get_watchlist",
        "Price, RSI and active crossings of every watched symbol at 1min; null while a symbol is not ready.",
        NoArguments,
        shapes.WatchlistResponse,
        get_watchlist,
        toolset="signals",
        reads=Reads.BARS,
        errors=(StoreError,),
    ),
)
