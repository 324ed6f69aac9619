"""The point of control and the value area of a profile, for one profile and for many at once.

Volumes that differ by less than a billionth of all the volume count as equal. Rows that hold the same bars are equal but
for rounding, and the order in which volumes were added must not decide between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values

VALUE_AREA = 0.7
"""The least share of the volume in the value area."""
EQUAL = 1e-9
"""Volumes that differ by less than this share of all the volume are equal."""

Rows = npt.NDArray[np.intp]


def control_row(volumes: Values, traded: float | Values) -> Rows:
    """The lowest row with the most volume, along the first axis. `traded` is all the volume."""
    rows: Rows = (volumes >= volumes.max(axis=0) - EQUAL * traded).argmax(axis=0)
    return rows


def value_area(below: Sequence[float], control: int, share: float = VALUE_AREA) -> tuple[int, int]:
    """The first and last row of the area around the row `control` that holds this share of the volume.

    `below` is the volume below each edge of the rows, from 0 to all the volume. The area grows by the two rows above or the
    two rows below, whichever have more volume; by those above if both have the same.
    """
    first, last, top = control, control, len(below) - 2
    slack = EQUAL * below[-1]
    wanted = share * below[-1] - slack
    while below[last + 1] - below[first] < wanted:
        lower = first - 2 if first > 2 else 0
        upper = min(top, last + 2)
        above, beneath = below[upper + 1] - below[last + 1], below[first] - below[lower]
        if last < top and (first == 0 or above >= beneath - slack):
            last = upper
        else:
            first = lower
    return first, last


def value_areas(below: Values, control: Rows) -> tuple[Rows, Rows]:
    """`value_area` of many profiles: `below` has a row per edge and a column per profile."""
    firsts, lasts = control.copy(), control.copy()
    slacks = EQUAL * below[-1]
    wanted = VALUE_AREA * below[-1] - slacks
    top, flat = len(below) - 2, np.ascontiguousarray(below.T).ravel()
    starts = np.arange(len(control)) * len(below)
    some = np.arange(len(control))  # the areas that still grow
    first, last = firsts, lasts
    while True:
        end_of_last, start_of_first = flat[starts + last + 1], flat[starts + first]
        small = np.flatnonzero(end_of_last - start_of_first < wanted)
        if not len(small):
            return firsts, lasts
        some, starts, first, last, end_of_last, start_of_first, wanted, slacks = (
            each[small] for each in (some, starts, first, last, end_of_last, start_of_first, wanted, slacks)
        )
        lower, upper = np.maximum(first - 2, 0), np.minimum(last + 2, top)
        above, beneath = flat[starts + upper + 1] - end_of_last, start_of_first - flat[starts + lower]
        up = (last < top) & ((first == 0) | (above >= beneath - slacks))
        first, last = np.where(up, first, lower), np.where(up, upper, last)
        firsts[some], lasts[some] = first, last
