"""Fear and greed: an index of the sentiment of a market, from 0 (fear) to 100 (greed)."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars
from openbell.market.extras import Extra

EXTREME_FEAR, EXTREME_GREED = 25.0, 75.0


def _compute(bars: Bars, fear_greed: Extra) -> Channels:
    return Channels(
        lines=(Line("F&G", fear_greed.at(bars)),),
        hlines=(Level(EXTREME_FEAR, "extreme fear"), Level(EXTREME_GREED, "extreme greed")),
        y_range=(0.0, 100.0),
    )


INDICATOR = Indicator(
    name="fear_greed",
    title="F&G",
    description="Fear and greed index, 0 to 100, the newest known before each bar's end",
    brief="Fear and greed index, 0 to 100",
    overlay=False,
    compute=_compute,
    warmup=lambda: 1,
    aliases=("fng",),
    needs=("fear_greed",),
)
