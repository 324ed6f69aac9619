"""Elder's ray: the distance of the high and of the low from the exponential average of the close.

Prices are taken relative to the first close, so that a constant price gives exactly 0.
"""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    first = bars.close[:1]
    average = ema(bars.close - first, length)
    return Channels(
        lines=(Line("Bull", (bars.high - first) - average), Line("Bear", (bars.low - first) - average)), hlines=(ZERO,)
    )


INDICATOR = Indicator(
    name="elder_ray",
    title="Elder Ray",
    description="Bull power, the high less the EMA of the close, and bear power, the low less it",
    brief="Bull power and bear power: high and low less the EMA",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 13, 1, 500),),
    aliases=("bbp", "bull_bear_power"),
    inputs=("high", "low", "close"),
    differs="TradingView's Bull Bear Power is one line, the sum of both.",
)
