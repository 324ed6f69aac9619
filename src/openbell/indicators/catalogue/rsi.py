"""Wilder's relative strength index. Prices that do not move are neither strong nor weak: 50."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.averages import wilder
from openbell.indicators.channels import Channels, Direction, Line, Signal
from openbell.indicators.running import wilder as running_wilder
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars, Values

OVERBOUGHT, OVERSOLD = 70.0, 30.0


def rsi(close: Values, length: int) -> Values:
    """0 to 100, NaN for the first `length` bars."""
    change = np.diff(close, prepend=np.nan)
    gain = wilder(np.maximum(change, 0.0), length)
    loss = wilder(np.maximum(-change, 0.0), length)
    moved = gain + loss
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(moved == 0.0, 50.0, 100.0 * (gain / moved))


def _compute(bars: Bars, length: int) -> Channels:
    values = rsi(bars.close, length)
    return Channels(
        lines=(Line("RSI", values),),
        signals=_signals(values),
        hlines=(OVERSOLD, OVERBOUGHT),
        y_range=(0.0, 100.0),
    )


def _signals(values: Values) -> tuple[Signal, ...]:
    """A dot at the bar at which a level becomes true."""
    found = []
    for label, inside in (("rsi_overbought", values >= OVERBOUGHT), ("rsi_oversold", values <= OVERSOLD)):
        entered = inside & ~np.concatenate(([False], inside[:-1]))
        found += [Signal(int(at), float(values[at]), label) for at in np.flatnonzero(entered)]
    return tuple(sorted(found, key=lambda signal: signal.index))


class _Stream:
    def __init__(self, length: int) -> None:
        self._gain = running_wilder(length)
        self._loss = running_wilder(length)
        self._close = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        change, self._close = bar.close - self._close, bar.close
        if isnan(change):
            return (nan,)
        gain = self._gain.update(max(change, 0.0))
        loss = self._loss.update(max(-change, 0.0))
        moved = gain + loss
        return (50.0 if moved == 0.0 else 100.0 * (gain / moved),)


INDICATOR = Indicator(
    name="rsi",
    title="RSI",
    description="Wilder's relative strength index of the close",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 14, 1, 500),),
    signals={"rsi_overbought": Direction.DOWN, "rsi_oversold": Direction.UP},
)
