"""Double exponential moving average: twice the EMA less the EMA of the EMA, which reduces the lag."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.running import RunningAverage
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("DEMA", talib.DEMA(bars.close, length)),))


class _Stream:
    def __init__(self, length: int) -> None:
        self._once, self._twice = RunningAverage(length), RunningAverage(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        once = self._once.update(bar.close)
        return (2.0 * once - self._twice.update(once),)


INDICATOR = Indicator(
    name="dema",
    title="DEMA",
    description="Double exponential moving average of the close: twice the EMA less the EMA of that",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: 2 * length - 1,
    parameters=(Parameter("length", 9, 1, 500),),
    aliases=("double_ema", "double_exponential_moving_average"),
)
