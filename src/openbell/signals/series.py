"""Signals of a run of closed bars: indicators are computed once and read at any bar after warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Literal

import numpy as np

from openbell.indicators.averages import ema, sma
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.catalogue.bbands import bbands
from openbell.indicators.catalogue.macd import macd
from openbell.indicators.catalogue.rsi import rsi
from openbell.indicators.catalogue.vwap import vwap
from openbell.indicators.float_ties import OSCILLATOR, TOLERANCE
from openbell.market.bars import Bars, Values
from openbell.market.errors import InsufficientData
from openbell.signals.crossings import (
    NEEDED,
    OVERBOUGHT,
    OVERSOLD,
    Levels,
    Number,
    SignalCrossings,
    SignalSnapshot,
    crossed,
    find_crossings,
)

BAND = 20
"""Bars in the window of the Bollinger bands."""
HISTORY = 120
"""Bars whose widths are compared, the newest included."""
LEAST = 60
"""Widths without which the history is too short to say that a symbol is quieter than usual."""
WIDER = 0.8
"""The share of these bars whose bands must be wider: the newest width is in the lowest fifth."""


def is_squeezed(upper: Values, middle: Values, lower: Values) -> bool:
    """Returns True if the bands at the last bar are narrower than at four fifths of the last 120 bars, or have no width.

    The contract's `bb_squeeze` compares the width of the bands with 4 % of the price. A minute of a stock is nearly always
    narrower and a day of a small coin never, so that it says little about whether the symbol is quiet.
    """
    width = ((upper - lower) / middle)[-HISTORY:]
    width = width[~np.isnan(width)]
    if not len(width):
        return False
    if width[-1] <= TOLERANCE:
        return True
    return len(width) >= LEAST and float(np.mean(width > width[-1])) >= WIDER


ANCHOR_ATRS = 2.0

Trend = Literal["bullish", "bearish", "consolidating", "mixed"]


@dataclass(frozen=True, slots=True)
class RiskAnchor:
    """The stop price of a position in the trend's direction, two average true ranges from the close."""

    price: float
    type: Literal["long_stop", "short_stop"]
    distance_pct: float


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals at the latest closed bar."""

    last: SignalSnapshot
    previous: SignalSnapshot
    crossings: SignalCrossings
    trend: Trend
    anchor: RiskAnchor
    squeezed: bool
    """True if the bands are narrow for this symbol, unlike the contract's `bb_squeeze`."""


def tied(levels: Levels[Number]) -> Levels[Number]:
    """Returns levels in which numbers that are equal but for rounding are equal.

    Otherwise rounding would decide whether a price that closes exactly at a band is beyond it.
    """
    price, rsi = levels.price, levels.rsi
    for limit in (OVERSOLD, OVERBOUGHT):
        rsi = _tied(rsi, limit, OSCILLATOR)
    return Levels(
        price,
        _tied(levels.ema9, price, price),
        levels.macd,
        _tied(levels.signal, levels.macd, price),
        rsi,
        _tied(levels.bb_upper, price, price),
        levels.bb_middle,
        _tied(levels.bb_lower, price, price),
    )


def _tied(value: Number, level: Number | float, scale: Number | float) -> Number:
    """Returns the level where a value is equal to it but for rounding, else the value."""
    equal = abs(value - level) <= TOLERANCE * scale
    if isinstance(equal, np.ndarray):
        return np.where(equal, level, value)
    return level if equal else value


class SignalSeries:
    """The indicators of a run of closed bars, each computed when it is first read, at any bar after warm-up."""

    def __init__(self, bars: Bars, minutes: Bars) -> None:
        """`minutes` are the minute bars up to the same end, from which the session's VWAP is computed.

        Raises `InsufficientData` if there are fewer than `NEEDED` bars.
        """
        if len(bars) < NEEDED:
            raise InsufficientData(bars.instrument.symbol, len(bars), NEEDED)
        self.bars, self._minutes = bars, minutes

    @cached_property
    def _columns(self) -> Levels[Values]:
        close = self.bars.close
        return Levels(close, ema(close, 9), *macd(close, 12, 26, 9)[:2], rsi(close, 14), *bbands(close, BAND, 2.0))

    @cached_property
    def _ma10(self) -> Values:
        return sma(self.bars.close, 10)

    @cached_property
    def _vwap(self) -> Values:
        return vwap(self._minutes)

    def levels(self, index: int) -> Levels[float]:
        """Returns the numbers of one bar that crossings compare."""
        columns = self._columns
        return tied(Levels(*(float(getattr(columns, name)[index]) for name in Levels.__slots__)))

    def snapshot(self, index: int) -> SignalSnapshot:
        """Returns the indicator values at one bar."""
        found = self.levels(index)
        return SignalSnapshot(
            **{name: getattr(found, name) for name in Levels.__slots__},
            ma10=float(self._ma10[index]),
            hist=found.macd - found.signal,
            volume=float(self.bars.volume[index]),
            vwap=self._vwap_at(int(self.bars.time[index]) + self.bars.timeframe.seconds),
            time=int(self.bars.time[index]),
        )

    def _vwap_at(self, end: int) -> float | None:
        """Returns the session's VWAP at the end of a bar; None outside regular hours."""
        last = int(self._minutes.time.searchsorted(end)) - 1
        if last < 0 or isnan(self._vwap[last]):
            return None
        return float(self._vwap[last])

    def crossings(self, index: int) -> SignalCrossings:
        """Returns the crossings at one bar."""
        return find_crossings(self.levels(index - 1), self.levels(index))

    def last_true(self) -> dict[str, int | None]:
        """Returns for each crossing the newest bar at which it was true; None if there is none."""
        levels = tied(self._columns)
        before, after = (
            Levels(*(getattr(levels, name)[some] for name in Levels.__slots__))
            for some in (slice(None, -1), slice(1, None))
        )
        found = {name: np.flatnonzero(truths) for name, truths in crossed(before, after).items()}
        return {name: int(indexes[-1]) + 1 if len(indexes) else None for name, indexes in found.items()}

    def is_squeezed(self) -> bool:
        """Returns True if the bands are narrow for this symbol, unlike the contract's `bb_squeeze`."""
        columns = self._columns
        return is_squeezed(columns.bb_upper, columns.bb_middle, columns.bb_lower)

    def newest(self) -> Signals:
        """Returns the signals at the latest bar."""
        last = len(self.bars) - 1
        now, before = self.snapshot(last), self.snapshot(last - 1)
        crossings = find_crossings(before, now)
        squeezed = self.is_squeezed()
        trend = _trend(now, squeezed=squeezed)
        anchor = _anchor(now, trend, float(atr(self.bars, 14)[-1]))
        return Signals(now, before, crossings, trend, anchor, squeezed)


def _trend(last: SignalSnapshot, *, squeezed: bool) -> Trend:
    """Returns a trend if price, averages and MACD agree; else "consolidating" in a squeeze, "mixed" otherwise."""
    up = (last.price > last.ema9, last.ema9 > last.bb_middle, last.macd > last.signal)
    down = (last.price < last.ema9, last.ema9 < last.bb_middle, last.macd < last.signal)
    if all(up):
        return "bullish"
    if all(down):
        return "bearish"
    return "consolidating" if squeezed else "mixed"


def _anchor(last: SignalSnapshot, trend: Trend, reach: float) -> RiskAnchor:
    """Returns the stop below the price, or above it in a bearish trend."""
    short = trend == "bearish"
    # A wide range can reach below 0, where no price is.
    distance = ANCHOR_ATRS * reach if short else min(ANCHOR_ATRS * reach, last.price)
    price = last.price + distance if short else last.price - distance
    return RiskAnchor(price, "short_stop" if short else "long_stop", 100.0 * distance / last.price)
