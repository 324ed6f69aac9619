"""Triple exponential moving average: combines an EMA with its EMA and the EMA of that, which reduces the lag."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("TEMA", talib.TEMA(bars.close, length)),))


INDICATOR = Indicator(
    name="tema",
    title="TEMA",
    description="Triple exponential moving average of the close: three EMAs, each of the one before",
    brief="Triple exponential moving average of the close",
    overlay=True,
    compute=_compute,
    warmup=lambda length: 3 * length - 2,
    parameters=(Parameter("length", 9, 1, 500),),
    aliases=("triple_ema", "triple_exponential_moving_average"),
)
