"""The bars of the simulated market: minutes from paths, hours and days as sums of them, and how many bars there are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from openbell.feeds.sim.days import DAY, MinuteRows, days_between
from openbell.feeds.sim.noise import lane, salt, words
from openbell.feeds.sim.paths import Path, trace
from openbell.feeds.sim.universe import LISTINGS, SimulatedSymbol
from openbell.market import bars as barlib
from openbell.market.bars import COLUMNS, Bars, Values, empty, empty_of, merge, resample
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day
from openbell.market.trading_time import most_bars

_CHUNK = 32
"""The number of days that are computed at once: enough for numpy, few enough for the processor's cache."""

_COIN_DECIMALS = 4
_SMALLEST = {AssetClass.STOCK: 1.0, AssetClass.FOREX: 1.0, AssetClass.CRYPTO: 0.0001}
_WEEK = 604800
_SATURDAY = 172800  # 1970-01-03
_PIECE = 3 * _WEEK
"""Seconds of minutes that are in memory at once. No hour, and no day but that of forex, crosses midnight UTC; no day of
forex crosses the first minute of Saturday."""
_MONDAY = 345600
_KEPT_COUNTS = 512
_past_counts: dict[tuple[Instrument, int, Timeframe, int, int], int] = {}
"""Counts from a start to the start of a UTC week. Threads count at once: a count that two of them make is the same."""


def minute_bars(instrument: Instrument, seed: int, start: int, end: int) -> Bars:
    """Returns the bars that open in [start, end), independent of the clock."""
    if start >= end:
        return empty(instrument)
    day = start // DAY
    if end <= (day + 1) * DAY:
        return _day(instrument, seed, day).between(start, end).copy()
    return _compute(instrument, seed, start, end)


@lru_cache(maxsize=64)
def _day(instrument: Instrument, seed: int, day: int) -> Bars:
    """Returns one UTC day. Cached, because a stream reads single minutes and one minute takes as long as a day."""
    return _compute(instrument, seed, day * DAY, (day + 1) * DAY)


def _compute(instrument: Instrument, seed: int, start: int, end: int) -> Bars:
    days = days_between(instrument.asset_class, start, end)
    rows = [days.take(slice(at, at + _CHUNK)) for at in range(0, len(days), _CHUNK)]
    chunks = [_chunk(instrument, seed, some, start, end) for some in rows]
    if not chunks:
        return empty(instrument)
    columns = (np.concatenate([chunk[n] for chunk in chunks]) for n in range(len(COLUMNS)))
    return Bars(instrument, Timeframe.M1, *columns)


def _chunk(
    instrument: Instrument, seed: int, days: MinuteRows, start: int, end: int
) -> tuple[npt.NDArray[np.generic], ...]:
    listing = LISTINGS[instrument]
    path = trace(listing, instrument.asset_class, seed, days)
    word = words(salt(seed, f"{listing.symbol}: trades"), path.minute)
    high, low = _extremes(path, lane(word, 0), lane(word, 1))
    volume = _volume(listing, instrument.asset_class, path, lane(word, 2) + lane(word, 3))
    time = path.minute * 60
    kept = traded(listing, seed, days, path.minute)
    kept &= (time >= start) & (time < end)
    prices = (np.round(price[kept], listing.decimals) for price in (path.open, high, low, path.close))
    return time[kept], *prices, volume[kept]


def _extremes(path: Path, up: Values, down: Values) -> tuple[Values, Values]:
    """Returns the highs and lows between open and close. `up` and `down` are random in (0, 1).

    The maximum of a random walk between two known ends has the law √(move² + 2 σ² × exponential). Here a fraction
    approximates the logarithm and limits the exponential to 2.5. It is always positive, so open and close are inside.
    """
    move = path.close - path.open
    move *= move
    variance = path.deviation * path.open
    variance *= 2 * variance

    def reach(chance: Values) -> Values:
        far = chance * (6 - chance)
        far /= 6 - 4 * chance
        far *= variance
        far += move
        np.sqrt(far, out=far)
        far *= 0.5
        return far

    middle = 0.5 * (path.close + path.open)
    return middle + reach(up), middle - reach(down)


def _volume(listing: SimulatedSymbol, asset_class: AssetClass, path: Path, chance: Values) -> Values:
    """Returns the volumes: higher in active hours and when the price moves. `chance` is random in (0, 2)."""
    volume = np.abs(path.close - path.open)
    volume /= path.deviation * path.open + listing.anchor * 1e-12  # closed minutes have no deviation
    volume *= 0.6
    volume += 0.5
    volume *= path.activity
    chance *= chance
    chance += 0.15
    volume *= chance
    volume *= 0.9 * listing.volume
    decimals = _COIN_DECIMALS if asset_class is AssetClass.CRYPTO else 0
    return np.maximum(np.round(volume, decimals), _SMALLEST[asset_class])


def traded(listing: SimulatedSymbol, seed: int, days: MinuteRows, minute: Times) -> npt.NDArray[np.bool_]:
    """Returns which minutes have a bar: the market is open and, in extended hours, the symbol is traded."""
    traded = days.variance() > 0
    if listing.extended < 1:
        chance = lane(words(salt(seed, f"{listing.symbol}: extended hours"), minute), 0)
        traded &= days.regular() | (chance < listing.extended)
    return traded


def bars_of(series: Series, seed: int, start: int, end: int, now: float) -> Bars:
    """Returns the bars that open in [start, end) and are closed at `now`."""
    if series.timeframe is Timeframe.M1:
        return minute_bars(series.instrument, seed, start, end)
    unit = _WEEK if by_trading_day(series.instrument, series.timeframe) else DAY
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


def bar_count(instrument: Instrument, seed: int, timeframe: Timeframe, start: int, end: int) -> int:
    """Returns the number of bars that open in [start, end) and close by `end`. `start` is the start of a bucket.

    The count up to the last end of a UTC week is kept. A longer bar that spans it is counted with the minutes after it.
    """
    if start >= end:
        return 0
    if instrument.asset_class is AssetClass.CRYPTO:  # every minute has a bar
        return most_bars(instrument, timeframe, start, end)
    monday = _week_start(end)
    if monday <= start:
        return _count(instrument, seed, timeframe, start, end)
    key = instrument, seed, timeframe, start, monday
    if (past := _past_counts.get(key)) is None:
        if len(_past_counts) >= _KEPT_COUNTS:
            _past_counts.clear()
        past = _past_counts[key] = _count(*key)
    return past + _count(instrument, seed, timeframe, monday, end)


def is_counted(instrument: Instrument, seed: int, timeframe: Timeframe, start: int, end: int) -> bool:
    """Returns True if `bar_count` has to count no more than the minutes of a week."""
    monday = _week_start(end)
    is_short = monday <= start or instrument.asset_class is AssetClass.CRYPTO
    return is_short or (instrument, seed, timeframe, start, monday) in _past_counts


def _week_start(time: int) -> int:
    return time - (time - _MONDAY) % _WEEK


def _count(instrument: Instrument, seed: int, timeframe: Timeframe, start: int, end: int) -> int:
    return barlib.count(instrument, timeframe, _traded_minutes(instrument, seed, start, end), end)


def _traded_minutes(instrument: Instrument, seed: int, start: int, end: int) -> Times:
    """Returns the open times of the minutes that have a bar."""
    days = days_between(instrument.asset_class, start, end)
    if not len(days):
        return empty(instrument).time
    minute = days.minutes()
    time: Times = minute[traded(LISTINGS[instrument], seed, days, minute)] * 60
    return time[(time >= start) & (time < end)]
