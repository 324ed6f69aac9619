"""The bars that a chart config shows, with those before them that its studies need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from openbell.charts.config.model import ChartConfig
from openbell.charts.config.ranges import bounds_of
from openbell.charts.config.validation import MOST_BARS
from openbell.desk.bars import RING, BarService
from openbell.desk.regular_parts import regular_part_of
from openbell.indicators.regular_hours import partly_regular, session_days
from openbell.market.bars import Bars
from openbell.market.errors import NoData
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span

DEFAULT_BARS = 200
"""The bars of a chart without a range."""


@dataclass(frozen=True, slots=True)
class Window:
    """Bars, of which the newest `count` are shown."""

    bars: Bars
    count: int
    notes: tuple[str, ...] = ()


async def window_of(
    service: BarService, config: ChartConfig, instrument: Instrument, timeframe: Timeframe, warm_up: int
) -> Window:
    """Returns the closed bars of a config's range, and `warm_up` bars before them. Raises `NoData` if none are shown."""
    series = Series(instrument, timeframe)
    closed = service.closed_until()
    now = datetime.fromtimestamp(service.clock.epoch(), UTC)
    bounds = bounds_of(config.range, now) if config.range else None
    start = 0 if bounds is None or bounds.start is None else int(bounds.start.timestamp())
    end = closed if bounds is None else min(closed, int(bounds.end.timestamp()))
    if bounds is not None and end < closed - timeframe.seconds:
        first = lookback_start(instrument, timeframe, warm_up + config.shift_left, max(start, 1))
        bars = await service.span(series, max(0, first), end)
    else:
        bars = await service.newest(instrument, timeframe, _depth(start, end, timeframe, config.shift_left) + warm_up)
    notes: list[str] = []
    if config.session == "regular":
        bars = await _regular(service, bars, notes)
    if config.shift_left:
        bars = bars.take(slice(0, max(0, len(bars) - config.shift_left)))
    shown = int((bars.time >= start).sum()) if bounds is not None else min(DEFAULT_BARS, len(bars))
    if bounds is None and warm_up and len(bars) < DEFAULT_BARS:
        shown = len(bars)
    if shown > MOST_BARS:
        notes.append(f"the newest {MOST_BARS:,} of {shown:,} bars are drawn")
    if not shown:
        raise NoData(f"{instrument}: no closed {config.interval} bars in range {config.range or 'of the newest bars'}")
    return Window(bars, min(shown, MOST_BARS), tuple(notes))


def _depth(start: int, end: int, timeframe: Timeframe, shift: int) -> int:
    """Returns how many bars there are at most from a time on; without a time, those of a chart without a range."""
    wanted = DEFAULT_BARS if not start else -(-(end - start) // timeframe.seconds) + 1
    return min(RING, wanted + shift)


async def _regular(service: BarService, bars: Bars, notes: list[str]) -> Bars:
    """Returns a stock's bars without extended hours; other bars unchanged."""
    if bars.instrument.asset_class is not AssetClass.STOCK or not bars.timeframe.intraday or not len(bars):
        return bars
    if not partly_regular(bars).any():
        return bars.take(session_days(bars) >= 0)
    part = await regular_part_of(service, bars, Span(int(bars.time[0]), int(bars.time[-1]) + bars.timeframe.seconds))
    if note := part.note(len(bars)):
        notes.append(f"session regular: {note}")
    kept: Bars = part.bars.take(np.isfinite(part.bars.close))
    return kept
