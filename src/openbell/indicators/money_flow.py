"""Money flow: the volume of a bar times the position of its close in its range, from −1 at the low to 1 at the high."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Bars, Values


def money_flow(bars: Bars) -> Values:
    """One value per bar; 0 for a bar without a range."""
    height = bars.high - bars.low
    lean = (bars.close - bars.low) - (bars.high - bars.close)
    return np.divide(lean, height, out=np.zeros(len(bars)), where=height > 0.0) * bars.volume
