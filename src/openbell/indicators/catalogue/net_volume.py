"""Net volume: the volume of a bar with the sign of the change of its close; 0 if the close did not change."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars


def _compute(bars: Bars) -> Channels:
    values = np.sign(np.diff(bars.close, prepend=np.nan)) * bars.volume
    return Channels(lines=(Line("Net", values),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="net_volume",
    title="Net Volume",
    description="Volume of each bar: positive on a higher close, negative on a lower one, 0 on an equal one",
    brief="Volume, positive on a higher close, negative on a lower",
    overlay=False,
    compute=_compute,
    warmup=lambda: 2,
    inputs=("close", "volume"),
)
