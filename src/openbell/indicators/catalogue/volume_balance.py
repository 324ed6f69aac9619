"""Volume balance: the volume of bars with a higher close in per cent of all volume. 50 if the window has no volume.

The volume of a bar whose close equals the one before counts half.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    out = np.full(len(bars), np.nan)
    volume = bars.volume[1:]
    rising = window_sum(volume * ((np.sign(np.diff(bars.close)) + 1.0) / 2.0), length)
    traded = window_sum(volume, length)
    out[1:] = 100.0 * np.divide(rising, traded, out=0.0 * traded + 0.5, where=~(traded <= 0.0))
    return Channels(lines=(Line("balance", out),), hlines=(Level(50.0, "even"),), y_range=(0.0, 100.0))


INDICATOR = Indicator(
    name="volume_balance",
    title="Volume Balance",
    description="Volume of bars with a higher close in per cent of all volume; 50 if there is none",
    brief="Volume of rising bars, in per cent of all volume",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 20, 1, 500),),
    inputs=("close", "volume"),
)
