"""Long/short ratio: the number of long accounts per short account."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars
from openbell.market.extras import Extra


def _compute(bars: Bars, long_short: Extra) -> Channels:
    return Channels(lines=(Line("L/S", long_short.at(bars)),), hlines=(Level(1.0, "even"),))


INDICATOR = Indicator(
    name="long_short",
    title="L/S",
    description="Ratio of long to short accounts, the newest known before each bar's end",
    brief="Ratio of long to short accounts",
    overlay=False,
    compute=_compute,
    warmup=lambda: 1,
    aliases=("ls_ratio",),
    needs=("long_short",),
)
