"""The prices of a market with any number of symbols: a function of symbol and minute, so that nothing is kept in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openbell.market.bars import MINUTE, Bars, make
from openbell.market.instruments import Instrument, parse
from openbell.market.timeframes import Timeframe

Floats = npt.NDArray[np.float64]
Minutes = npt.NDArray[np.int64]
_SWING = 0.03
_NOISE = 0.001
_SHADOW = 0.0005
_VOLUME = 1e6


def symbols(count: int) -> list[Instrument]:
    """Returns that many instruments, which trade all day."""
    return [parse(f"C{number:03d}/USD") for number in range(count)]


@dataclass(frozen=True)
class Path:
    """The prices of one symbol: a wave of 3 % with a period of its own, and some noise."""

    number: int

    def closes(self, times: Minutes) -> Floats:
        minute = times // MINUTE % 100_000
        period = 90 + self.number * 37 % 510
        wave = np.sin(2 * np.pi * minute / period + self.number)
        noise = np.sin(self.number * 12.9898 + minute * 78.233) * 43758.5453 % 1 - 0.5
        rounded: Floats = np.round((50 + self.number) * (1 + _SWING * wave + _NOISE * noise), 2)
        return rounded

    def lows(self, times: Minutes) -> Floats:
        rounded: Floats = np.round(np.minimum(self.closes(times - MINUTE), self.closes(times)) * (1 - _SHADOW), 2)
        return rounded

    def highs(self, times: Minutes) -> Floats:
        rounded: Floats = np.round(np.maximum(self.closes(times - MINUTE), self.closes(times)) * (1 + _SHADOW), 2)
        return rounded

    def bars(self, instrument: Instrument, start: int, end: int) -> Bars:
        """Returns the minutes that open in [start, end)."""
        times = np.arange(-(-start // MINUTE) * MINUTE, end, MINUTE, dtype=np.int64)
        volume = np.full(len(times), _VOLUME)
        columns = (self.closes(times - MINUTE), self.highs(times), self.lows(times), self.closes(times), volume)
        return make(instrument, Timeframe.M1, times, *columns)
