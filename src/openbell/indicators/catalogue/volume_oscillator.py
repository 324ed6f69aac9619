"""Volume oscillator: a short less a long exponential average of the volume, in per cent of the long one.

0 if nothing was traded.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, short: int, long: int) -> Channels:
    quick, calm = ema(bars.volume, short), ema(bars.volume, long)
    values = 100.0 * np.divide(quick - calm, calm, out=0.0 * (quick + calm), where=~(calm <= 0.0))
    return Channels(lines=(Line("Volume Osc", values),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="volume_oscillator",
    title="Volume Osc",
    description="A short less a long EMA of the volume, in per cent of the long one",
    brief="Short less long EMA of the volume, in per cent",
    overlay=False,
    compute=_compute,
    warmup=lambda **lengths: max(lengths.values()),
    parameters=(
        Parameter("short", 5, 1, 500, aliases=("short_length",)),
        Parameter("long", 10, 1, 500, aliases=("long_length",)),
    ),
    aliases=("volume_osc",),
    inputs=("volume",),
)
