"""Signals of a run of closed bars: indicators are computed once and read at any bar after warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Literal

from openbell.indicators.averages import ema, sma
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.catalogue.bbands import bbands
from openbell.indicators.catalogue.macd import macd
from openbell.indicators.catalogue.rsi import rsi
from openbell.indicators.catalogue.vwap import vwap
from openbell.indicators.ties import OSCILLATOR, TOLERANCE
from openbell.market.bars import Bars
from openbell.market.errors import InsufficientData
from openbell.signals.crossings import NEEDED, OVERBOUGHT, OVERSOLD, Crossings, Levels, Snapshot, find_crossings
from openbell.signals.reading import Columns, last_true

ANCHOR_ATRS = 2.0
_BAND = 20
"""Bars in the window of the Bollinger bands."""

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

    last: Snapshot
    previous: Snapshot
    crossings: Crossings
    trend: Trend
    anchor: RiskAnchor


@dataclass(frozen=True, slots=True)
class Overview:
    """What a watchlist shows of the newest closed bar; `time` is its open."""

    price: float
    rsi: float
    crossings: Crossings
    time: int


def tied(
    price: float,
    average: float,
    line: float,
    trigger: float,
    strength: float,
    upper: float,
    middle: float,
    lower: float,
) -> tuple[float, ...]:
    """The numbers that crossings compare; numbers that are equal but for rounding become equal.

    Otherwise rounding would decide whether a price that closes exactly at a band is beyond it.
    """
    average, upper, lower = (price if _equal(level, price, price) else level for level in (average, upper, lower))
    trigger = line if _equal(trigger, line, price) else trigger
    strength = next((level for level in (OVERBOUGHT, OVERSOLD) if _equal(strength, level, OSCILLATOR)), strength)
    return price, average, line, trigger, strength, upper, middle, lower


def _equal(value: float, other: float, scale: float) -> bool:
    return abs(value - other) <= TOLERANCE * scale


def overview(bars: Bars) -> Overview:
    """Price, RSI and crossings of the newest bar: the values of `SignalSeries.newest`, bit for bit, in a tenth of its time.

    Averages that remember every bar are computed on all of them, the bands on the bars that their last two windows hold.
    """
    if len(bars) < NEEDED:
        raise InsufficientData(bars.instrument.symbol, len(bars), NEEDED)
    close = bars.close
    line, trigger, _ = macd(close, 12, 26, 9)
    columns = (close, ema(close, 9), line, trigger, rsi(close, 14), *bbands(close[-_BAND - 1 :], _BAND, 2.0))
    before, last = (Levels(*tied(*(float(column[index]) for column in columns))) for index in (-2, -1))
    return Overview(last.price, last.rsi, find_crossings(before, last), int(bars.time[-1]))


class SignalSeries:
    """The indicators of a run of closed bars, computed once and read at any bar after warm-up."""

    def __init__(self, bars: Bars, minutes: Bars) -> None:
        """`minutes` are the minute bars up to the same end, from which the session's VWAP is computed.

        Raises `InsufficientData` if there are fewer than `NEEDED` bars.
        """
        if len(bars) < NEEDED:
            raise InsufficientData(bars.instrument.symbol, len(bars), NEEDED)
        close = bars.close
        self.bars = bars
        self._minutes = minutes.time
        self._vwap = vwap(minutes)
        self._macd = macd(close, 12, 26, 9)
        self._bands = bbands(close, _BAND, 2.0)
        self._ema9, self._ma10, self._rsi = ema(close, 9), sma(close, 10), rsi(close, 14)

    def snapshot(self, index: int) -> Snapshot:
        """Returns the indicator values at one bar."""
        columns = (self.bars.close, self._ema9, *self._macd[:2], self._rsi, *self._bands)
        price, average, line, trigger, strength, upper, middle, lower = tied(*(float(each[index]) for each in columns))
        return Snapshot(
            price=price,
            ema9=average,
            ma10=float(self._ma10[index]),
            macd=line,
            signal=trigger,
            hist=line - trigger,
            rsi=strength,
            bb_upper=upper,
            bb_middle=middle,
            bb_lower=lower,
            volume=float(self.bars.volume[index]),
            vwap=self._vwap_at(int(self.bars.time[index]) + self.bars.timeframe.seconds),
            time=int(self.bars.time[index]),
        )

    def _vwap_at(self, end: int) -> float | None:
        """Returns the session's VWAP at the end of a bar; None outside regular hours."""
        last = int(self._minutes.searchsorted(end)) - 1
        if last < 0 or isnan(self._vwap[last]):
            return None
        return float(self._vwap[last])

    def crossings(self, index: int) -> Crossings:
        """Returns the crossings at one bar."""
        return find_crossings(self.snapshot(index - 1), self.snapshot(index))

    def last_true(self) -> dict[str, int | None]:
        """Returns for each crossing the newest bar at which it was true; None if there is none."""
        return last_true(Columns(self.bars.close, self._ema9, *self._macd[:2], self._rsi, *self._bands))

    def newest(self) -> Signals:
        """Returns the signals at the latest bar."""
        last = len(self.bars) - 1
        now, before = self.snapshot(last), self.snapshot(last - 1)
        crossings = find_crossings(before, now)
        trend = _trend(now, crossings)
        return Signals(now, before, crossings, trend, _anchor(now, trend, float(atr(self.bars, 14)[-1])))


def _trend(last: Snapshot, crossings: Crossings) -> Trend:
    """Returns a trend if price, averages and MACD agree; else "consolidating" in a squeeze, "mixed" otherwise."""
    up = (last.price > last.ema9, last.ema9 > last.bb_middle, last.macd > last.signal)
    down = (last.price < last.ema9, last.ema9 < last.bb_middle, last.macd < last.signal)
    if all(up):
        return "bullish"
    if all(down):
        return "bearish"
    return "consolidating" if crossings.bb_squeeze else "mixed"


def _anchor(last: Snapshot, trend: Trend, reach: float) -> RiskAnchor:
    """Returns the stop below the price, or above it in a bearish trend."""
    short = trend == "bearish"
    # A wide range can reach below 0, where no price is.
    distance = ANCHOR_ATRS * reach if short else min(ANCHOR_ATRS * reach, last.price)
    price = last.price + distance if short else last.price - distance
    return RiskAnchor(price, "short_stop" if short else "long_stop", 100.0 * distance / last.price)
