"""Charts of any symbol: closed bars, indicators computed on all of them, and the part that is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ParamSpec, TypeVar

import numpy as np

from openbell.charts.request import Computed, Look, Wanted
from openbell.desk.bars import BarService
from openbell.feeds.port import Feed
from openbell.indicators.day_sums import day_begins
from openbell.indicators.regular_hours import cut_by_session, regular_part_of_minutes, session_days
from openbell.market.bars import Bars, empty, merge
from openbell.market.errors import InsufficientData, NotFinite
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore

_DAY = 86400
_BEFORE = 3 * _DAY
_PIECE = 30 * _DAY
_SMALLEST_DRAWN, _LARGEST_DRAWN = 1e-100, 1e100
"""Prices and volumes beyond these overflow in the arithmetic of axes and paths."""
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Chart:
    """What is shown, whether as a picture or as numbers."""

    bars: Bars
    indicators: list[Computed]
    whole: Bars
    """The bars before them too: what some styles begin with."""


class ChartService:
    """What generate_chart, get_indicators and `openbell chart` ask."""

    def __init__(self, bars: BarService, feed: Feed) -> None:
        self._bars = bars
        self._feed = feed
        # One thread: a large picture takes a hundred megabytes, and two would not be faster.
        self._worker = ThreadPoolExecutor(1, "charts")

    async def chart(self, instrument: Instrument, timeframe: Timeframe, count: int, wanted: list[Wanted]) -> Chart:
        """The newest `count` closed bars; indicators are computed on all that is kept, so that they are warm."""
        bars = await self._bars.latest(instrument, timeframe)
        if not len(bars):
            raise InsufficientData(instrument.symbol, 0, 1)
        extras = await self._extras(bars, wanted)
        regular = await self._regular(bars, count, wanted)
        return await self._run(_compute, bars, count, wanted, extras, regular)

    async def png(self, chart: Chart, look: Look, title: str, mark: str) -> bytes:
        """The picture of a chart. Raises `NotFinite` if no axis can hold its prices or volumes."""
        low, high, volume = (
            float(each) for each in (chart.whole.low.min(), chart.whole.high.max(), chart.whole.volume.max())
        )
        if low < _SMALLEST_DRAWN or max(high, volume) > _LARGEST_DRAWN:
            raise NotFinite(
                f"prices from {low:g} to {high:g} and volumes up to {volume:g} cannot be drawn; ask for format summary or "
                "series"
            )
        return await self._run(_draw, chart, look, title, mark)

    def close(self) -> None:
        """Begin nothing more."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._worker, partial(work, *given, **named))

    async def _extras(self, bars: Bars, wanted: list[Wanted]) -> dict[str, Extra]:
        kinds = {kind for each in wanted for kind in each.indicator.needs}
        # A value holds until the next one: the first bars need the last one before them.
        start, end = int(bars.time[0]) - _BEFORE, int(bars.time[-1]) + bars.timeframe.seconds
        return {kind: await self._feed.extra(kind, bars.instrument, start, end) for kind in sorted(kinds)}

    async def _regular(self, bars: Bars, count: int, wanted: list[Wanted]) -> Bars | None:
        """What was traded of the bars in regular hours, if somebody needs that and the bars themselves do not tell."""
        if not any(each.indicator.regular for each in wanted) or not cut_by_session(bars).any():
            return None
        return await asyncio.to_thread(_read_regular, self._bars.store, bars, len(bars) - count)


def _read_regular(store: BarStore, bars: Bars, first: int) -> Bars:
    """From one session before the first shown bar's on: nothing that needs regular hours looks further back."""
    day = session_days(bars)
    sessions = [at for at in day_begins(day).tolist() if day[at] >= 0 and at <= first]
    start, end = int(bars.time[sessions[-2] if len(sessions) > 1 else 0]), int(bars.time[-1]) + bars.timeframe.seconds
    # In pieces, so that a year of minutes is never in memory at once; bars within a day do not cross midnight.
    edges = [start, *range(start - start % _DAY + _PIECE, end, _PIECE), end]
    pieces = [
        regular_part_of_minutes(bars.between(a, b), store.read(bars.instrument, a, b)) for a, b in pairwise(edges)
    ]
    return merge(regular_part_of_minutes(bars.between(0, start), empty(bars.instrument)), *pieces)


def _compute(bars: Bars, count: int, wanted: list[Wanted], extras: dict[str, Extra], regular: Bars | None) -> Chart:
    shown = bars.tail(count)
    first = len(bars) - len(shown)
    found = []
    for each in wanted:
        # A profile is of the bars that are seen; everything else begins before them.
        profile = each.indicator.profile
        given = shown if profile else bars
        part = None if regular is None else regular.tail(len(given))
        with np.errstate(all="ignore"):  # values that are not finite are null in answers and gaps in pictures
            channels = each.indicator.run(given, extras, part, **each.settings)
        found.append(Computed(each, channels if profile else channels.since(first)))
    return Chart(shown, found, bars)


def _draw(chart: Chart, look: Look, title: str, mark: str) -> bytes:
    from openbell.charts.compose import compose
    from openbell.charts.picture import picture

    return picture(compose(chart.bars, chart.indicators, look, title, mark, chart.whole), look.scale)
