"""Hours and days of the simulated market: sums of its minutes, which exist for every time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from openbell.feeds.sim.minutes import minute_bars
from openbell.market.bars import Bars, empty_of, merge, resample
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day

_DAY, _WEEK = 86400, 604800
_SATURDAY = 172800  # 1970-01-03
_PIECE = 3 * _WEEK
"""Seconds of minutes that are in memory at once. No hour, and no day but that of forex, crosses midnight UTC; no day of
forex crosses the first minute of Saturday."""


def bars_of(series: Series, seed: int, start: int, end: int, now: float) -> Bars:
    """Returns the bars that open in [start, end) and are closed at `now`."""
    if series.timeframe is Timeframe.M1:
        return minute_bars(series.instrument, seed, start, end)
    unit = _WEEK if by_trading_day(series.instrument, series.timeframe) else _DAY
    first, last = start - (start - _SATURDAY) % unit, end + (_SATURDAY - end) % unit
    return merge(empty_of(series), *_pieces(series, seed, first, last, now)).between(start, end).copy()


def _pieces(series: Series, seed: int, first: int, last: int, now: float) -> Iterator[Bars]:
    for at in range(first - (first - _SATURDAY) % _PIECE, last, _PIECE):
        if first <= at and at + _PIECE <= min(last, now):
            yield _whole_piece(series, seed, at)
        else:
            minutes = minute_bars(series.instrument, seed, max(first, at), min(at + _PIECE, last))
            yield resample(minutes, series.timeframe, now)


@lru_cache(maxsize=256)
def _whole_piece(series: Series, seed: int, at: int) -> Bars:
    """Cached, because a desk that stores nothing asks for the same bars at every call: 24 KB of hours."""
    end = at + _PIECE
    return resample(minute_bars(series.instrument, seed, at, end), series.timeframe, end)
