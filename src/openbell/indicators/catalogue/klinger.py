"""Klinger's volume oscillator in TradingView's form: volume with the sign of the typical price's change."""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.float_ties import at_least
from openbell.indicators.spec import Indicator, LinePair, Parameter, Unit
from openbell.market.bars import Bars, Values


def signed_volume(bars: Bars) -> Values:
    """Volume, negative where the typical price fell and, as in TradingView, at the first bar, which has no change."""
    price = (bars.high + bars.low + bars.close) / 3.0
    return np.where(at_least(np.diff(price, prepend=np.nan), 0.0, price), bars.volume, -bars.volume)


def _compute(bars: Bars, fast: int, slow: int, signal: int) -> Channels:
    volume = signed_volume(bars)
    line = ema(volume, fast) - ema(volume, slow)
    return Channels(lines=(Line("KVO", line), Line("Signal", ema(line, signal))), hlines=(ZERO,))


INDICATOR = Indicator(
    name="klinger",
    title="Klinger",
    description="Klinger oscillator: fast less slow EMA of volume signed by the typical price's change, and its signal",
    brief="Klinger oscillator: fast less slow EMA of signed volume",
    overlay=False,
    compute=_compute,
    warmup=lambda fast, slow, signal: max(fast, slow) + signal - 1,
    parameters=(Parameter("fast", 34, 1, 500), Parameter("slow", 55, 1, 500), Parameter("signal", 13, 1, 500)),
    aliases=("kvo", "klinger_oscillator"),
    inputs=("high", "low", "close", "volume"),
    crosses=(LinePair("KVO", "Signal", Unit.VOLUME),),
)
