"""The rules of `digits.py` for arrays: the same numbers, in a tenth of the time."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Bars, Values
from openbell.market.digits import OWN, SIGNIFICANT, SUM_ERROR, significant
from openbell.market.timeframes import Timeframe

_MOST_PLACES = 22
"""10 to this power is the largest that a float holds exactly."""
_POWERS = np.array([float(f"1e{power}") for power in range(_MOST_PLACES + 1)])
_TIE = 1e-3
"""How far from the middle between two numbers a product is, so that its own error cannot move it across."""


def significant_column(values: Values, digits: int = SIGNIFICANT) -> Values:
    """Returns computed numbers as they leave; what is not finite stays."""
    with np.errstate(all="ignore"):
        size = np.floor(np.log10(np.abs(values)))
        places = digits - 1 - size
        plain = (np.abs(places) <= _MOST_PLACES) & (values != 0.0)
        power = _POWERS[np.where(plain, np.abs(places), 0).astype(np.intp)]
        scaled = np.where(places >= 0, values * power, values / power)
        whole = np.rint(scaled)
        rounded = np.where(places >= 0, whole / power, whole * power)
        # The logarithm may be off by one next to a power of ten, and a product next to the middle of two numbers.
        exact = plain & (np.abs(whole) < 10.0**digits) & (np.abs(whole) >= 10.0 ** (digits - 1))
        if digits < OWN:
            exact &= np.abs(np.abs(scaled - whole) - 0.5) > _TIE
    others = np.flatnonzero(~exact & np.isfinite(values) & (values != 0.0))
    rounded = np.where(exact, rounded, values)
    rounded[others] = [significant(value, digits) for value in values[others].tolist()]
    return rounded


def volumes_of(bars: Bars, *, native: bool = False) -> Values:
    """Returns the volumes of bars as they leave: those of minutes and of native bars as they are, others as sums.

    `native`: the bars are stored as the vendor or the file has them, and were not made of finer ones.
    """
    return bars.volume if native or bars.timeframe is Timeframe.M1 else volume_column(bars.volume)


def volume_column(values: Values) -> Values:
    """Returns sums of volumes as they leave."""
    if (np.rint(values) == values).all() and (values < 10.0 ** (OWN - 2)).all():  # shares
        return values
    shorter = significant_column(values, OWN - 2)
    with np.errstate(all="ignore"):
        long = np.flatnonzero(~(np.abs(shorter - values) <= SUM_ERROR * np.abs(values)) & np.isfinite(values))
    if len(long):
        found = values[long]
        own = significant_column(found, OWN) == found
        shorter[long] = np.where(own, found, significant_column(found, OWN - 1))
    return shorter
