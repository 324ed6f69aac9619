"""Hours and days of the simulated market: sums of its minutes, which exist for every time."""

from __future__ import annotations

from openbell.feeds.sim.minutes import minute_bars
from openbell.market.bars import Bars, empty_of, merge, resample
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe

_DAY = 86400
_PIECE = 64 * _DAY
"""Seconds of minutes that are in memory at once. No hour and no day crosses midnight UTC."""


def bars_of(series: Series, seed: int, start: int, end: int, now: float) -> Bars:
    """Returns the bars that open in [start, end) and are closed at `now`."""
    if series.timeframe is Timeframe.M1:
        return minute_bars(series.instrument, seed, start, end)
    first, last = start // _DAY * _DAY, -(-end // _DAY) * _DAY
    pieces = (
        resample(minute_bars(series.instrument, seed, at, min(at + _PIECE, last)), series.timeframe, now)
        for at in range(first, last, _PIECE)
    )
    return merge(empty_of(series), *pieces).between(start, end)
