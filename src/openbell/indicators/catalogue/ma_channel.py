"""Moving average channel: the simple average of the highs and that of the lows, each drawn a number of bars later."""

from __future__ import annotations

from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.lines import MAX_OFFSET, shifted_later
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars


def _compute(bars: Bars, upper_length: int, lower_length: int, upper_offset: int, lower_offset: int) -> Channels:
    upper = shifted_later(window_mean(bars.high, upper_length), upper_offset)
    lower = shifted_later(window_mean(bars.low, lower_length), lower_offset)
    return Channels(lines=(Line("upper", upper), Line("lower", lower)), fills=(FilledBand(upper, lower),))


def _warmup(upper_length: int, lower_length: int, upper_offset: int, lower_offset: int) -> int:
    return max(upper_length + upper_offset, lower_length + lower_offset)


INDICATOR = Indicator(
    name="ma_channel",
    title="MA Channel",
    description="Simple averages of the highs and of the lows, each drawn a number of bars later",
    brief="Simple averages of the highs and of the lows",
    overlay=True,
    compute=_compute,
    warmup=_warmup,
    parameters=(
        Parameter("upper_length", 20, 1, 500),
        Parameter("lower_length", 20, 1, 500),
        Parameter("upper_offset", 0, 0, MAX_OFFSET),
        Parameter("lower_offset", 0, 0, MAX_OFFSET),
    ),
    aliases=("moving_average_channel",),
    inputs=("high", "low"),
)
