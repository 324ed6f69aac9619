"""Two lines that cross: cut where they do, so that colours change exactly there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values


def crossed(x: Values, one: Values, two: Values) -> tuple[Values, Values, Values]:
    """The same lines with a point of both added wherever they cross."""
    apart = one - two
    before = np.flatnonzero(apart[:-1] * apart[1:] < 0)
    if not len(before):
        return x, one, two
    after = before + 1
    share = apart[before] / (apart[before] - apart[after])
    meet = one[before] + share * (one[after] - one[before])
    between = x[before] + share * (x[after] - x[before])
    return np.insert(x, after, between), np.insert(one, after, meet), np.insert(two, after, meet)


def where(chosen: npt.NDArray[np.bool_], values: Values) -> Values:
    """The values that are chosen, nothing in place of the others."""
    return np.where(chosen, values, np.nan)
