"""The number of digits with which numbers leave the desk. In memory, in stores and in the ledger they keep all of theirs.

A computed number leaves with 10 significant digits, a price or a volume with the feed's own digits, a sum of volumes without
the errors of binary addition, and an average of decimals with at most 10 decimal places.
`digit_columns.py` has the rules for arrays.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isfinite

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

    The feed's own volumes leave as they are (`digit_columns.volumes_of`). A sum of up to 13 significant digits is exact. One
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
