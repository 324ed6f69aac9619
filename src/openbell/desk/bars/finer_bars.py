"""The finer bars of indicators that need more than the bars shown, such as a profile of sessions on daily bars."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from openbell.desk.bars.service import BarService
from openbell.indicators.evaluation import IndicatorRequest
from openbell.indicators.profiles import places_of
from openbell.indicators.spec import Finer
from openbell.market.bars import Bars, empty, ends_of
from openbell.market.errors import DataError, UnknownSymbol
from openbell.market.series import Series


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
            finer = found.bars[each.key] = await _read(service, bars, need)
            if note := _note(bars, finer, need.reason):
                found.notes[each.key] = note
    return found


async def _read(service: BarService, bars: Bars, need: Finer) -> Bars:
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


def _note(bars: Bars, finer: Bars, reason: str) -> str | None:
    """Returns a note if some bars have no finer ones."""
    by_day = not bars.timeframe.intraday
    place = places_of(finer, bars) if by_day else np.searchsorted(bars.time, finer.time, side="right") - 1
    missing = len(bars) - len(np.unique(place[place >= 0]))
    if not missing:
        return None
    return f"{reason}; {missing} of {len(bars)} bars have none"
