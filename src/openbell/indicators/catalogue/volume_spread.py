"""Volume spread analysis: the range and the volume of a bar against their averages, and where it closed in its range.

Both averages include the bar, and a share of an average of 0 is 0. A bar without a range closes in its middle. A bar is up
or down by its close against the one before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isnan, nan

import numpy as np

from openbell.indicators.channels import BarSignal, Channels, Direction, Level, Line
from openbell.indicators.highs_and_lows import RunningExtremes, highest
from openbell.indicators.rules import Rule, RunningRules, Value, array_signals
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ties import OSCILLATOR, at_least, at_most
from openbell.indicators.windows import RunningMean, window_mean
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


def _rules(before: Sequence[Value], now: Sequence[Value]) -> Sequence[Rule]:
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


class _Stream:
    def __init__(self, length: int) -> None:
        self._spread, self._volume = RunningMean(length), RunningMean(length)
        self._volumes: deque[float] = deque([nan, nan], maxlen=2)
        self._extremes = RunningExtremes(length)
        self._close = nan
        self._rules = RunningRules(_rules, 7)

    def update(self, bar: Bar) -> tuple[float, ...]:
        height = bar.high - bar.low
        spread, volume = _share_of(height, self._spread), _share_of(bar.volume, self._volume)
        place = (bar.close - bar.low) / height if height > 0.0 else 0.5
        change, self._close = bar.close - self._close, bar.close
        more = bar.volume - min(self._volumes) if not isnan(self._volumes[0]) else nan
        self._volumes.append(bar.volume)
        top, _ = self._extremes.update(bar.high, bar.low)
        self._rules.update(spread, volume, place, change, more, bar.high, top)
        return spread, volume, place

    def signals(self) -> tuple[BarSignal, ...]:
        return self._rules.signals()


def _share_of(value: float, average: RunningMean) -> float:
    mean = average.update(value)
    return value / mean if mean > 0.0 else 0.0 * mean


INDICATOR = Indicator(
    name="volume_spread",
    title="VSA",
    description=(
        "Volume spread analysis: range and volume over their averages (0 if these are 0), and the close's place in the "
        "range (0.5 if there is none)"
    ),
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 20, 3, 500),),
    aliases=("vsa",),
    inputs=("high", "low", "close", "volume"),
    signals=SIGNALS,
)
