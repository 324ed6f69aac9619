"""Detrended price oscillator, not centred: the close less the average of half a window ago; no line is shifted back."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars, Values


def lag(length: int) -> int:
    """The age of the average, in bars."""
    return length // 2 + 1


def dpo(close: Values, length: int) -> Values:
    """NaN until there is an average of that age."""
    back = lag(length)
    out = np.full(len(close), np.nan)
    out[back:] = close[back:] - window_mean(close, length)[:-back]
    return out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("DPO", dpo(bars.close, length)),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="dpo",
    title="DPO",
    description="Detrended price oscillator: the close less its simple average of half a length ago",
    brief="Detrended price oscillator: close less an earlier average",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + lag(length),
    parameters=(Parameter("length", 21, 1, 500),),
    aliases=("detrended_price_oscillator",),
)
