"""get_signals and get_watchlist."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

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
from openbell.protocol.result_fields import shaped, stated
from openbell.protocol.tool import Arguments, Reads, Tool
from openbell.servers.chart_signals import shapes
from openbell.signals.crossings import NEEDED, SignalSnapshot

if TYPE_CHECKING:
    from openbell.desk.quotes.signals import WatchedRow
    from openbell.signals.series import SignalSeries

NOT_READY = f"insufficient bars (need {NEEDED}+)"
_SHOWN = 3
"""Gains and losses that the summary of a watchlist names."""
SIGNAL_ERRORS = (InsufficientData, InvalidSymbol, UnknownSymbol, InvalidTimeframe, FeedUnavailable, StoreError)
"""The errors of tools that read the signals of a symbol."""


class SignalsInput(Arguments):
    """Input of get_signals."""

    symbol: shapes.Symbol
    timeframe: shapes.TimeframeName


class WatchlistInput(Arguments):
    """Input of get_watchlist."""

    timeframe: Annotated[
        str, Field(description="of rsi and signals", json_schema_extra={"enum": list(shapes.TIMEFRAMES)})
    ] = "1min"


async def get_signals(call: Call, given: SignalsInput) -> Result[shapes.SignalResponse]:
    """Return the indicators and crossings at the newest closed bar."""
    timeframe = parse_timeframe(given.timeframe, shapes.TIMEFRAMES)
    instrument = await call.desk.signals.find(given.symbol)
    reading = await call.desk.signals.read(instrument, timeframe)
    bars = reading.bars
    end = int(bars.time[-1]) + timeframe.seconds if len(bars) else None
    facts = await call.desk.facts(bars)
    basis = on_bars(reading.instrument, end, facts, reading.note)
    if reading.signals is None or reading.series is None:
        return Result(_noted({"ready": False, "reason": NOT_READY}, reading.note), basis)
    from openbell.signals.crossings import read

    signals, own = reading.signals, timeframe is Timeframe.M1 or facts.are_native(timeframe)
    shown: shapes.SignalResponse = {
        "ready": True,
        "symbol": instrument.symbol,
        "asset_type": "stock" if instrument.asset_class is AssetClass.STOCK else "crypto",
        "tf": name_of(timeframe, shapes.TIMEFRAMES),
        "snapshot": {**_shape(signals.last, own=own), "prev_snapshot": _shape(signals.previous, own=own)},
        "crossings": signals.crossings.table(),
        "trend_state": signals.trend,
        "risk_anchor": shaped(shapes.RiskAnchorShape, signals.anchor),
        "reading": shaped(shapes.ReadingShape, read(signals.last), squeeze=signals.squeezed),
        "last_crossings": _last_crossings(reading.series),
        **stated(call, instrument, facts.sources),  # type: ignore[typeddict-item]
    }
    return Result(_noted(shown, reading.note), basis)


def _noted(shown: shapes.SignalResponse, note: str | None) -> shapes.SignalResponse:
    return {**shown, "note": note} if note else shown


def _last_crossings(series: SignalSeries) -> dict[str, shapes.LastCrossing | None]:
    times = series.bars.time
    return {
        name: None if index is None else {"time": iso(int(times[index])), "bars_ago": len(times) - 1 - index}
        for name, index in series.last_true().items()
    }


def _shape(snapshot: SignalSnapshot, *, own: bool) -> shapes.PreviousShape:
    """Returns a snapshot; `own`: its volume is the feed's own, not a sum."""
    amount = snapshot.volume if own else volume(snapshot.volume)
    return shaped(shapes.PreviousShape, snapshot, volume=amount)


async def get_watchlist(call: Call, given: WatchlistInput) -> Result[shapes.WatchlistResponse]:
    """Return price, RSI and active crossings of every watched symbol; null and [] while a symbol is not ready."""
    timeframe = parse_timeframe(given.timeframe, shapes.TIMEFRAMES)
    instruments = (await call.desk.watchlist.current()).instruments
    found = await call.desk.signals.rows(instruments, timeframe)
    ready = {each: row for each, row in found.items() if isfinite(row.rsi)}
    by_class: dict[AssetClass, list[shapes.WatchedShape]] = {each: [] for each in AssetClass}
    for instrument in instruments:
        by_class[instrument.asset_class].append(_watched(instrument, ready.get(instrument)))
    shown: shapes.WatchlistResponse = {
        "watchlist": {"stocks": by_class[AssetClass.STOCK], "crypto": by_class[AssetClass.CRYPTO]},
        "timeframe": name_of(timeframe, shapes.TIMEFRAMES),
        "summary": _summary(ready),
        "timestamp": iso(int(call.desk.clock.epoch())),
        "market_hours": shapes.MARKET_HOURS,
        **stated(call),
    }
    # The age of the list is that of its oldest row.
    return Result(shown, Basis(newest=min((row.end for row in ready.values()), default=None)))


def _watched(instrument: Instrument, row: WatchedRow | None) -> shapes.WatchedShape:
    if row is None:
        return {"symbol": instrument.symbol, "price": None, "rsi": None, "signals": []}
    return shaped(shapes.WatchedShape, row, symbol=instrument.symbol, signals=row.crossings.true())


def _summary(rows: Mapping[Instrument, WatchedRow]) -> shapes.WatchlistSummary:
    moves = sorted(
        ((row.change_day, each.symbol) for each, row in rows.items() if row.change_day is not None), reverse=True
    )
    gains, losses = [each for each in moves if each[0] > 0], [each for each in reversed(moves) if each[0] < 0]
    by_signal: dict[str, list[str]] = {}
    for instrument, row in rows.items():
        for name in row.crossings.true():
            by_signal.setdefault(name, []).append(instrument.symbol)
    return {
        "up": len(gains),
        "down": len(losses),
        "best": [{"symbol": symbol, "change_day_pct": change} for change, symbol in gains[:_SHOWN]],
        "worst": [{"symbol": symbol, "change_day_pct": change} for change, symbol in losses[:_SHOWN]],
        "by_signal": by_signal,
    }


TOOLS = (
    Tool(
        "get_signals",
        "EMA9, SMA10, MACD, RSI14, Bollinger and their crossings at the newest closed bar of a symbol, what they mean, and "
        "when each crossing was last true.",
        SignalsInput,
        shapes.SignalResponse,
        get_signals,
        toolset="signals",
        reads=Reads.BARS,
        errors=SIGNAL_ERRORS,
    ),
    Tool(
        "get_watchlist",
        "Price, change of the day, RSI and active crossings of every watched symbol; null while a symbol is not ready.",
        WatchlistInput,
        shapes.WatchlistResponse,
        get_watchlist,
        toolset="signals",
        reads=Reads.BARS,
        errors=(StoreError, InvalidTimeframe),
    ),
)
