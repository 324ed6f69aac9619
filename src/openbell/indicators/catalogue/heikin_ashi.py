"""Heikin-Ashi candles: each bar is averaged with the previous candle, so that candles of a trend have one colour."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import above
from openbell.indicators.rules import FLIP_SIGNALS, flips
from openbell.indicators.spec import Indicator
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Bars


def _compute(bars: Bars) -> Channels:
    opened, high, low, close = talib.HA(bars.open, bars.high, bars.low, bars.close)
    return Channels(
        lines=(Line("open", opened), Line("high", high), Line("low", low), Line("close", close)),
        signals=flips(np.where(above(close, opened, close), 1.0, 0.0) - above(opened, close, close), close),
    )


INDICATOR = Indicator(
    name="heikin_ashi",
    title="Heikin Ashi",
    description="Candles averaged with the candle before; a flip is a body of the other colour",
    brief="Candles averaged with the candle before",
    overlay=True,
    compute=_compute,
    warmup=lambda: 1,
    aliases=("ha",),
    inputs=("open", "high", "low", "close"),
    signals=FLIP_SIGNALS,
)
