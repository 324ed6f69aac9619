"""On-balance volume: volume is added on a higher close and subtracted on a lower one. Starts with the second bar."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator
from openbell.market.bars import Bars, Values


def obv(bars: Bars) -> Values:
    """The balance after each bar; NaN for the first, whose close has no change."""
    out = np.full(len(bars), np.nan)
    out[1:] = np.cumsum(np.sign(np.diff(bars.close)) * bars.volume[1:])
    return out


def _compute(bars: Bars) -> Channels:
    return Channels(lines=(Line("OBV", obv(bars)),))


class _Stream:
    def __init__(self) -> None:
        self._balance = 0.0
        self._close = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        before, self._close = self._close, bar.close
        if bar.close > before:
            self._balance += bar.volume
        elif bar.close < before:
            self._balance -= bar.volume
        elif isnan(before):
            return (nan,)
        return (self._balance,)


INDICATOR = Indicator(
    name="obv",
    title="OBV",
    description="Running total of the volume: added on a higher close, taken off on a lower one",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda: 2,
    aliases=("on_balance_volume",),
    cumulative=True,
    inputs=("close", "volume"),
)
