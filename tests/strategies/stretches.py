"""Fixed stretches of bars, the same in every run: the simulator's, a random walk, and prices that do not move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf

import numpy as np

from openbell.feeds.sim.bars import bars_of
from openbell.indicators.regular_hours import regular_part_from_minutes
from openbell.market.bars import Bars, make, resample
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from tests.strategies.specs import walk

_SEED, _DAY = 7, 86400
_END = 1_757_894_400
"""2025-09-15, midnight UTC."""


@dataclass(frozen=True)
class Stretch:
    """Bars, and the regular-hours part of each; None if it can be derived from the bars."""

    bars: Bars
    regular: Bars | None = None

    def take(self, rows: slice) -> Stretch:
        return Stretch(self.bars.take(rows), None if self.regular is None else self.regular.take(rows))


@cache
def simulated(symbol: str, timeframe: Timeframe, days: int) -> Stretch:
    """The simulator's bars of the last days before `_END`, closed at that time."""
    return Stretch(bars_of(Series(parse(symbol), timeframe), _SEED, _END - days * _DAY, _END, _END))


@cache
def stock_hours(days: int) -> Stretch:
    """Hours of a stock with the time before and after regular hours; the first and the last hour are partly regular."""
    minutes = simulated("AAPL", Timeframe.M1, days).bars
    hours = resample(minutes, Timeframe.H1, inf)
    return Stretch(hours, regular_part_from_minutes(hours, minutes))


@cache
def crypto_walk() -> Stretch:
    return Stretch(walk(21, 500))


@cache
def flat(symbol: str, timeframe: Timeframe) -> Stretch:
    times = simulated(symbol, timeframe, 500 if timeframe is Timeframe.D1 else 20).bars.time
    price, volume = np.full(len(times), 100.1), np.full(len(times), 7.0)
    return Stretch(make(parse(symbol), timeframe, times, price, price, price, price, volume))
