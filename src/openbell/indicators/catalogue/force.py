"""Elder's force index: the change of the close times the volume, smoothed."""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    push = np.diff(bars.close, prepend=np.nan) * bars.volume
    return Channels(lines=(Line("Force", ema(push, length)),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="force",
    title="EFI",
    description="Elder's force index: EMA of the change of the close times volume",
    brief="Elder's force index: EMA of the change times volume",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 13, 1, 500),),
    aliases=("efi", "force_index", "elder_force_index", "elders_force_index"),
    inputs=("close", "volume"),
)
