"""Volume-weighted average price of the trading day. It restarts with every session."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.regular_hours import day_starts, day_sums, regular_part, session_days, typical_price
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars, Values


def vwap(bars: Bars, regular: Bars | None = None) -> Values:
    """NaN outside the trading day (for stocks: outside regular hours) and before its first trade.

    `regular` is the regular-hours part of the bars; if it is None, it is derived from the bars.
    """
    part = regular_part(bars) if regular is None else regular
    begins = day_starts(session_days(bars))
    traded = day_sums(part.volume, begins)
    out = np.full(len(bars), np.nan)
    np.divide(day_sums(typical_price(part) * part.volume, begins), traded, out=out, where=traded > 0.0)
    return out


def _compute(bars: Bars, regular: Bars) -> Channels:
    return Channels(lines=(Line("VWAP", vwap(bars, regular)),))


INDICATOR = Indicator(
    name="vwap",
    title="VWAP",
    description=(
        "Volume-weighted average price since the session began (UTC day where trading never stops), of the regular-hours "
        "part of each bar: the mean of its high, low and close by its volume"
    ),
    brief="Volume-weighted average price since the session began",
    overlay=True,
    compute=_compute,
    warmup=lambda: 1,
    aliases=("volume_weighted_average_price",),
    inputs=("high", "low", "close", "volume"),
    regular=True,
    by_day=True,
    differs="Of a stock only regular hours count.",
)
