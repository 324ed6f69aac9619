"""Chaikin's volatility: the rate of change of an exponential average of the range, in per cent.

NaN while the earlier average is 0: no bar had a range.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.lines import shifted_later
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, roc_length: int) -> Channels:
    average = ema(bars.high - bars.low, length)
    before = shifted_later(average, roc_length)
    values = 100.0 * np.divide(average - before, before, out=np.full(len(bars), np.nan), where=before > 0.0)
    return Channels(lines=(Line("Volatility", values),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="chaikin_volatility",
    title="Chaikin Volatility",
    description="Change of the EMA of the range against that of some bars ago, in per cent",
    brief="Change of the EMA of the range, in per cent",
    overlay=False,
    compute=_compute,
    warmup=lambda length, roc_length: length + roc_length,
    parameters=(Parameter("length", 10, 1, 500), Parameter("roc_length", 10, 1, 500)),
    inputs=("high", "low"),
)
