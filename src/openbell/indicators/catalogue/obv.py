"""On-balance volume: volume is added on a higher close and subtracted on a lower one. Starts with the second bar."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars, Values


def obv(bars: Bars) -> Values:
    """The balance after each bar; NaN for the first, whose close has no change."""
    out = np.full(len(bars), np.nan)
    out[1:] = np.cumsum(np.sign(np.diff(bars.close)) * bars.volume[1:])
    return out


def _compute(bars: Bars) -> Channels:
    return Channels(lines=(Line("OBV", obv(bars)),))


INDICATOR = Indicator(
    name="obv",
    title="OBV",
    description="Running total of the volume: added on a higher close, taken off on a lower one",
    brief="On-balance volume: added on rises, taken off on falls",
    overlay=False,
    compute=_compute,
    warmup=lambda: 2,
    aliases=("on_balance_volume",),
    cumulative=True,
    inputs=("close", "volume"),
)
