"""The indicator values of one closed bar, and the crossings that the chart-signals contract defines on two bars.

Does not import numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

NEEDED = 35
"""Closed bars: 34 for the first value of the MACD signal line, and one more to detect a crossing."""
OVERBOUGHT, OVERSOLD = 70.0, 30.0
SQUEEZE = 0.04


@dataclass(frozen=True, slots=True)
class Levels:
    """The numbers of one closed bar that crossings compare."""

    price: float
    ema9: float
    macd: float
    signal: float
    rsi: float
    bb_upper: float
    bb_middle: float
    bb_lower: float


@dataclass(frozen=True, slots=True)
class Snapshot(Levels):
    """All indicators at one closed bar; `time` is its open."""

    ma10: float
    hist: float
    volume: float
    vwap: float | None
    time: int


@dataclass(frozen=True, slots=True)
class Crossings:
    """The nine crossings of the contract, in its order."""

    macd_cross_up: bool
    macd_cross_dn: bool
    ema_support_lost: bool
    ema_reclaim: bool
    rsi_overbought: bool
    rsi_oversold: bool
    bb_squeeze: bool
    bb_breakout_up: bool
    bb_breakout_dn: bool

    def table(self) -> dict[str, bool]:
        """Returns all crossings by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def true(self) -> list[str]:
        """Returns the names of the crossings that are true."""
        return [name for name in self.__slots__ if getattr(self, name)]


def find_crossings(prev: Levels, last: Levels) -> Crossings:
    """Returns the crossings at bar `last`, by the contract's formulas."""
    return Crossings(
        macd_cross_up=prev.macd <= prev.signal and last.macd > last.signal,
        macd_cross_dn=prev.macd >= prev.signal and last.macd < last.signal,
        ema_support_lost=prev.price >= prev.ema9 and last.price < last.ema9,
        ema_reclaim=prev.price <= prev.ema9 and last.price > last.ema9,
        rsi_overbought=last.rsi >= OVERBOUGHT,
        rsi_oversold=last.rsi <= OVERSOLD,
        bb_squeeze=(last.bb_upper - last.bb_lower) / last.bb_middle < SQUEEZE,
        bb_breakout_up=last.price > last.bb_upper,
        bb_breakout_dn=last.price < last.bb_lower,
    )
