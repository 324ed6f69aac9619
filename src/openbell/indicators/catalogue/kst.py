"""Pring's know sure thing: the sum of four smoothed rates of change; slower ones have more weight."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars, Values

DEFAULTS = (
    ("roc1", 10),
    ("roc2", 15),
    ("roc3", 20),
    ("roc4", 30),
    ("sma1", 10),
    ("sma2", 10),
    ("sma3", 10),
    ("sma4", 15),
)


def pairs(lengths: dict[str, int]) -> list[tuple[int, int]]:
    """The length of each rate of change with the length of its average."""
    return [(lengths[f"roc{n}"], lengths[f"sma{n}"]) for n in range(1, 5)]


def rate_of_change(close: Values, length: int) -> Values:
    """In per cent of the close `length` bars ago."""
    out = np.full(len(close), np.nan)
    before = close[:-length]
    out[length:] = 100.0 * ((close[length:] - before) / before)
    return out


def _compute(bars: Bars, signal: int, **lengths: int) -> Channels:
    line = np.zeros(len(bars))
    for weight, (rate, average) in enumerate(pairs(lengths), start=1):
        line += weight * window_mean(rate_of_change(bars.close, rate), average)
    return Channels(lines=(Line("KST", line), Line("Signal", window_mean(line, signal))), hlines=(ZERO,))


INDICATOR = Indicator(
    name="kst",
    title="KST",
    description="Know sure thing: sum of four averaged rates of change, weighted 1 to 4, and its average as signal",
    brief="Know sure thing: weighted sum of four rates of change",
    overlay=False,
    compute=_compute,
    warmup=lambda signal, **lengths: max(map(sum, pairs(lengths))) + signal - 1,
    parameters=(
        *(Parameter(name, default, 1, 300, aliases=(f"{name[:3]}_length_{name[3:]}",)) for name, default in DEFAULTS),
        Parameter("signal", 9, 1, 300, aliases=("signal_length",)),
    ),
    aliases=("know_sure_thing",),
    settles=1,
    crosses=(LinePair("KST", "Signal"),),
)
