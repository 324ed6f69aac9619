"""Market profile: how many bars came by each price, whatever was traded there."""

from __future__ import annotations

from openbell.indicators.channels import Channels
from openbell.indicators.profiles import WIDEST, PriceRows, all_in_one
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, bins: int, side: str) -> Channels:
    if not len(bars):
        return Channels()
    rows = PriceRows(all_in_one(bars), bins)
    visits = rows.visits()
    return Channels(hbars=tuple(rows.drawn(WIDEST / visits.max() * visits, 0.0, side == "left")))


INDICATOR = Indicator(
    name="tpo",
    title="TPO",
    description="Time price opportunities: the number of bars that came by each price",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(Parameter("bins", 32, 1, 500), Parameter("side", "right", choices=("right", "left"))),
    aliases=("market_profile",),
    inputs=("high", "low"),
)
