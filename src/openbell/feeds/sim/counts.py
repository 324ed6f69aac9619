"""Counts the bars of the simulated market from its trading hours, without computing prices."""

from __future__ import annotations

from functools import lru_cache

from openbell.feeds.sim.days import days_between
from openbell.feeds.sim.minutes import traded
from openbell.feeds.sim.universe import LISTINGS
from openbell.market import bars as barlib
from openbell.market.bars import empty
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_time import most_bars

_WEEK, _MONDAY = 604800, 345600


def bar_count(instrument: Instrument, seed: int, timeframe: Timeframe, start: int, end: int) -> int:
    """Returns the number of bars that open in [start, end) and close by `end`. `start` is the start of a bucket.

    The count up to the last end of a UTC week is cached. A longer bar that spans it is counted with the minutes after it.
    """
    if instrument.asset_class is AssetClass.CRYPTO:  # every minute has a bar
        return most_bars(instrument, timeframe, start, end)
    monday = end - (end - _MONDAY) % _WEEK
    if monday <= start:
        return _count(instrument, seed, timeframe, start, end)
    past = _cached_count(instrument, seed, timeframe, start, monday)
    return past + _count(instrument, seed, timeframe, monday, end)


def _count(instrument: Instrument, seed: int, timeframe: Timeframe, start: int, end: int) -> int:
    return barlib.count(instrument, timeframe, _traded_minutes(instrument, seed, start, end), end)


_cached_count = lru_cache(maxsize=512)(_count)


def _traded_minutes(instrument: Instrument, seed: int, start: int, end: int) -> Times:
    """Returns the open times of the minutes that have a bar."""
    days = days_between(instrument.asset_class, start, end)
    if not len(days):
        return empty(instrument).time
    minute = days.minutes()
    time: Times = minute[traded(LISTINGS[instrument], seed, days, minute)] * 60
    return time[(time >= start) & (time < end)]
