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
from openbell.market.clock import iso
from openbell.market.errors import NoData
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span

DEFAULT_BARS = 200
"""The bars of a chart without a range."""
_CLOSED = 5 * 86400
"""Seconds for which a market may be closed."""
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
    """Returns the closed bars of a config's range, and `warm_up` bars before them. Raises `NoData` if none are shown."""
    closed = service.closed_until()
    bounds = bounds_of(config.range, datetime.fromtimestamp(service.clock.epoch(), UTC)) if config.range else None
    asked = None if bounds is None or bounds.start is None else int(bounds.start.timestamp())
    end = closed if bounds is None else min(closed, int(bounds.end.timestamp()))
    start = asked
    if bounds is not None:
        # Of a longer range the newest bars are shown: the others must not be fetched.
        start = max(asked or 0, lookback_start(instrument, timeframe, MOST_BARS + config.shift_left, end))
    if end < closed - timeframe.seconds:
        first = lookback_start(instrument, timeframe, warm_up + config.shift_left, min(start or end, end))
        bars = await service.span(Series(instrument, timeframe), max(0, first), end)
    else:
        count = DEFAULT_BARS if start is None else -(-max(0, end - start) // timeframe.seconds) + 1
        bars = await service.newest(instrument, timeframe, min(RING, count + config.shift_left) + warm_up)
    notes: list[str] = []
    if config.session == "regular":
        bars = await _regular(service, bars, notes)
    bars = bars.take(slice(0, max(0, len(bars) - config.shift_left)))
    count = min(DEFAULT_BARS, len(bars)) if start is None else int((bars.time >= start).sum())
    if not count:
        raise NoData(
            f"{instrument}: there are no closed bars of {config.interval} in the range {config.range or '(newest)'}"
        )
    if asked is not None and (note := _missing(bars, count, asked, start)) is not None:
        notes.append(note)
    return Window(bars, min(count, MOST_BARS), tuple(notes))


def _missing(bars: Bars, count: int, asked: int, start: int | None) -> str | None:
    """Returns why the picture begins later than the range; None if it does not."""
    if count > MOST_BARS or (start or 0) > asked:
        return f"the range has more than {MOST_BARS:,} bars: the newest are drawn"
    first = int(bars.time[-count])
    late = first - asked
    span = int(bars.time[-1]) - asked
    if late > max(_CLOSED, span * _LATE):
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
