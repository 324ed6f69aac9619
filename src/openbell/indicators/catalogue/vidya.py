"""Chande's variable index dynamic average: an exponential average whose weight shrinks with the momentum of the close.

The weight is 2 / (length + 1) times the absolute momentum oscillator, from 0 to 1: the average stands still while the price
does not move. It starts with the simple average.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import adaptive_average
from openbell.indicators.catalogue.cmo import cmo
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, cmo_length: int) -> Channels:
    close = bars.close
    weights = 2.0 / (length + 1) * (np.abs(cmo(close, cmo_length)) / 100.0)
    values = adaptive_average(close, weights, max(length - 1, cmo_length), window_mean(close, length))
    return Channels(lines=(Line("VIDYA", values),))


INDICATOR = Indicator(
    name="vidya",
    title="VIDYA",
    description="Variable index dynamic average: an EMA that slows down as the Chande momentum nears 0",
    brief="Variable index average: slow while momentum is near 0",
    overlay=True,
    compute=_compute,
    warmup=lambda length, cmo_length: max(length, cmo_length + 1),
    parameters=(Parameter("length", 14, 1, 1000), Parameter("cmo_length", 9, 1, 500)),
    aliases=("variable_ema",),
    cumulative=True,  # old bars fade as slowly as the momentum is low
)
