"""Volume-weighted moving average. NaN if the window has no volume.

Not TA-Lib's: its running sums keep a rounding remainder, by which it divides in a window without volume.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def vwma(close: Values, volume: Values, length: int) -> Values:
    """NaN for the first `length − 1` bars, and while the window has no volume."""
    out = np.full(len(close), np.nan)
    if len(close) >= length:
        turnover, traded = (np.correlate(values, np.ones(length)) for values in (close * volume, volume))
        np.divide(turnover, traded, out=out[length - 1 :], where=traded > 0.0)
    return out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("VWMA", vwma(bars.close, bars.volume, length)),))


INDICATOR = Indicator(
    name="vwma",
    title="VWMA",
    description="Moving average of the close in which each bar weighs what it traded",
    brief="Volume-weighted moving average of the close",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 20, 1, 1000),),
    aliases=("volume_weighted_moving_average",),
    inputs=("close", "volume"),
    settles=1,
)
