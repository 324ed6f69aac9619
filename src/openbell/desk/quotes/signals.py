"""Signals of any symbol: finds the instrument, its closed bars, and reads them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openbell.desk.bars.facts import stored_instead
from openbell.desk.bars.service import BarService
from openbell.desk.bars.watchlist import WatchlistFile
from openbell.market.bars import MINUTE, Bars, empty
from openbell.market.errors import InsufficientData, NotCovered, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.price_history import percent_change, previous_close
from openbell.market.timeframes import Timeframe
from openbell.signals.crossings import NEEDED, NOT_COVERED, SignalCrossings, find_crossings
from openbell.signals.series import Signals, SignalSeries

_KEPT = 4
"""Series whose indicators stay in memory: enough for what is asked again and again, a third of a megabyte each."""


@dataclass(frozen=True, slots=True)
class SeriesReading:
    """Signals, or None while a watched symbol is still warming up."""

    instrument: Instrument
    bars: Bars
    series: SignalSeries | None
    signals: Signals | None
    note: str | None = None
    """Why something is missing."""


@dataclass(frozen=True, slots=True)
class WatchedRow:
    """What a watchlist shows of a symbol: the price of its newest minute, and signals at a timeframe."""

    price: float
    end: int
    """When the minute of the price ended."""
    change_day: float | None
    """In per cent since the previous close; None if the minutes do not have it."""
    rsi: float
    crossings: SignalCrossings


_Row = tuple[Bars, Bars, WatchedRow]
"""A row with the minutes and the bars that it was computed of."""


class SignalService:
    """What get_signals, get_watchlist and the alerts ask."""

    def __init__(self, bars: BarService, watchlist: WatchlistFile) -> None:
        self._bars = bars
        self._watchlist = watchlist
        self._recent: OrderedDict[tuple[Instrument, Timeframe], tuple[Bars, Bars, SignalSeries, Signals]] = (
            OrderedDict()
        )
        self._rows: dict[Instrument, _Row] = {}
        """Those of the newest watchlist, each with the minutes and the bars that it was computed of."""

    async def find(self, symbol: str) -> Instrument:
        """The instrument of a symbol that is watched, stored or known to the feed, and that this service covers."""
        instrument = parse(symbol)
        if instrument.asset_class in NOT_COVERED:
            raise NotCovered(instrument.symbol, NOT_COVERED[instrument.asset_class])
        if not await self.watched(instrument) and not await self._bars.known(instrument):
            raise UnknownSymbol(instrument.symbol, "neither watched, stored nor known to the feed")
        return instrument

    async def watched(self, instrument: Instrument) -> bool:
        """Whether it stands in the watchlist."""
        return instrument in (await self._watchlist.current()).instruments

    async def read(self, instrument: Instrument, timeframe: Timeframe) -> SeriesReading:
        """The newest signals. Raises `InsufficientData` for a symbol that is not watched."""
        try:
            bars = await self._bars.latest(instrument, timeframe)
        except UnknownSymbol:
            if not await self.watched(instrument):
                raise
            return SeriesReading(instrument, empty(instrument, timeframe), None, None)
        if len(bars) < NEEDED:
            if not await self.watched(instrument):
                hint = await stored_instead(self._bars, instrument)
                raise InsufficientData(instrument.symbol, len(bars), NEEDED, hint)
            hint = await stored_instead(self._bars, instrument)
            return SeriesReading(instrument, bars, None, None, hint.removeprefix("; ") or None)
        minutes = bars if timeframe is Timeframe.M1 else await self._bars.latest(instrument, Timeframe.M1)
        series, signals = await self._computed(bars, minutes)
        note = None if len(minutes) or signals.last.vwap is not None else "vwap is null: it is computed from minutes"
        return SeriesReading(instrument, bars, series, signals, note)

    async def rows(
        self, instruments: Sequence[Instrument], timeframe: Timeframe = Timeframe.M1
    ) -> dict[Instrument, WatchedRow]:
        """The newest rows of a watchlist, without instruments that have too few bars."""
        minutes = await self._bars.latest_of(instruments, Timeframe.M1)
        found = minutes if timeframe is Timeframe.M1 else await self._bars.latest_of(instruments, timeframe)
        wanted = {
            each: (minutes[each], bars)
            for each, bars in found.items()
            if len(bars) >= NEEDED and each in minutes and len(minutes[each])
        }
        known = {each: row for each, row in self._rows.items() if _is_of(row, wanted.get(each))}
        if new := {each: given for each, given in wanted.items() if each not in known}:
            known |= await self._bars.threads.run(_rows, new)
        self._rows = known = {each: known[each] for each in wanted}
        return {each: row for each, (_, _, row) in known.items()}

    async def _computed(self, bars: Bars, minutes: Bars) -> tuple[SignalSeries, Signals]:
        """Computed once per set of bars: the bar service hands out the same object until something changes."""
        key = (bars.instrument, bars.timeframe)
        known = self._recent.get(key)
        if known and known[0] is bars and known[1] is minutes:
            self._recent.move_to_end(key)
            return known[2], known[3]
        series, signals = await self._bars.threads.run(_signals, bars, minutes)
        self._recent[key] = (bars, minutes, series, signals)
        self._recent.move_to_end(key)
        if len(self._recent) > _KEPT:
            self._recent.popitem(last=False)
        return series, signals


def _signals(bars: Bars, minutes: Bars) -> tuple[SignalSeries, Signals]:
    with np.errstate(all="ignore"):  # a number that is not finite is refused where answers are made
        series = SignalSeries(bars, minutes)
        return series, series.newest()


def _is_of(row: _Row, given: tuple[Bars, Bars] | None) -> bool:
    """Returns True if a row was computed from these minutes and bars."""
    return given is not None and row[0] is given[0] and row[1] is given[1]


def _rows(given: Mapping[Instrument, tuple[Bars, Bars]]) -> dict[Instrument, _Row]:
    return {each: (minutes, bars, _row(minutes, bars)) for each, (minutes, bars) in given.items()}


def _row(minutes: Bars, bars: Bars) -> WatchedRow:
    with np.errstate(all="ignore"):
        series = SignalSeries(bars, minutes)
        last = series.levels(-1)
        crossings = find_crossings(series.levels(-2), last)
    price, before = float(minutes.close[-1]), previous_close(minutes)
    change = percent_change(before.price, price) if before else None
    return WatchedRow(price, int(minutes.time[-1]) + MINUTE, change, last.rsi, crossings)
