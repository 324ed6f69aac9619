"""Rate of change: the change of the close over a number of bars, in per cent."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def roc(close: Values, length: int) -> Values:
    """In per cent, NaN for the first `length` bars."""
    out = np.full(len(close), np.nan)
    before = close[:-length]
    out[length:] = 100.0 * ((close[length:] - before) / before)
    return out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("ROC", roc(bars.close, length)),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="roc",
    title="ROC",
    description="Change of the close against that of some bars ago, in per cent",
    brief="Rate of change of the close, in per cent",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 14, 1, 1000, aliases=("period",), tradingview=9),),
    aliases=("rate_of_change",),
)
