"""Volume profile: the volume traded at each price of the range."""

from __future__ import annotations

from itertools import chain

import numpy as np

from openbell.indicators.channels import Channels
from openbell.indicators.profiles import WIDEST, PriceRows, one_session
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(
    bars: Bars,
    bins: int,
    side: str,
    range_bars: int,
    split_up_down: bool,
    opacity: float,  # noqa: ARG001 - used when drawing
) -> Channels:
    chosen = bars.tail(range_bars) if range_bars else bars
    if not chosen.volume.any():
        return Channels()
    rows = PriceRows(one_session(chosen), bins)
    traded = rows.spread(chosen.volume)
    scale = WIDEST / traded.max()
    left = side == "left"
    if not split_up_down:
        return Channels(hbars=tuple(rows.horizontal_bars(scale * traded, 0.0, left)))
    rising = chosen.close >= chosen.open
    up, down = (scale * rows.spread(np.where(way, chosen.volume, 0.0)) for way in (rising, ~rising))
    pairs = zip(rows.horizontal_bars(up, 0.0, left), rows.horizontal_bars(down, up, left), strict=True)
    return Channels(hbars=tuple(chain.from_iterable(pairs)))


INDICATOR = Indicator(
    name="volume_profile",
    title="VPVR",
    description="Volume at each price of the bars shown, or of the newest range_bars; optionally split into rise and fall",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(
        Parameter("bins", 24, 1, 500),
        Parameter("side", "right", choices=("right", "left")),
        Parameter("range_bars", 0, 0, 10_000),
        Parameter("split_up_down", False),
        Parameter("opacity", 0.4, 0.0, 1.0),
    ),
    aliases=("vp", "vpvr"),
    inputs=("open", "high", "low", "close", "volume"),
)
