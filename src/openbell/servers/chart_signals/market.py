"""check_market_status, get_storage_info and get_capabilities."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from openbell import __version__
from openbell.market.clock import iso
from openbell.market.errors import StoreError
from openbell.market.instruments import AssetClass
from openbell.market.plural import in_words
from openbell.market.sessions import Phase, StockSession, eastern, next_open, session_on, stock_phase
from openbell.market.timeframes import SHORT
from openbell.protocol.call import Call, Result, data_source
from openbell.protocol.session import Scope
from openbell.protocol.tool import NoArguments, Reads, Tool
from openbell.servers.chart_signals import shapes

if TYPE_CHECKING:
    from openbell.market.instruments import Instrument
    from openbell.market.series import Series
    from openbell.stores.port import BarStore

_BYTES = 48
"""Size of one bar: its time, four prices and a volume, eight bytes each."""
_NAMED = 100
"""Symbols of a timeframe that are named."""


async def check_market_status(call: Call, _given: NoArguments) -> Result[shapes.MarketStatusResponse]:
    """Return the session of the stock market and when it next opens."""
    now = call.desk.clock.epoch()
    phase = stock_phase(now)
    upcoming, today = next_open(now), session_on(eastern(now).date())
    session = today if today and now < today.close else upcoming
    closing = session.close if session else None
    status: shapes.MarketStatusResponse = {
        "stocks": {
            "open": phase is Phase.REGULAR,
            "session": phase.value,
            "next_open": _in_words(eastern(now), eastern(upcoming.open)) if upcoming else "unknown",
            "next_open_at": iso(upcoming.open) if upcoming else None,
            "next_close": _in_words(eastern(now), eastern(closing)) if closing else None,
            "next_close_at": iso(closing) if closing else None,
            "changes_in": _changes_in(now, upcoming, closing, is_open=phase is Phase.REGULAR),
            "current_time_et": f"{_clock(eastern(now))} ET",
        },
        "crypto": {"open": True, "note": "24/7 trading"},
        "timestamp": iso(int(now)),
    }
    return Result(status)


def _changes_in(now: float, upcoming: StockSession | None, closing: int | None, *, is_open: bool) -> str:
    """Returns `opens in 4 hours and 26 minutes`, or when regular hours close."""
    if is_open and closing is not None:
        return f"closes in {_left(closing - now)}"
    return f"opens in {_left(upcoming.open - now)}" if upcoming else "unknown"


def _left(seconds: float) -> str:
    return in_words(seconds) if seconds >= 60 else "less than a minute"


def _clock(moment: datetime) -> str:
    """Returns a time such as `3:00 PM`."""
    return f"{moment.hour % 12 or 12}:{moment:%M} {'AM' if moment.hour < 12 else 'PM'}"


def _in_words(now: datetime, then: datetime) -> str:
    """Returns `Today 9:30 AM ET`, `Tomorrow …`, or the day's name and date."""
    days = (then.date() - now.date()).days
    day = {0: "Today", 1: "Tomorrow"}.get(days) or f"{then:%A}, {then:%b} {then.day}"
    return f"{day} {_clock(then)} ET"


async def get_storage_info(call: Call, _given: NoArguments) -> Result[shapes.StorageInfoResponse]:
    """Return the stored symbols, the folder and its size; with --as-of, only of bars that had closed by then.

    Callers without the scope `admin` see the symbols of the watchlist only.
    """
    store, settings = call.desk.store, call.desk.settings
    sees_all = Scope.ADMIN in call.session.principal.scopes
    # The list of stored symbols reveals what other principals have requested, so it is limited to the watchlist.
    shown = None if sees_all else frozenset((await call.desk.watchlist.current()).instruments)
    clock = call.desk.clock.epoch() if settings.as_of or not sees_all else None
    stored, size = await call.desk.threads.run(_stored, store, clock, shown)
    instruments = sorted({series.instrument for series in stored})
    names = {kind: [i.file_name for i in instruments if i.asset_class is kind] for kind in AssetClass}
    answer: shapes.StorageInfoResponse = {
        "data_directory": str(settings.bar_folder),
        "stored_symbols": {"stocks": names[AssetClass.STOCK], "crypto": names[AssetClass.CRYPTO]},
        "series": _by_timeframe(stored),
        "total_size_mb": round(size / 1e6, 3),
        "data_source": data_source(call),
    }
    if sees_all:
        problems = await call.desk.threads.run(store.audit.problems)
        if past := [f"{each.path}: {each.reason}" for each in problems if clock is None or each.at <= clock]:
            answer["set_aside"] = past
    return Result(answer)


def _by_timeframe(stored: list[Series]) -> dict[str, shapes.StoredSeries]:
    """Returns the symbols of the stored series by timeframe, shortest first."""
    found: dict[str, shapes.StoredSeries] = {}
    for name, timeframe in SHORT.items():
        if symbols := [series.instrument.file_name for series in stored if series.timeframe is timeframe]:
            found[name] = {"total": len(symbols), "symbols": symbols[:_NAMED]}
    return found


def _stored(store: BarStore, clock: float | None, shown: frozenset[Instrument] | None) -> tuple[list[Series], int]:
    """Returns the stored series and their size in bytes: on disk now or, with `clock`, of bars closed by then.

    With `shown`, only those of some instruments. A file may contain later bars, and the folder those of others, so that its
    size would reveal them: with `clock`, each closed bar counts as 48 bytes.
    """
    stored = [series for series in store.stored() if shown is None or series.instrument in shown]
    if clock is None:
        return stored, store.size()
    closed = int(clock // 60 * 60)
    counts = {series: store.count(series, series.timeframe, closed) for series in stored}
    return [series for series in stored if counts[series]], sum(counts.values()) * _BYTES


async def get_capabilities(call: Call, _given: NoArguments) -> Result[shapes.CapabilitiesResponse]:
    """Return the contract's constants, and the version and data source of this desk."""
    capabilities: shapes.CapabilitiesResponse = {
        "version": __version__,
        "protocol": "2025-06-18",
        "indicators": ["EMA9", "SMA10", "MACD(12,26,9)", "RSI14", "BB(20,2)"],
        "timeframes": list(shapes.TIMEFRAMES),
        "asset_types": ["stocks", "crypto"],
        "data_source": data_source(call),
        "storage": "parquet",
        "max_bars_in_memory": 3000,
    }
    return Result(capabilities)


TOOLS = (
    Tool(
        "check_market_status",
        "Whether US stocks and crypto trade now, and when stocks next open.",
        NoArguments,
        shapes.MarketStatusResponse,
        check_market_status,
        toolset="market",
        reads=Reads.NOTHING,
    ),
    Tool(
        "get_storage_info",
        "Which symbols are stored, at which timeframes, where, and how much space they take.",
        NoArguments,
        shapes.StorageInfoResponse,
        get_storage_info,
        toolset="market",
        reads=Reads.BARS,
        errors=(StoreError,),
    ),
    Tool(
        "get_capabilities",
        "Version, indicators, timeframes and data source of this server.",
        NoArguments,
        shapes.CapabilitiesResponse,
        get_capabilities,
        toolset="market",
        reads=Reads.NOTHING,
    ),
)
