"""Triple exponential moving average: combines an EMA with its EMA and the EMA of that, which reduces the lag."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.running import RunningAverage
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("TEMA", talib.TEMA(bars.close, length)),))


class _Stream:
    def __init__(self, length: int) -> None:
        self._once, self._twice, self._thrice = (RunningAverage(length) for _ in range(3))

    def update(self, bar: Bar) -> tuple[float, ...]:
        once = self._once.update(bar.close)
        twice = self._twice.update(once)
        return (3.0 * once - 3.0 * twice + self._thrice.update(twice),)


INDICATOR = Indicator(
    name="tema",
    title="TEMA",
    description="Triple exponential moving average of the close: three EMAs, each of the one before",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: 3 * length - 2,
    parameters=(Parameter("length", 9, 1, 500),),
    aliases=("triple_ema", "triple_exponential_moving_average"),
)
