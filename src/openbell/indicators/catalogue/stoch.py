"""Stochastic oscillator: the position of the close in the range of the latest bars."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.oscillators import RunningStochastic, stochastic
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, k: int, smooth: int, d: int) -> Channels:
    fast, slow = stochastic(bars, k, smooth, d)
    return Channels(lines=(Line("K", fast), Line("D", slow)), hlines=(20.0, 80.0), y_range=(0.0, 100.0))


class _Stream:
    def __init__(self, k: int, smooth: int, d: int) -> None:
        self._stochastic = RunningStochastic(k, smooth, d)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._stochastic.update(bar.close, bar.high, bar.low)


INDICATOR = Indicator(
    name="stoch",
    title="Stoch",
    description="Place of the close between the lowest low and the highest high, smoothed (K), and its average (D)",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda k, smooth, d: k + smooth + d - 2,
    parameters=(Parameter("k", 14, 1, 500), Parameter("smooth", 3, 1, 100), Parameter("d", 3, 1, 100)),
    aliases=("stochastic",),
    inputs=("high", "low", "close"),
)
