"""The funding rate of a perpetual future: the payment from longs to shorts, in per cent per 8 hours."""

from __future__ import annotations

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars
from openbell.market.extras import Extra


def _compute(bars: Bars, funding: Extra) -> Channels:
    return Channels(histogram=(Line("Funding", 100.0 * funding.at(bars)),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="funding",
    title="Funding",
    description="Funding rate in per cent per 8 hours, the newest known before each bar's end",
    brief="Funding rate, in per cent per 8 hours",
    overlay=False,
    compute=_compute,
    warmup=lambda: 1,
    aliases=("funding_rate",),
    needs=("funding",),
)
