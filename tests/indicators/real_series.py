"""The series on which indicators are compared with their references: real prices, a random walk and adversarial ones."""

from __future__ import annotations

from functools import cache

import numpy as np

from openbell.market.bars import Bars, make
from openbell.market.instruments import Instrument
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from tests.desk.importing.test_real_files import RealFile, bars_of
from tests.market.walks import CRYPTO, at, walk

GOOG = RealFile("backtesting", "test/GOOG.csv", "GOOG", "1d", "pandas")
EURUSD = RealFile("backtesting", "test/EURUSD.csv", "EUR/USD", "1h", "pandas")
REAL = ("GOOG", "EURUSD")
EVERY = (*REAL, "walk", "ticks", "penny", "halt")
HALT = slice(200, 260)
"""The bars of the series `halt` at which the price stands still and nothing is traded."""


def hours(count: int) -> Times:
    return np.arange(count, dtype=np.int64) * 3600 + at("2025-03-03T00:00Z")


def in_steps(bars: Bars, step: float, instrument: Instrument = CRYPTO) -> Bars:
    """The bars with every price on a coarse grid and every volume whole, so that equal values are frequent."""
    prices = [np.round(column / step) * step for column in bars.columns()[1:5]]
    return make(instrument, bars.timeframe, bars.time, *prices, np.round(bars.volume))


def halted(bars: Bars) -> Bars:
    """The bars with a halt in the middle: nothing is traded, then the price jumps."""
    prices = [column.copy() for column in bars.columns()[1:5]]
    for column in prices:
        column[HALT] = bars.close[HALT.start - 1]
        column[HALT.stop :] *= 1.5
    volume = bars.volume.copy()
    volume[HALT] = 0.0
    return make(bars.instrument, bars.timeframe, bars.time, *prices, volume)


@cache
def series() -> dict[str, Bars]:
    """All series by name; skips the test if the real prices cannot be fetched."""
    hourly = Timeframe.H1
    return {
        "GOOG": bars_of(GOOG).tail(500),
        # In these hours typical prices are equal (at 597) and moves up and down too (at 1157), but not as floats.
        "EURUSD": bars_of(EURUSD).take(slice(560, 1210)),
        "walk": walk(hours(260), 7, timeframe=hourly, price=54321.0, step=0.01),
        "ticks": in_steps(walk(hours(300), 8, timeframe=hourly, price=20.0, step=0.004), 0.1),
        "penny": walk(hours(260), 9, timeframe=hourly, price=0.0000123, step=0.05),
        "halt": halted(walk(hours(330), 10, timeframe=hourly, price=187.3, step=0.01)),
    }
