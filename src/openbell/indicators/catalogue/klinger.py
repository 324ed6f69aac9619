"""Klinger's volume oscillator in TradingView's form: volume with the sign of the typical price's change."""

from __future__ import annotations

from math import nan

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.exact_averages import ema as running_ema
from openbell.indicators.line_pairs import LinePair, Unit
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ties import at_least
from openbell.market.bars import Bars, Values


def signed_volume(bars: Bars) -> Values:
    """Volume, negative where the typical price fell and, as in TradingView, at the first bar, which has no change."""
    price = (bars.high + bars.low + bars.close) / 3.0
    return np.where(at_least(np.diff(price, prepend=np.nan), 0.0, price), bars.volume, -bars.volume)


def _compute(bars: Bars, fast: int, slow: int, signal: int) -> Channels:
    volume = signed_volume(bars)
    line = ema(volume, fast) - ema(volume, slow)
    return Channels(lines=(Line("KVO", line), Line("Signal", ema(line, signal))), hlines=(ZERO,))


class _Stream:
    def __init__(self, fast: int, slow: int, signal: int) -> None:
        self._fast = running_ema(fast)
        self._slow = running_ema(slow)
        self._signal = running_ema(signal)
        self._typical = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        typical = (bar.high + bar.low + bar.close) / 3.0
        change, self._typical = typical - self._typical, typical
        volume = bar.volume if at_least(change, 0.0, typical) else -bar.volume
        line = self._fast.update(volume) - self._slow.update(volume)
        return line, self._signal.update(line)


INDICATOR = Indicator(
    name="klinger",
    title="Klinger",
    description="Klinger oscillator: fast less slow EMA of volume signed by the typical price's change, and its signal",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda fast, slow, signal: max(fast, slow) + signal - 1,
    parameters=(Parameter("fast", 34, 1, 500), Parameter("slow", 55, 1, 500), Parameter("signal", 13, 1, 500)),
    aliases=("kvo", "klinger_oscillator"),
    inputs=("high", "low", "close", "volume"),
    crosses=(LinePair("KVO", "Signal", Unit.VOLUME),),
)
