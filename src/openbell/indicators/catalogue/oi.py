"""Open interest: the number of open contracts."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars
from openbell.market.extras import Extra


def _compute(bars: Bars, open_interest: Extra) -> Channels:
    return Channels(lines=(Line("OI", open_interest.at(bars)),))


INDICATOR = Indicator(
    name="oi",
    title="OI",
    description="Open interest, the newest known before each bar's end",
    overlay=False,
    compute=_compute,
    warmup=lambda: 1,
    aliases=("open_interest",),
    needs=("open_interest",),
)
