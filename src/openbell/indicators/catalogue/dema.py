"""Double exponential moving average: twice the EMA less the EMA of the EMA, which reduces the lag."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("DEMA", talib.DEMA(bars.close, length)),))


INDICATOR = Indicator(
    name="dema",
    title="DEMA",
    description="Double exponential moving average of the close: twice the EMA less the EMA of that",
    brief="Double exponential moving average of the close",
    overlay=True,
    compute=_compute,
    warmup=lambda length: 2 * length - 1,
    parameters=(Parameter("length", 9, 1, 500),),
    aliases=("double_ema", "double_exponential_moving_average"),
)
