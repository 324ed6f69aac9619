"""Price channel: the highest high and the lowest low of the window, this bar included."""

from __future__ import annotations

from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest, lowest
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    upper, lower = highest(bars.high, length), lowest(bars.low, length)
    return Channels(lines=(Line("upper", upper), Line("lower", lower)), fills=(FilledBand(upper, lower),))


INDICATOR = Indicator(
    name="price_channel",
    title="Price Channel",
    description="Highest high and lowest low of the latest bars",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 20, 1, 500),),
    inputs=("high", "low"),
)
