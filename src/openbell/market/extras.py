"""Series other than bars: funding rates, open interest, order flow, sentiment. Values with timestamps in UTC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openbell.market.bars import Bars, Values, ends_of
from openbell.market.session_table import Times

KINDS = ("delta", "funding", "open_interest", "long_short", "fear_greed")
"""delta: volume bought minus volume sold in a minute; funding: rate per 8 hours; long_short: number of long accounts
divided by short accounts; fear_greed: index from 0 to 100."""


@dataclass(frozen=True, slots=True, eq=False)
class Extra:
    """Values sorted by timestamp; each one is valid from its timestamp until the next."""

    time: Times
    value: Values

    def at(self, bars: Bars) -> Values:
        """Returns the latest value before the end of each bar; NaN before the first value.

        A value that is stamped exactly at the end of a bar belongs to the next bar.
        """
        row = np.searchsorted(self.time, ends_of(bars)) - 1
        if not len(self.time):
            return np.full(len(bars), np.nan)
        return np.where(row >= 0, self.value[np.maximum(row, 0)], np.nan)

    def sum_in(self, bars: Bars) -> Values:
        """Returns the sum of the values in each bar; NaN for bars before the first value."""
        total = np.concatenate(([0.0], np.cumsum(self.value)))
        first = np.searchsorted(self.time, bars.time)
        ends = ends_of(bars)
        out: Values = total[np.searchsorted(self.time, ends)] - total[first]
        if len(self.time) and not bars.timeframe.intraday:
            out[ends <= self.time[0]] = np.nan
        elif len(self.time):
            out[bars.time < self.time[0] - self.time[0] % bars.timeframe.seconds] = np.nan
        else:
            out[:] = np.nan
        return out
