"""The number of digits with which numbers leave the desk. In memory, in stores and in the ledger they keep all of theirs.

A computed number leaves with 10 significant digits, a price or a volume with the feed's own digits, a sum of volumes without
the errors of binary addition, and an average of decimals with at most 10 decimal places.
The functions for arrays return the same numbers, in a tenth of the time.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isfinite

import numpy as np

from openbell.market.bars import Bars, Values
from openbell.market.timeframes import Timeframe

SIGNIFICANT = 10
"""Significant digits of a computed number."""
PLACES = 10
"""Most decimal places of an average of decimals."""
OWN = 15
"""Significant digits of any decimal that a float64 holds. A volume that needs more is the result of an addition."""
SUM_ERROR = 4e-14
"""The largest relative error of a sum of the volumes of a day's minutes."""

_PLACE = Decimal(1).scaleb(-PLACES)
_SMALL = -4
"""Below 0.0001, ten decimal places would leave too few digits of a price."""
_EXACT = Context(prec=80, rounding=ROUND_HALF_EVEN)


def significant(value: float, digits: int = SIGNIFICANT) -> float:
    """Returns a computed number as it leaves."""
    rounded = float(f"{value:.{digits}g}")
    return rounded if isfinite(rounded) else value  # the largest floats would round up to infinity


def volume(value: float) -> float:
    """Returns a sum of volumes as it leaves: without the error of the addition.

    The feed's own volumes leave as they are (`volumes_of`). A sum of up to 13 significant digits is exact. One
    that needs more is exact unless it is as close to a shorter number as the error of an addition would leave it.
    """
    shorter = significant(value, OWN - 2)
    if abs(shorter - value) <= SUM_ERROR * abs(value):
        return shorter
    return value if significant(value, OWN) == value else significant(value, OWN - 1)


def difference(price: float, other: float) -> float:
    """Returns a price less another one with the digits of the two, without the error of binary subtraction."""
    return float(_EXACT.subtract(Decimal(repr(price)), Decimal(repr(other))))


def average(value: Decimal) -> Decimal:
    """Returns an average of decimals, or another quotient, as it leaves: a small one with 10 significant digits instead."""
    place = _PLACE if value.adjusted() >= _SMALL or not value else Decimal(1).scaleb(value.adjusted() - SIGNIFICANT + 1)
    return value.quantize(place, context=_EXACT) if value.as_tuple().exponent < place.adjusted() else value  # type: ignore[operator]


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
