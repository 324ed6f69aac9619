"""Charts of any symbol: closed bars, indicators computed on all of them, and the part that is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

from openbell.charts.request import Computed, Look, Wanted
from openbell.desk.bars import BarService
from openbell.feeds.port import Feed
from openbell.market.bars import Bars
from openbell.market.errors import InsufficientData, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument, parse
from openbell.market.timeframes import Timeframe

_BEFORE = 3 * 86400
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Chart:
    """What is shown, whether as a picture or as numbers."""

    bars: Bars
    indicators: list[Computed]


class ChartService:
    """What generate_chart, get_indicators and `openbell chart` ask."""

    def __init__(self, bars: BarService, feed: Feed) -> None:
        self._bars = bars
        self._feed = feed
        # One thread: a large picture takes a hundred megabytes, and two would not be faster.
        self._worker = ThreadPoolExecutor(1, "charts")

    async def find(self, symbol: str) -> Instrument:
        """The instrument of a symbol that is stored or known to the feed."""
        instrument = parse(symbol)
        if not await self._bars.known(instrument):
            raise UnknownSymbol(instrument.symbol, "neither stored nor known to the feed")
        return instrument

    async def chart(self, instrument: Instrument, timeframe: Timeframe, count: int, wanted: list[Wanted]) -> Chart:
        """The newest `count` closed bars; indicators are computed on all that is kept, so that they are warm."""
        bars = await self._bars.latest(instrument, timeframe)
        if not len(bars):
            raise InsufficientData(instrument.symbol, 0, 1)
        extras = await self._extras(bars, wanted)
        return await self._run(_compute, bars, count, wanted, extras)

    async def png(self, chart: Chart, look: Look, title: str, mark: str) -> bytes:
        """The picture of a chart."""
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


def _compute(bars: Bars, count: int, wanted: list[Wanted], extras: dict[str, Extra]) -> Chart:
    shown = bars.tail(count)
    first = len(bars) - len(shown)
    found = []
    for each in wanted:
        # A profile is of the bars that are seen; everything else begins before them.
        profile = each.indicator.profile
        channels = each.indicator.run(shown if profile else bars, extras, **each.settings)
        found.append(Computed(each, channels if profile else channels.since(first)))
    return Chart(shown, found)


def _draw(chart: Chart, look: Look, title: str, mark: str) -> bytes:
    from openbell.charts.compose import compose
    from openbell.charts.encode import png
    from openbell.charts.raster import render

    return png(render(compose(chart.bars, chart.indicators, look, title, mark), look.scale))
