"""Sample bars that depend only on time and version, so that any process knows the expected values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Bars, make
from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe

LIVE = Source(Origin.LIVE, "alpaca")
FILE = Source(Origin.IMPORTED, "csv")

MINUTE = 60
DAY = 86400
EVER = 2**40
"""Later than every bar."""
MANY = 2500
"""The number of bars in a large write."""


def at(text: str) -> int:
    """Epoch seconds of an ISO time."""
    return int(parse_time(text))


SEPTEMBER, OCTOBER, NOVEMBER = at("2025-09-01"), at("2025-10-01"), at("2025-11-01")


def minutes_of(symbol: str) -> Series:
    """The minutes of a symbol."""
    return Series(parse(symbol))


def bars(symbol: str | Series, times: npt.ArrayLike, version: int = 0) -> Bars:
    """Bars at the given times; each version has other prices."""
    series = minutes_of(symbol) if isinstance(symbol, str) else symbol
    instrument = series.instrument
    time: Times = np.asarray(times, dtype=np.int64)
    seed = sum(map(ord, instrument.symbol)) * 1_000_003 + version
    a, b, c, d = (_fractions(time, seed * 8 + lane) for lane in range(4))
    opened, closed = 10 + 90 * a, 10 + 90 * b
    high, low = np.maximum(opened, closed) + c, np.minimum(opened, closed) - d
    return make(instrument, series.timeframe, time, opened, high, low, closed, 1e4 * c * d)


def run(symbol: str | Series, start: int, count: int, version: int = 0) -> Bars:
    """`count` consecutive minutes."""
    return bars(symbol, start + MINUTE * np.arange(count), version)


def _fractions(time: Times, seed: int) -> npt.NDArray[np.float64]:
    """Uniform in [0, 1): splitmix64 of minute and seed."""
    word = (time // MINUTE).astype(np.uint64) + np.uint64(seed * (2**40 + 15) % 2**64)
    word = word * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((word ^ (word >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def bits(some: Bars) -> list[bytes]:
    """The bytes of every column."""
    return [column.tobytes() for column in some.columns()]


def sparse(symbol: str, start: int, end: int, version: int = 1) -> Bars:
    """Minutes with single ones and whole hours missing."""
    time = np.arange(start, end, MINUTE)
    chance = np.random.default_rng(version)
    keep = (chance.random(len(time)) < 0.7) & ((time // 7200) % 3 != version % 3)
    whole = run(symbol, start, len(time), version)
    return whole.take(keep)


START, END = at("2019-12-20"), at("2020-02-10")
"""Around the end of a year and of a month."""


def whole(symbol: str, timeframe: Timeframe, version: int = 0, start: int = START, end: int = END) -> Bars:
    """Every bar of a series between two times."""
    series = Series(parse(symbol), timeframe)
    times, _ = buckets(series.instrument, timeframe, start, end)
    return bars(series, times, version)
