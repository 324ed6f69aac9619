"""Wilder's accumulative swing index: the running total of the swing index. Starts at 0.

`limit` is the largest move of a day that the market allows, in units of the price. A bar that does not move adds 0.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def _swing(bars: Bars, limit: float) -> Values:
    """The swing index of each bar but the first."""
    opened, high, low, close = (column[1:] for column in bars.columns()[1:5])
    open_before, before = bars.open[:-1], bars.close[:-1]
    up, down, body = np.abs(high - before), np.abs(low - before), 0.25 * np.abs(before - open_before)
    reach = np.where(before > high, down - 0.5 * up, np.where(before < low, up - 0.5 * down, high - low)) + body
    move = (close - before) + 0.5 * (close - opened) + 0.25 * (before - open_before)
    share = np.divide(move, reach, out=np.zeros(len(move)), where=reach > 0.0)
    swing: Values = 50.0 * share * (np.maximum(up, down) / limit)
    return swing


def _compute(bars: Bars, limit: float) -> Channels:
    values = np.zeros(len(bars))
    values[1:] = np.cumsum(_swing(bars, limit))
    return Channels(lines=(Line("ASI", values),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="asi",
    title="ASI",
    description="Wilder's accumulative swing index: running total of swings that weigh close, open and range of two bars",
    brief="Wilder's accumulative swing index, a running total of swings",
    overlay=False,
    compute=_compute,
    warmup=lambda limit: 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("limit", 10.0, 0.0001, 1_000_000.0),),
    aliases=("accumulative_swing", "accumulative_swing_index"),
    inputs=("open", "high", "low", "close"),
    cumulative=True,
)
