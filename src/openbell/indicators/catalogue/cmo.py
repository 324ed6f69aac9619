"""Chande's momentum oscillator, from sums of gains and losses. 0 while the price does not move."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values


def cmo(close: Values, length: int) -> Values:
    """−100 to 100, NaN for the first `length` bars."""
    change = np.diff(close, prepend=np.nan)
    gained = window_sum(np.maximum(change, 0.0), length)
    lost = window_sum(np.maximum(-change, 0.0), length)
    moved = gained + lost
    out = np.zeros(len(close))
    np.divide(gained - lost, moved, out=out, where=moved != 0.0)
    return 100.0 * out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("CMO", cmo(bars.close, length)),), hlines=(ZERO,), y_range=(-100.0, 100.0))


INDICATOR = Indicator(
    name="cmo",
    title="CMO",
    description="Chande momentum oscillator: gains less losses over gains plus losses, in per cent",
    brief="Chande momentum oscillator, in per cent",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 9, 1, 500),),
    aliases=("chande_momentum_oscillator",),
    differs="While the price does not move it is 0, where TradingView has no value.",
)
