"""The bars of a backtest, fetched as needed: those that it trades, and earlier ones that warm up its indicators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openbell.desk.bars.facts import stored_instead
from openbell.desk.bars.regular_bars import RegularPart, regular_part_of
from openbell.desk.bars.service import BarService
from openbell.indicators.regular_hours import partly_regular
from openbell.market.bars import Bars, closed_at
from openbell.market.clock import iso
from openbell.market.errors import InsufficientData, InvalidParameter, NoData
from openbell.market.instruments import AssetClass
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.market.trading_days import begin_of_date, date_of
from openbell.stores.port import Span
from openbell.strategies.compiled import Compiled

_USUAL_BARS = 1250
"""The bars of a backtest without a start: five years of days of a stock."""
_FEWEST = 2
_WARM_UP = 800
"""The fewest bars before the first one that is traded."""
_LONGEST_PAUSE = 5 * 86400
"""Seconds for which a forex market may be closed: a weekend with holidays."""
_LONG_ENOUGH = 21 * 86400
"""Seconds in which every market has a bar of every timeframe."""
_SESSIONS = 5 * 86400
"""Seconds that hold two sessions, also over a long weekend: nothing that needs regular hours looks further back."""


@dataclass(frozen=True, slots=True, eq=False)
class BacktestBars:
    """The bars of a backtest."""

    bars: Bars
    first: int
    """The time from which they are traded."""
    regular: Bars | None
    """Their regular-hours part, if an indicator needs it and the bars hold more than that."""
    note: str
    """What a reader must know about the data that the conditions need; empty if there is nothing."""


async def backtest_bars(
    service: BarService, strategies: Sequence[Compiled], series: Series, start: int | None, end: int | None
) -> BacktestBars:
    """Returns the bars that open in [start, end), by default the newest 1,250, and those that warm up the strategies.

    Raises `InvalidParameter`, `InsufficientData` if there are fewer than two bars, and `NoData` if an indicator needs
    minutes and there are none.
    """
    newest = service.closed_until()
    start, end = (at if at is None else begin_of_date(series.instrument, series.timeframe, at) for at in (start, end))
    until = newest if end is None else min(end, newest)
    first = await _usual_start(service, series, until, to_the_end=until == newest) if start is None else start
    if first >= until:
        raise InvalidParameter("the start must be before the end")
    warm = lookback_start(series.instrument, series.timeframe, _warm_up(strategies), first)
    bars = await service.span(series, warm, until)
    count = len(bars) - int(bars.time.searchsorted(first))
    needed = min((each.warmup for each in strategies), default=0)
    if count < _FEWEST or len(bars) < needed:
        hint = await stored_instead(service, series.instrument)
        if count < _FEWEST:  # in the range that was asked for, whatever there is before it
            raise InsufficientData(series.instrument.symbol, count, _FEWEST, hint)
        raise InsufficientData(series.instrument.symbol, len(bars), needed, hint)
    late = "" if start is None else _late_start(bars, start)
    titles = _regular_titles(strategies)
    if not titles or not partly_regular(bars).any():
        return BacktestBars(bars, first, None, late)
    span = Span(max(int(bars.time[0]), first - _SESSIONS), closed_at(bars))
    part = await regular_part_of(service, bars, span)
    _require_minutes(part, bars, count, titles)
    notes = (late, _minutes_note(part, count, titles))
    return BacktestBars(bars, first, part.bars, "; ".join(filter(None, notes)))


async def _usual_start(service: BarService, series: Series, until: int, *, to_the_end: bool) -> int:
    """Returns the open of the first of the newest 1,250 bars before `until`, or of all bars if there are fewer.

    `to_the_end` is True if there are no later bars.
    """
    instrument, timeframe = series.instrument, series.timeframe
    if to_the_end:
        bars = await service.newest(instrument, timeframe, _USUAL_BARS)
    else:  # some bars may be missing: twice the time has enough
        bars = await service.span(series, lookback_start(instrument, timeframe, 2 * _USUAL_BARS, until), until)
    newest = bars.tail(_USUAL_BARS)
    return int(newest.time[0]) if len(newest) else lookback_start(instrument, timeframe, _USUAL_BARS, until)


def _late_start(bars: Bars, start: int) -> str:
    """Returns a note if bars are missing between `start` and the first bar that is traded; "" if none are."""
    first, instrument = int(bars.time[bars.time.searchsorted(start)]), bars.instrument
    if instrument.asset_class is AssetClass.FOREX:
        late = first - start > _LONGEST_PAUSE + bars.timeframe.seconds
    else:  # a stock's bars in extended hours are few: only whole sessions count
        by_day = instrument.asset_class is AssetClass.STOCK and bars.timeframe.intraday
        timeframe = Timeframe.D1 if by_day else bars.timeframe
        late = (
            len(buckets(instrument, timeframe, start, min(first, start + max(_LONG_ENOUGH, 3 * timeframe.seconds)))[0])
            > 0
        )
    if not late:
        return ""
    begun = date_of(instrument, bars.timeframe, first)
    shown = iso(first) if begun == date_of(instrument, bars.timeframe, start) else begun
    return f"bars begin on {shown}, after the start"


def _require_minutes(part: RegularPart, bars: Bars, count: int, titles: str) -> None:
    missing, overlapping = part.missing(count)
    if overlapping and missing == overlapping:
        what = f"{titles} on {name_of(bars.timeframe, SHORT)} bars of {bars.instrument}"
        raise NoData(
            f"{what} is computed from minutes of regular hours, and there are none in this time; use bars of 30 minutes "
            "or less, or import minutes",
            symbol=bars.instrument.symbol,
        )


def _minutes_note(part: RegularPart, count: int, titles: str) -> str:
    missing, overlapping = part.missing(count)
    note = f"{titles}: computed from minutes of regular hours"
    if not missing:
        return note
    return f"{note}; {missing:,} of {overlapping:,} bars have no minutes, and conditions on it do not hold there"


def _warm_up(strategies: Sequence[Compiled]) -> int:
    """Returns the number of bars before the first one that is traded, as charts use them: trades then hardly depend on
    where the bars begin.
    """
    return max([_WARM_UP, *(24 * each.warmup for each in strategies)])


def _regular_titles(strategies: Sequence[Compiled]) -> str:
    """Returns the titles of the indicators that are computed on regular hours; empty if none is."""
    used = (step.indicator for strategy in strategies for step in strategy.steps)
    return ", ".join(dict.fromkeys(each.title for each in used if each.regular))
