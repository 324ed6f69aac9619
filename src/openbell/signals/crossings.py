"""The indicator values of closed bars, in words too, and the crossings that the chart-signals contract defines on two bars.

Does not import numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from openbell.market.instruments import AssetClass

if TYPE_CHECKING:
    from openbell.market.bars import Values


Number = TypeVar("Number", float, "Values")

NEEDED = 35
"""Closed bars: 34 for the first value of the MACD signal line, and one more to detect a crossing."""
OVERBOUGHT, OVERSOLD = 70.0, 30.0
SQUEEZE = 0.04
NOT_COVERED: Mapping[AssetClass, str] = {
    AssetClass.FOREX: "signals cover stocks and crypto; for currencies use get_indicators of chartgen or get_candles of "
    "market-data"
}
"""The classes of instruments that signals do not cover: what an error says of a symbol of such a class."""


@dataclass(frozen=True, slots=True)
class Levels(Generic[Number]):
    """The numbers that crossings compare: of one closed bar, or of many as arrays."""

    price: Number
    ema9: Number
    macd: Number
    signal: Number
    rsi: Number
    bb_upper: Number
    bb_middle: Number
    bb_lower: Number


@dataclass(frozen=True, slots=True)
class SignalSnapshot(Levels[float]):
    """All indicators at one closed bar; `time` is its open."""

    ma10: float
    hist: float
    volume: float
    vwap: float | None
    time: int


@dataclass(frozen=True, slots=True)
class SignalCrossings:
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


def find_crossings(prev: Levels[float], last: Levels[float]) -> SignalCrossings:
    """Returns the crossings at bar `last`."""
    return SignalCrossings(**crossed(prev, last))


def crossed(prev: Levels[Number], last: Levels[Number]) -> dict[str, Any]:
    """Returns by the contract's formulas which crossings are true at bars `last`; `prev` are the bars before them."""
    return {
        "macd_cross_up": (prev.macd <= prev.signal) & (last.macd > last.signal),
        "macd_cross_dn": (prev.macd >= prev.signal) & (last.macd < last.signal),
        "ema_support_lost": (prev.price >= prev.ema9) & (last.price < last.ema9),
        "ema_reclaim": (prev.price <= prev.ema9) & (last.price > last.ema9),
        "rsi_overbought": last.rsi >= OVERBOUGHT,
        "rsi_oversold": last.rsi <= OVERSOLD,
        "bb_squeeze": (last.bb_upper - last.bb_lower) / last.bb_middle < SQUEEZE,
        "bb_breakout_up": last.price > last.bb_upper,
        "bb_breakout_dn": last.price < last.bb_lower,
    }


@dataclass(frozen=True, slots=True)
class SignalReading:
    """What the numbers of one bar mean."""

    rsi: Literal["overbought", "oversold", "neutral"]
    macd: Literal["above signal", "below signal", "at signal"]
    bollinger: Literal["above upper", "inside", "below lower"]
    price_vs_ema9_pct: float
    bb_position_pct: float | None
    """Of the close between the lower band (0) and the upper one (100); None if the bands are equal."""


def read(last: SignalSnapshot) -> SignalReading:
    """Returns what a snapshot means, by the limits of the crossings."""
    width = last.bb_upper - last.bb_lower
    return SignalReading(
        "overbought" if last.rsi >= OVERBOUGHT else "oversold" if last.rsi <= OVERSOLD else "neutral",
        "above signal" if last.macd > last.signal else "below signal" if last.macd < last.signal else "at signal",
        "above upper" if last.price > last.bb_upper else "below lower" if last.price < last.bb_lower else "inside",
        100 * (last.price / last.ema9 - 1),
        100 * (last.price - last.bb_lower) / width if width > 0 else None,
    )
