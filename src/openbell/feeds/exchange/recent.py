"""The latest bars that the feed has delivered, to detect corrections."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import MINUTE, Bars, merge
from openbell.market.instruments import Instrument

OVERLAP = 10 * MINUTE
"""How far back delivered bars are compared with new ones, in seconds."""


class RecentBars:
    """The latest delivered bars of each instrument, of all streams and histories."""

    def __init__(self) -> None:
        self._delivered: dict[Instrument, Bars] = {}

    def record(self, bars: Bars) -> None:
        """Record delivered bars."""
        delivered = self._delivered.get(bars.instrument)
        if len(bars) and (delivered is None or bars.time[-1] > delivered.time[-1] - 2 * OVERLAP):
            joined = bars if delivered is None else merge(delivered, bars)
            self._delivered[bars.instrument] = joined.between(joined.time[-1] - 2 * OVERLAP, np.inf).copy()

    def changed(self, bars: Bars, since: int) -> Bars:
        """Returns the bars that differ from the delivered ones, and from `since` on also bars not delivered yet."""
        delivered = self._delivered.get(bars.instrument)
        if delivered is None:
            return bars.between(since, np.inf)
        row = np.minimum(np.searchsorted(delivered.time, bars.time), len(delivered) - 1)
        same_time = delivered.time[row] == bars.time
        pairs = zip(bars.columns()[1:], delivered.columns()[1:], strict=True)
        equal = np.all([now == then[row] for now, then in pairs], axis=0)
        return bars.take(np.where(same_time, ~equal, bars.time >= since))
