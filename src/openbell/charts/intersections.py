"""Adds the intersections of two lines to both, so that colours can change exactly there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values


def with_intersections(x: Values, one: Values, two: Values) -> tuple[Values, Values, Values]:
    """Returns the x and both lines with a point added wherever the lines intersect."""
    apart = one - two
    before = np.flatnonzero(apart[:-1] * apart[1:] < 0)
    if not len(before):
        return x, one, two
    after = before + 1
    share = apart[before] / (apart[before] - apart[after])
    meet = one[before] + share * (one[after] - one[before])
    between = x[before] + share * (x[after] - x[before])
    return np.insert(x, after, between), np.insert(one, after, meet), np.insert(two, after, meet)


def masked(chosen: npt.NDArray[np.bool_], values: Values) -> Values:
    """Returns the chosen values and NaN elsewhere."""
    return np.where(chosen, values, np.nan)
