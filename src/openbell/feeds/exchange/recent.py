"""What was told of the newest minutes, so that what is told otherwise later is seen as a correction."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import MINUTE, Bars, merge
from openbell.market.instruments import Instrument

OVERLAP = 10 * MINUTE
"""How far back what was told is compared with what is told now."""


class Recent:
    """The last told bars of each instrument, whoever asked for them."""

    def __init__(self) -> None:
        self._told: dict[Instrument, Bars] = {}

    def note(self, bars: Bars) -> None:
        """Remember bars that leave the feed."""
        told = self._told.get(bars.instrument)
        if len(bars) and (told is None or bars.time[-1] > told.time[-1] - 2 * OVERLAP):
            joined = bars if told is None else merge(told, bars)
            self._told[bars.instrument] = joined.between(joined.time[-1] - 2 * OVERLAP, np.inf).copy()

    def news(self, bars: Bars, since: int) -> Bars:
        """Of these bars those that were told otherwise, and from `since` on also those that were not told at all."""
        told = self._told.get(bars.instrument)
        if told is None:
            return bars.between(since, np.inf)
        row = np.minimum(np.searchsorted(told.time, bars.time), len(told) - 1)
        same_time = told.time[row] == bars.time
        pairs = zip(bars.columns()[1:], told.columns()[1:], strict=True)
        equal = np.all([now == then[row] for now, then in pairs], axis=0)
        return bars.take(np.where(same_time, ~equal, bars.time >= since))
