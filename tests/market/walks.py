"""Bars for tests: random walks on given times."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Bars, Values, make
from openbell.market.clock import parse_time
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import trading_days_between

STOCK = parse("AAPL")
CRYPTO = parse("BTC/USD")
FOREX = parse("EUR/USD")
MINUTE = 60
DAY = 86400


def at(text: str) -> int:
    """Returns the epoch seconds of an ISO 8601 time."""
    return int(parse_time(text))


def minutes(start: str | int, end: str | int) -> npt.NDArray[np.int64]:
    """Returns all minutes of [start, end)."""
    first, last = (at(time) if isinstance(time, str) else time for time in (start, end))
    return np.arange(first, last, MINUTE, dtype=np.int64)


def walk(
    times: npt.ArrayLike,
    seed: int = 1,
    instrument: Instrument = CRYPTO,
    timeframe: Timeframe = Timeframe.M1,
    price: float = 100.0,
    step: float = 0.002,
) -> Bars:
    """Returns a random walk with one possible bar for each time."""
    time = np.asarray(times, dtype=np.int64)
    random = np.random.default_rng(seed)
    close: Values = price * np.exp(np.cumsum(random.normal(0.0, step, len(time))))
    opened = close * np.exp(random.normal(0.0, step / 2, len(time)))
    high = np.maximum(opened, close) * (1 + np.abs(random.normal(0.0, step / 2, len(time))))
    low = np.minimum(opened, close) * (1 - np.abs(random.normal(0.0, step / 2, len(time))))
    volume = random.uniform(0.5, 1000.0, len(time))
    return make(instrument, timeframe, time, opened, high, low, close, volume)


def closes(values: npt.ArrayLike, instrument: Instrument = CRYPTO, timeframe: Timeframe = Timeframe.M1) -> Bars:
    """Returns bars from midnight on whose open, high and low equal the given closes."""
    close = np.asarray(values, dtype=np.float64)
    time = at("2025-03-04T00:00Z") + np.arange(len(close)) * timeframe.seconds
    return make(instrument, timeframe, time, close, close, close, close, np.ones(len(close)))


def trading_day(instrument: Instrument, times: Times) -> Times:
    """Returns a number for each minute that is equal for all minutes of a trading day; −1 outside all trading days."""
    if instrument.asset_class is AssetClass.CRYPTO:
        return times // 86400
    if not len(times):
        return times.copy()
    return trading_days_between(instrument, int(times[0]), int(times[-1])).regular(times)
