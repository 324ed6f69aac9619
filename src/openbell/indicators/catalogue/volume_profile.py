"""Volume profile: the volume traded at each price of the range, its point of control and its value area."""

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
    value_area: float,
) -> Channels:
    chosen = bars.tail(range_bars) if range_bars else bars
    if not chosen.volume.any():
        return Channels()
    rows = PriceRows(one_session(chosen), bins)
    traded = rows.spread(chosen.volume)
    scale = WIDEST / traded.max()
    left, levels = side == "left", rows.levels(traded[0], share=value_area / 100.0)
    if not split_up_down:
        return Channels(hbars=tuple(rows.horizontal_bars(scale * traded, 0.0, left)), hlines=levels)
    rising = chosen.close >= chosen.open
    up, down = (scale * rows.spread(np.where(way, chosen.volume, 0.0)) for way in (rising, ~rising))
    pairs = zip(rows.horizontal_bars(up, 0.0, left), rows.horizontal_bars(down, up, left), strict=True)
    return Channels(hbars=tuple(chain.from_iterable(pairs)), hlines=levels)


INDICATOR = Indicator(
    name="volume_profile",
    title="VPVR",
    description="Volume at each price of the bars shown, or of the newest range_bars, its point of control and value area",
    brief="Volume at each price, point of control, value area",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(
        Parameter("bins", 24, 1, 500, aliases=("rows", "row_size", "number_of_rows")),
        Parameter("side", "right", choices=("right", "left")),
        Parameter("range_bars", 0, 0, 10_000),
        Parameter("split_up_down", False),
        Parameter("opacity", 0.4, 0.0, 1.0),
        Parameter("value_area", 70.0, 1.0, 100.0, aliases=("value_area_volume",)),
    ),
    aliases=("vp", "vpvr", "visible_range_volume_profile", "volume_profile_visible_range"),
    inputs=("open", "high", "low", "close", "volume"),
)
