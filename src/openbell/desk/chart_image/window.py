"""The bars that a chart config shows, with those before them that its studies need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import NamedTuple

import numpy as np

from openbell.charts.config.model import ChartConfig
from openbell.charts.config.ranges import bounds_of
from openbell.charts.config.validation import MOST_BARS
from openbell.desk.bars import RING, BarService
from openbell.desk.regular_parts import regular_part_of
from openbell.indicators.regular_hours import partly_regular, session_days
from openbell.market.bars import Bars
from openbell.market.clock import iso
from openbell.market.errors import NoData
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.lookback import bucket_start, lookback_start
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span

DEFAULT_BARS = 200
"""The bars of a chart without a range."""
_CLOSED = 5 * 86400
"""Seconds for which a market may be closed."""
_MINUTE = 60
_HOURS = 3
"""The 16 hours of a stock's day by the 6.5 of the regular session, rounded up."""
_EXTENDED = 34_200
"""Seconds of a stock's day that are not regular; the newest bars may be of such hours."""
_NEARLY = 0.95
_LAST_WHOLE = 1800
"""Seconds. Longer bars may hold regular and extended hours."""
_LATE = 0.05
"""The part of a range after which missing bars are said."""


@dataclass(frozen=True, slots=True)
class Window:
    """Bars, of which the newest `count` are shown."""

    bars: Bars
    count: int
    notes: tuple[str, ...] = ()


async def window_of(
    service: BarService, config: ChartConfig, instrument: Instrument, timeframe: Timeframe, warm_up: int
) -> Window:
    """Returns the closed bars of a config's range, and `warm_up` bars before them. Raises `NoData` if none are shown.

    A bar is shown if it opens before the end of the range and contains its start or opens after it.
    """
    closed = service.closed_until()
    bounds = bounds_of(config.range, datetime.fromtimestamp(service.clock.epoch(), UTC)) if config.range else None
    asked = None
    if bounds is not None and bounds.start is not None:
        asked = bucket_start(instrument, timeframe, bounds.start.timestamp())
    # The vendor's clients write the last moment of a day: it belongs to the day.
    end = closed if bounds is None else min(closed, ceil(bounds.end.timestamp() / _MINUTE) * _MINUTE)
    bars = await _read(service, config, Series(instrument, timeframe), _Wanted(asked, end, closed, warm_up))
    notes: list[str] = []
    if config.session == "regular":
        bars = await _regular(service, bars, notes)
    bars = bars.take(bars.time < end)
    most = MOST_BARS if bounds is not None else DEFAULT_BARS
    count = len(bars) if asked is None else int((bars.time >= asked).sum())
    # A shift moves the range to the past instead of making it shorter.
    bars = bars.take(slice(0, max(0, len(bars) - config.shift_left)))
    count = min(count, most, len(bars))
    if not count:
        raise NoData(
            f"{instrument}: there are no closed bars of {config.interval} in the range {config.range or 'asked for'}: "
            "choose a longer range or a shorter interval"
        )
    if bounds is not None and (note := _missing(bars, count, asked, config)) is not None:
        notes.append(note)
    return Window(bars, count, tuple(notes))


class _Wanted(NamedTuple):
    """Times as epoch seconds: where the range begins (None: anywhere) and ends, and what has closed."""

    start: int | None
    end: int
    closed: int
    warm_up: int


async def _read(service: BarService, config: ChartConfig, series: Series, wanted: _Wanted) -> Bars:
    """Returns the bars of a range and those before them, at most `MOST_BARS` of the range: others are not fetched."""
    instrument, timeframe = series.instrument, series.timeframe
    more = wanted.warm_up + config.shift_left
    is_cut = config.session == "regular" and _drops_extended(instrument, timeframe)
    if wanted.start is None:
        count = (DEFAULT_BARS if config.range is None else MOST_BARS) + more
        if config.session == "regular" and instrument.asset_class is AssetClass.STOCK and timeframe.intraday:
            count = count * _HOURS + _EXTENDED // timeframe.seconds + 1
        return await service.newest(instrument, timeframe, min(RING, count))
    start = max(wanted.start, lookback_start(instrument, timeframe, MOST_BARS, wanted.end))
    if wanted.end < wanted.closed - timeframe.seconds or is_cut:
        first = lookback_start(instrument, timeframe, more, min(start, wanted.end))
        return await service.span(series, max(0, first), min(wanted.closed, wanted.end + timeframe.seconds))
    count = -(-max(0, wanted.end - start) // timeframe.seconds) + 1
    return await service.newest(instrument, timeframe, min(RING, count + more))


def _drops_extended(instrument: Instrument, timeframe: Timeframe) -> bool:
    """Returns True if bars outside of regular hours are left out, so that more bars must be read than are shown."""
    return instrument.asset_class is AssetClass.STOCK and timeframe.seconds <= _LAST_WHOLE


def _missing(bars: Bars, count: int, asked: int | None, config: ChartConfig) -> str | None:
    """Returns why the picture begins later than the range; None if it does not."""
    first = int(bars.time[-count])
    if len(bars) >= RING or count > _NEARLY * MOST_BARS:
        return (
            f"the newest {count:,} bars of range {config.range} are drawn" if asked is None or first > asked else None
        )
    if (
        asked is not None
        and not config.shift_left
        and first - asked > max(_CLOSED, (int(bars.time[-1]) - asked) * _LATE)
    ):
        return f"there are no bars before {iso(first)}"
    return None


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
