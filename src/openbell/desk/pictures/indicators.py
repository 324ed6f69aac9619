"""Indicators of any symbol: closed bars, what else the indicators need, and their numbers.

Charts and alerts ask here; each gets the same numbers for the same bars. Some indicators need finer bars than those shown,
such as a profile of sessions on daily bars.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from openbell.desk.bars.facts import stored_instead
from openbell.desk.bars.regular_bars import RegularPart, newest_regular, regular_part_of, why_unchanged
from openbell.desk.bars.service import MOST_CACHED, BarService
from openbell.feeds.port import Feeds
from openbell.indicators.evaluation import Computed, IndicatorRequest, evaluate
from openbell.indicators.profiles import places_of
from openbell.indicators.regular_hours import day_starts, partly_regular, session_days
from openbell.indicators.spec import Finer
from openbell.market.bars import Bars, empty, ends_of
from openbell.market.errors import DataError, InsufficientData, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.sessions import EXTENDED, REGULAR
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span

_DAY = 86400
_BEFORE = 3 * _DAY
_WARM_UP = 800
"""The fewest bars before the first one shown."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The newest closed bars of a series with indicators on them."""

    bars: Bars
    indicators: list[Computed]
    whole: Bars
    """The bars before them too: what some chart styles begin with."""
    hours: str | None = None
    """`regular` if extended hours were asked to be left out, and the bars have none; None if that was not asked."""
    note: str | None = None
    """Why bars are missing, or why the hours asked for change nothing."""
    from_minutes: bool = False
    """True if the bars were computed from minutes."""


class IndicatorService:
    """What charts and alerts ask."""

    def __init__(self, bars: BarService, feed: Feeds) -> None:
        self._bars = bars
        self._feed = feed

    async def evaluate(
        self,
        instrument: Instrument,
        timeframe: Timeframe,
        count: int,
        wanted: list[IndicatorRequest],
        session: str = EXTENDED,
    ) -> Evaluation:
        """The newest `count` closed bars; indicators are computed on bars before them too, so that they are warm.

        With the session `regular`, bars and indicators are computed without the extended hours of stocks.
        """
        needed = count + warm_up(wanted, timeframe)
        if session == REGULAR:
            return await self._evaluate_regular(instrument, timeframe, count, needed, wanted)
        bars = await self._bars.newest(instrument, timeframe, needed)
        await self._check_any(bars)
        return await self.evaluate_bars(bars, count, wanted)

    async def _evaluate_regular(
        self, instrument: Instrument, timeframe: Timeframe, count: int, needed: int, wanted: list[IndicatorRequest]
    ) -> Evaluation:
        found = await newest_regular(self._bars, instrument, timeframe, needed)
        await self._check_any(found.bars)
        shown = await self.evaluate_bars(found.bars.tail(needed), count, wanted)
        unchanged = why_unchanged(instrument)
        return replace(
            shown,
            hours=None if unchanged else REGULAR,
            note=unchanged or found.note(count),
            from_minutes=found.from_minutes,
        )

    async def _check_any(self, bars: Bars) -> None:
        """Raises `InsufficientData` if there are no bars."""
        if not len(bars):
            instrument = bars.instrument
            raise InsufficientData(instrument.symbol, 0, 1, await stored_instead(self._bars, instrument))

    async def evaluate_bars(self, bars: Bars, count: int, wanted: list[IndicatorRequest]) -> Evaluation:
        """Indicators on the newest `count` of some bars, computed on all of them."""
        extras = await self._extras(bars, wanted)
        regular = await self._regular(bars, count, wanted)
        finer = await finer_bars_of(self._bars, bars.tail(count), wanted)
        part = None if regular is None else regular.bars
        # Not in the threads that draw: a picture takes much longer.
        found = await self._bars.threads.run(evaluate, bars, count, wanted, extras, part, finer.bars)
        if regular and (note := regular.note(count)):
            found = [
                replace(each, note=each.note or note) if each.request.indicator.regular else each for each in found
            ]
        found = [replace(each, note=each.note or finer.notes.get(each.request.key)) for each in found]
        return Evaluation(bars.tail(count), found, bars)

    async def _extras(self, bars: Bars, wanted: list[IndicatorRequest]) -> dict[str, Extra]:
        kinds = {kind for each in wanted for kind in each.indicator.needs}
        # A value holds until the next one: the first bars need the last one before them.
        start, end = int(bars.time[0]) - _BEFORE, int(ends_of(bars.tail(1))[0])
        return {kind: await self._feed.extra(kind, bars.instrument, start, end) for kind in sorted(kinds)}

    async def _regular(self, bars: Bars, count: int, wanted: list[IndicatorRequest]) -> RegularPart | None:
        """What was traded of the bars in regular hours, if somebody needs that and the bars themselves do not tell."""
        if not any(each.indicator.regular for each in wanted) or not partly_regular(bars).any():
            return None
        back = max((each.lookback(bars.timeframe) for each in wanted if each.indicator.regular), default=0)
        span = _regular_span(bars, len(bars) - count, back)
        # Longer bars need not be made of minutes; without minutes there are no values.
        return await regular_part_of(self._bars, bars, span)


def warm_up(wanted: list[IndicatorRequest], timeframe: Timeframe) -> int:
    """The bars before the first one shown that indicators need."""
    return max((_warm_up(each, timeframe) for each in wanted), default=_WARM_UP)


def _warm_up(request: IndicatorRequest, timeframe: Timeframe) -> int:
    """Bars before the first one shown after which the start of the series changes no value by more than 1e-10."""
    indicator = request.indicator
    if indicator.cumulative:
        return MOST_CACHED
    # The session of the first bar, and the one before it.
    days = 2 * _DAY // timeframe.seconds if indicator.regular or indicator.by_day else 0
    return max(_WARM_UP, 24 * request.warmup, days, request.lookback(timeframe) // timeframe.seconds)


def _regular_span(bars: Bars, first: int, back: int) -> Span:
    """From one session before the first shown bar's on, and from `back` seconds before that bar on."""
    day = session_days(bars)
    sessions = [at for at in day_starts(day).tolist() if day[at] >= 0 and at <= first]
    begin = int(bars.time[sessions[-2] if len(sessions) > 1 else 0])
    begin = max(int(bars.time[0]), min(begin, int(bars.time[max(0, first)]) - back))
    return Span(begin, int(bars.time[-1]) + bars.timeframe.seconds)


@dataclass(frozen=True, slots=True)
class FinerBars:
    """By the key of each request: its finer bars, and a note if some of the bars shown have none."""

    bars: dict[str, Bars] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


async def finer_bars_of(service: BarService, shown: Bars, requests: list[IndicatorRequest]) -> FinerBars:
    """Returns the finer bars of the requests that need them, fetched as needed."""
    found = FinerBars()
    for each in requests:
        if need := each.finer(shown.timeframe):
            bars = shown.tail(need.bars)
            finer = found.bars[each.key] = await _finer_of(service, bars, need)
            if note := _note_of_finer(bars, finer, need.reason):
                found.notes[each.key] = note
    return found


async def _finer_of(service: BarService, bars: Bars, need: Finer) -> Bars:
    """The bars of the best of the timeframes of which there are any."""
    start, end = int(bars.time[0]), int(ends_of(bars.tail(1))[0])
    for timeframe in need.timeframes:
        try:
            # A stock's session may begin inside of a finer bar.
            first = start - start % timeframe.seconds if timeframe.intraday else start
            found = await service.span(Series(bars.instrument, timeframe), first, end)
        except (DataError, UnknownSymbol):
            continue
        if len(found):
            return found
    return empty(bars.instrument, need.timeframes[0])


def _note_of_finer(bars: Bars, finer: Bars, reason: str) -> str | None:
    """Returns a note if some bars have no finer ones."""
    by_day = not bars.timeframe.intraday
    place = places_of(finer, bars) if by_day else np.searchsorted(bars.time, finer.time, side="right") - 1
    missing = len(bars) - len(np.unique(place[place >= 0]))
    if not missing:
        return None
    return f"{reason}; {missing} of {len(bars)} bars have none"
