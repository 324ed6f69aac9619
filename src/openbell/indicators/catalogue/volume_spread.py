"""Volume spread analysis: the range and the volume of a bar against their averages, and where it closed in its range.

Both averages include the bar, and a share of an average of 0 is 0. A bar without a range closes in its middle. A bar is up
or down by its close against the one before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openbell.indicators.channels import Channels, Direction, Level, Line
from openbell.indicators.float_ties import OSCILLATOR, at_least, at_most
from openbell.indicators.rules import Rule, array_signals
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest, window_mean
from openbell.market.bars import Bars, Values

SIGNALS = {
    "stopping_volume": Direction.UP,
    "no_demand": Direction.DOWN,
    "no_supply": Direction.UP,
    "upthrust": Direction.DOWN,
}
_STOPPING, _NO_DEMAND, _NO_SUPPLY, _UPTHRUST = SIGNALS
_SHARES = OSCILLATOR / 100.0
"""The scale of shares, from 0 to 1."""


def _rules(before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """The values are the three lines, the change of the close, volume above the two bars before, the high and the top.

    The value of a signal is the relative volume. An upthrust is higher than all highs of the window before.
    """
    spread, volume, place, change, more, high, _ = now
    top_before = before[-1]
    quiet = at_most(volume, 0.7, _SHARES) & (more < 0.0) & at_most(spread, 0.8, _SHARES)
    wide = at_least(volume, 2.0, _SHARES) & at_least(spread, 1.2, _SHARES)
    return (
        (_STOPPING, (change < 0.0) & wide & at_least(place, 0.5, _SHARES), volume),
        (_NO_DEMAND, (change > 0.0) & quiet, volume),
        (_NO_SUPPLY, (change < 0.0) & quiet, volume),
        (_UPTHRUST, (high > top_before) & at_most(place, 0.3, _SHARES) & at_least(volume, 1.5, _SHARES), volume),
    )


def _share(values: Values, length: int) -> Values:
    mean = window_mean(values, length)
    return np.divide(values, mean, out=0.0 * mean, where=mean > 0.0)


def _compute(bars: Bars, length: int) -> Channels:
    height = bars.high - bars.low
    spread, volume = _share(height, length), _share(bars.volume, length)
    place = np.divide(bars.close - bars.low, height, out=np.full(len(bars), 0.5), where=height > 0.0)
    quietest = np.full(len(bars), np.nan)
    quietest[2:] = np.minimum(bars.volume[1:-1], bars.volume[:-2])
    inputs = (np.diff(bars.close, prepend=np.nan), bars.volume - quietest, bars.high, highest(bars.high, length))
    return Channels(
        lines=(Line("spread", spread), Line("volume", volume), Line("close_position", place)),
        signals=array_signals(_rules, (spread, volume, place, *inputs)),
        hlines=(Level(1.0, "average"),),
    )


INDICATOR = Indicator(
    name="volume_spread",
    title="VSA",
    description=(
        "Volume spread analysis: range and volume over their averages (0 if these are 0), and the close's place in the "
        "range (0.5 if there is none)"
    ),
    brief="Volume spread analysis: range and volume, close's place",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 20, 3, 500),),
    aliases=("vsa",),
    inputs=("high", "low", "close", "volume"),
    signals=SIGNALS,
)
