"""Sums, averages, deviations, extremes and the least-squares line of the latest values; swings.

The values are divided into blocks as long as the window: a window is the end of one block and the start of the next, and
both parts are running sums within their block. So the cost of a value does not depend on the length, values outside the
window have no effect on the result, and the average of equal values is exactly that value.

The squared distances from a line are what remains of such sums; if little remains, as of values close to a line, they are
added up in a second pass over the window. Swings are highs and lows that are the extreme of some bars on either side, known
that many bars later. Of equal extremes the first one counts, as in TradingView's zigzag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from openbell.indicators.ta_lib import talib
from openbell.market.bars import Bars, Values
from openbell.market.session_table import Times

SHORT = 24
"""Blocks up to this length are added up faster place by place than block by block."""


def window_sum(values: Values, length: int) -> Values:
    """The sum of the latest `length` values. Leading NaN are skipped."""
    lead, blocks = blocks_of(values, length)
    sums = _begins(blocks)
    sums[:-1, 1:] += _ends(blocks)[1:, :-1]
    return per_bar(sums, lead, len(values))


def rises(values: Values) -> Values:
    """1 where a value is above the previous one, 0 elsewhere; NaN for the first value."""
    change = np.diff(values, prepend=np.nan)
    return np.where(np.isnan(change), np.nan, change > 0.0)


def window_mean(values: Values, length: int) -> Values:
    """The simple average of the latest `length` values. Leading NaN are skipped."""
    lead, blocks = blocks_of(values, length)
    base, means = _distances(blocks)
    means /= length
    means += base
    return per_bar(means, lead, len(values))


def window_weighted_mean(values: Values, weights: Values, length: int) -> Values:
    """The weighted average of the latest `length` values; the simple average if their weights are all 0."""
    _, blocks = blocks_of(values, length)
    base, distances = _distances(blocks, blocks_of(weights, length)[1])
    weight = window_sum(weights, length)
    heavy = weight > 0.0
    out = np.divide(per_bar(distances, 0, len(values)), weight, out=np.full(len(values), np.nan), where=heavy)
    out += per_bar(base, 0, len(values))
    return out if heavy[length - 1 :].all() else np.where(heavy, out, window_mean(values, length))


def _distances(blocks: Values, weights: Values | None = None) -> tuple[Values, Values]:
    """For each value a base, and the sum of the distances from it in the window, weighted if there are weights."""
    before, after = distances_of(blocks)
    if weights is not None:
        before *= weights
        after *= weights[:-1, 1:]
    return bases_of(blocks), joined(before, after)


def bases_of(blocks: Values) -> Values:
    """For each value a value of its window: the last one of the block before, or of the block if the value ends it."""
    last = blocks[-1]
    bases = np.zeros_like(blocks)
    bases[:-1, 1:], bases[-1] = last[:-1], last
    return bases


def distances_of(blocks: Values) -> tuple[Values, Values]:
    """The distance of each value from the end of its block, and from the end of the block before, for `joined`."""
    last = blocks[-1]
    return blocks - last, blocks[:-1, 1:] - last[:-1]


def joined(before: Values, after: Values) -> Values:
    """The sum over each window of one number per value: `before` while its block is the older one, `after` later on.

    The last axis is that of the blocks, the first one that of the places in them.
    """
    ends, sums = _ends(before), np.zeros_like(before)
    np.add(ends[1:, ..., :-1], _begins(after), out=sums[:-1, ..., 1:])
    sums[-1] = ends[0]
    return sums


def blocks_of(values: Values, length: int) -> tuple[int, Values]:
    """The number of leading NaN, and the values after them in blocks of `length`, the last one padded with zeros.

    A column per block: the values at one place of all blocks are next to each other, and added at once.
    """
    lead = len(values) - int(np.isnan(values)[::-1].argmax()) if len(values) and np.isnan(values[0]) else 0
    count = len(values) - lead
    rows = np.empty(-(-count // length) * length)
    rows[:count], rows[count:] = values[lead:], 0.0
    return lead, np.ascontiguousarray(rows.reshape(-1, length).T)


def _begins(blocks: Values) -> Values:
    """For each value, the sum from the start of its block to it."""
    if len(blocks) > SHORT:
        return np.cumsum(blocks, axis=0)
    sums = blocks.copy()
    for before, now in pairwise(sums):
        np.add(now, before, out=now)
    return sums


def _ends(blocks: Values) -> Values:
    """For each value, the sum from it to the end of its block, added from the end."""
    return _begins(blocks[::-1])[::-1]


def per_bar(found: Values, lead: int, count: int) -> Values:
    """One value per bar; NaN until the first block is full."""
    out = np.empty(lead + found.size)
    out[lead:].reshape(found.shape[::-1])[:] = found.T
    out[: lead + len(found) - 1] = np.nan
    return out[:count]


class Offsets:
    """The latest `length` values less the latest one, oldest first: exactly 0 for equal values.

    Computed again in each pass: to keep them would take `length` times the memory of the values.
    """

    __slots__ = ("_length", "_values")

    def __init__(self, values: Values, length: int) -> None:
        self._values = values
        self._length = length

    def __iter__(self) -> Iterator[Values]:
        values, length = self._values, self._length
        count = len(values) - length + 1
        newest = values[length - 1 :]
        return (values[age : age + count] - newest for age in range(length))


def total(parts: Iterable[Values]) -> Values:
    """The sum of arrays, added one after another."""
    rest = iter(parts)
    out = next(rest).copy()
    for part in rest:
        out += part
    return out


def weighted_sum(values: Values, weights: Sequence[float]) -> Values:
    """The sum of the latest values times their weights, oldest first; NaN until there are enough values."""
    out = np.full(len(values), np.nan)
    count = len(values) - len(weights) + 1
    if count > 0:
        out[len(weights) - 1 :] = total(values[age : age + count] * weight for age, weight in enumerate(weights))
    return out


def offset_and_deviation(values: Values, length: int) -> tuple[Values, Values]:
    """Simple average less the latest value, and population deviation. Leading NaN are skipped.

    The average itself would lose the digits of a small offset. Distances from a value of the window and their squares are
    added up in blocks, as in `windows`. As that value is in the window, the variance is at least the squared mean distance
    over the length: it loses no more digits than the length has.
    """
    lead, blocks = blocks_of(values, length)
    before, after = (np.stack((apart, apart * apart), axis=1) for apart in distances_of(blocks))
    sums = joined(before, after)
    sums /= length
    mean, variance = sums[:, 0], sums[:, 1]
    variance -= mean * mean
    mean += bases_of(blocks) - blocks
    return per_bar(mean, lead, len(values)), per_bar(np.sqrt(variance), lead, len(values))


def mean_and_deviation(values: Values, length: int) -> tuple[Values, Values]:
    """Simple average and population deviation. Leading NaN are skipped."""
    offset, deviation = offset_and_deviation(values, length)
    return values + offset, deviation


def highest(values: Values, length: int) -> Values:
    """The highest of the latest `length` values; NaN until there are enough."""
    found: Values = values.copy() if length == 1 else talib.MAX(values, length)
    return found


def lowest(values: Values, length: int) -> Values:
    """The lowest of the latest `length` values; NaN until there are enough."""
    found: Values = values.copy() if length == 1 else talib.MIN(values, length)
    return found


def highest_so_far(values: Values, length: int) -> Values:
    """The highest of the latest `length` values, of all values so far until there are enough."""
    out = highest(values, length)
    out[: length - 1] = np.maximum.accumulate(values[: length - 1])
    return out


def middle(high: Values, low: Values, length: int) -> Values:
    """Half way between the highest high and the lowest low."""
    return (highest(high, length) + lowest(low, length)) / 2.0


def tops(values: Values, depth: int) -> Times:
    """The indexes of values above the `depth` values before and not below the `depth` values after them."""
    if len(values) <= 2 * depth:
        return np.zeros(0, dtype=np.int64)
    reach = highest(values, depth)
    centre = values[depth:-depth]
    return np.flatnonzero((centre > reach[depth - 1 : -depth - 1]) & (centre >= reach[2 * depth :])) + depth


def swings(bars: Bars, depth: int) -> tuple[Values, Values]:
    """The swing high and the swing low that each bar confirms, which are `depth` bars old; NaN for other bars."""
    out = np.full((2, len(bars)), np.nan)
    for found, prices, centres in (
        (out[0], bars.high, tops(bars.high, depth)),
        (out[1], bars.low, tops(-bars.low, depth)),
    ):
        found[centres + depth] = prices[centres]
    return out[0], out[1]


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
