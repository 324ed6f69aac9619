"""Kalman volume filter: a volume zone oscillator in units of its deviation, smoothed by a scalar Kalman filter.

The volume of a bar is positive if its close is above the close two bars before, else negative. The oscillator is the Hull
average of that volume over the Hull average of the volume, divided by its own deviation over 200 bars. The filter starts at
0 and moves towards each value by the gain `k`. The signal is its simple average.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np

from openbell.indicators.catalogue.hma import hull_weights
from openbell.indicators.channels import ZERO, Channels, Direction, Level, Line
from openbell.indicators.float_ties import OSCILLATOR, above, below
from openbell.indicators.rules import Rule, array_signals, crosses_above
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.indicators.windows import window_mean, window_sum
from openbell.market.bars import Bars, Values

BACK = 2
"""Bars from a close to the one that it is compared with."""
DEVIATION = 200
"""Bars of the deviation."""
ZONE = 0.6
"""Crosses beyond this distance from 0 are those of an overbought or oversold market."""
STEADY = 1e-12
"""A variance below this share of the squared mean is rounding: the oscillator counts as 0."""
_SCALE = OSCILLATOR / 100.0


def volume_zone(bars: Bars, length: int) -> Values:
    """The share of signed volume in the volume, by Hull averages; 0 without volume."""
    out = np.full(len(bars), np.nan)
    weights, volume = hull_weights(length), bars.volume[BACK:]
    if len(volume) >= len(weights):
        signed, traded = (
            np.correlate(each, weights)
            for each in (np.where(bars.close[BACK:] > bars.close[:-BACK], volume, -volume), volume)
        )
        share = np.divide(signed, traded, out=np.zeros(len(traded)), where=traded != 0.0)
        out[BACK + len(weights) - 1 :] = share
    return out


def over_deviation(values: Values, length: int) -> Values:
    """The values in units of the population deviation of the latest ones; 0 where they do not vary."""
    mean = window_sum(values, length) / length
    variance = window_sum(values * values, length) / length - mean * mean
    varies = variance > STEADY * (mean * mean)
    return np.divide(
        values, np.sqrt(variance, where=varies, out=1.0 + 0.0 * variance), out=0.0 * variance, where=varies
    )


def kalman(values: Values, gain: float) -> Values:
    """A scalar Kalman filter in its steady state: the estimate starts at 0 and moves towards each value by the gain."""
    lead = int(np.isnan(values).sum())
    known, level = values[lead:].tolist(), 0.0
    for at, seen in enumerate(known):
        known[at] = level = level + gain * (seen - level)
    return np.concatenate((values[:lead], known))


def _compute(bars: Bars, vzo_length: int, k: float, sig_length: int) -> Channels:
    zone = volume_zone(bars, vzo_length)
    line = kalman(over_deviation(zone, DEVIATION), k)
    trigger = window_mean(line, sig_length)
    return Channels(
        lines=(Line("KVF", line), Line("Signal", trigger)),
        signals=array_signals(_rules, (line, trigger)),
        hlines=(Level(-ZONE, "lower zone"), ZERO, Level(ZONE, "upper zone")),
    )


def _rules(before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """Each cross is one signal: a buy from below 0.6, a sell from above −0.6, with its own label from beyond the zone."""
    (line_before, trigger_before), (line, trigger) = before, now
    up = crosses_above(line_before, trigger_before, line, trigger)
    down = crosses_above(trigger_before, line_before, trigger, line)
    neutral = above(line_before, -ZONE, _SCALE) & below(line_before, ZONE, _SCALE)
    return (
        ("buy", up & neutral, line),
        ("sell", down & neutral, line),
        ("buy_oversold", up & below(line_before, -ZONE, _SCALE), line),
        ("sell_overbought", down & above(line_before, ZONE, _SCALE), line),
    )


def _warmup(vzo_length: int, k: float, sig_length: int) -> int:  # noqa: ARG001 - takes every parameter
    return BACK + (vzo_length + isqrt(vzo_length) - 1) + (DEVIATION - 1) + (sig_length - 1)


INDICATOR = Indicator(
    name="kalman_volume",
    title="KVF",
    description="Volume zone oscillator over its deviation, smoothed by a scalar Kalman filter of gain k, and its average",
    brief="Volume zone oscillator, smoothed by a Kalman filter",
    overlay=False,
    compute=_compute,
    warmup=_warmup,
    parameters=(
        Parameter("vzo_length", 70, 1, 500),
        Parameter("k", 0.06, 0.001, 1.0),
        Parameter("sig_length", 10, 1, 500),
    ),
    aliases=("kalman", "kvf", "kv"),
    inputs=("close", "volume"),
    signals={
        "buy": Direction.UP,
        "sell": Direction.DOWN,
        "buy_oversold": Direction.UP,
        "sell_overbought": Direction.DOWN,
    },
    differs=(
        "It is 0 while the oscillator does not vary, where its published script has no value, and begins when all "
        "its windows are full."
    ),
    crosses=(LinePair("KVF", "Signal"),),
)
