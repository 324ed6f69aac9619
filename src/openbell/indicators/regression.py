"""The least-squares line through the latest values.

Sums of distances from a value of the window are added up in blocks, as in `windows`, so that values at a large price keep
their digits. The squared distances from the line are what remains of those sums; if little remains, as of values close to a
line, they are added up in a second pass over the window.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.windows import bases_of, blocks_of, distances_of, joined, per_bar, total
from openbell.market.bars import Values

LITTLE = 0.01
"""Of the squared distances from a value, less than this share is too little for the digits that are wanted."""


def places(length: int) -> tuple[list[float], float]:
    """The distance of each bar from the middle of the window, oldest first, and the sum of the squares."""
    return [age - (length - 1) / 2.0 for age in range(length)], length * (length * length - 1.0) / 12.0


def moments(values: Values, length: int) -> tuple[Values, Values, Values, Values]:
    """A value of each window, and sums over the window of the distances from it: as they are, times `places`, squared."""
    lead, blocks = blocks_of(values, length)
    place = np.arange(length, dtype=np.float64)[:, None]
    before, after = distances_of(blocks)
    sums = joined(
        np.stack((before, place * before, before * before), axis=1),
        np.stack((after, (place[:-1] + length) * after, after * after), axis=1),
    )
    plain, along, squares = sums[:, 0], sums[:, 1], sums[:, 2]
    # From places in the blocks to places in the window, which has moved on since the older block began.
    shift = (place + 1.0) % length + (length - 1) / 2.0
    along -= shift * plain
    base, *found = (per_bar(each, lead, len(values)) for each in (bases_of(blocks), plain, along, squares))
    return base, found[0], found[1], found[2]


def regression(values: Values, length: int) -> tuple[Values, Values, Values]:
    """The end of the line, the population deviation of the values from it, and its rise per bar."""
    base, plain, along, squares = moments(values, length)
    distances, width = places(length)
    mean, rise = plain / length, along / width
    rest = squares - mean * plain - rise * along
    near = np.flatnonzero(rest < LITTLE * squares)
    if len(near):
        first, start, middle, slope = near - (length - 1), base[near], mean[near], rise[near]
        away = ((values[first + age] - start) - (middle + slope * place) for age, place in enumerate(distances))
        rest[near] = total(each * each for each in away)
    return base + (mean + rise * distances[-1]), np.sqrt(rest / length), rise
