"""Market profile: the number of bars that touched each price, regardless of volume."""

from __future__ import annotations

from openbell.indicators.channels import Channels
from openbell.indicators.profiles import WIDEST, PriceRows, one_session
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, bins: int, side: str) -> Channels:
    if not len(bars):
        return Channels()
    rows = PriceRows(one_session(bars), bins)
    visits = rows.visits()
    return Channels(hbars=tuple(rows.horizontal_bars(WIDEST / visits.max() * visits, 0.0, side == "left")))


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
