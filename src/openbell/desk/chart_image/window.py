"""The bars that a chart config shows, with those before them that its studies need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from openbell.charts.config.model import ChartConfig
from openbell.charts.config.ranges import Bounds, bounds_of
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
_HOURS = 3
"""The 16 hours of a stock's day by the 6.5 of the regular session, rounded up."""
_EXTENDED = 34_200
"""Seconds of a stock's day that are not regular; the newest bars may be of such hours."""


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
    before = _with_extended(warm_up + config.shift_left, config, series)
    if bounds is not None and end < closed - timeframe.seconds:
        first = lookback_start(instrument, timeframe, before, max(start, 1))
        bars = await service.span(series, max(0, first), end)
        is_cut = False
    else:
        bars = await service.newest(instrument, timeframe, _depth(bounds, config, series) + before)
        is_cut = len(bars) >= RING and bool(bars.time[0] > start)
    notes: list[str] = []
    if config.session == "regular":
        bars = await _regular(service, bars, notes)
    shown = int((bars.time >= start).sum()) if bounds is not None else DEFAULT_BARS
    bars = bars.take(slice(0, max(0, len(bars) - config.shift_left)))
    shown = min(shown, len(bars))
    if bounds is not None and (is_cut or shown > MOST_BARS):
        notes.append(f"the newest {min(shown, MOST_BARS):,} bars of range {config.range} are drawn")
    if not shown:
        raise NoData(f"{instrument}: no closed {config.interval} bars in range {config.range or 'of the newest bars'}")
    return Window(bars, min(shown, MOST_BARS), tuple(notes))


def _depth(bounds: Bounds | None, config: ChartConfig, series: Series) -> int:
    """Returns how many bars a range that ends now has at most; without a range, those that a chart shows."""
    if bounds is None:
        return _with_extended(DEFAULT_BARS, config, series)
    if bounds.start is None:
        return RING
    seconds = int(bounds.end.timestamp()) - int(bounds.start.timestamp())
    return min(RING, -(-seconds // series.timeframe.seconds) + 1)


def _with_extended(count: int, config: ChartConfig, series: Series) -> int:
    """Returns how many bars have to be read to have a number of them after those of extended hours are left out."""
    if config.session != "regular" or series.instrument.asset_class is not AssetClass.STOCK:
        return count
    seconds = series.timeframe.seconds
    return count * _HOURS + _EXTENDED // seconds + 1 if count and series.timeframe.intraday else count


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
