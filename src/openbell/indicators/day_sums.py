"""Sums that restart with every trading day."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Values
from openbell.market.session_table import Times


def day_starts(day: Times) -> Times:
    """The index of the first bar of each run of equal days."""
    return np.flatnonzero(np.concatenate((np.full(min(1, len(day)), fill_value=True), day[1:] != day[:-1])))


def day_sums(values: Values, begins: Times) -> Values:
    """The sum since the latest of `begins`, this bar included.

    Loops over the days, or over the bars of the longest day, whichever are fewer: daily bars are many days of one bar.
    """
    out = values.copy()
    if not len(begins):
        return out
    ends = np.append(begins[1:], len(values))
    sizes = ends - begins
    if len(begins) <= (longest := int(sizes.max())):
        for first, last in zip(begins.tolist(), ends.tolist(), strict=True):
            out[first:last] = np.cumsum(values[first:last])
    else:
        for place in range(1, longest):
            at = begins[sizes > place] + place
            out[at] += out[at - 1]
    return out
