"""Random numbers without state: a hash of a salt and a counter.

Uses only integer arithmetic and the operations that IEEE 754 rounds exactly (+ − × ÷ √), not the platform's mathematics
library. So every machine computes the same bits, and a number does not depend on the numbers computed before it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values
from openbell.market.session_table import Times

Words = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)

_LANE = np.uint64(16)
_HALF = np.uint64(32)
_LOW_LANE = np.uint64(0xFFFF)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_EVEN_LANES = np.uint64(0x0000FFFF0000FFFF)
_LANES_MEAN = 4 * 65535 / 2
_LANES_SCALE = 1 / math.sqrt(4 * (65536 * 65536 - 1) / 12)

_WITHIN_HOUR = np.arange(60) / 60
_SQUARINGS = 8
_GROWTH_STEP = 0.5 / (1 << _SQUARINGS)


@lru_cache(maxsize=1024)
def salt(seed: int, name: str) -> int:
    """Returns the salt of the random numbers called `name`; the same in every process, unlike `hash`."""
    return int.from_bytes(blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "little")


def words(stream: int, counter: Times) -> Words:
    """Returns 64 random bits for each counter (splitmix64)."""
    word = counter.astype(np.uint64)
    word *= _GOLDEN
    word += np.uint64(stream)
    word ^= word >> _SHIFT_1
    word *= _MIX_1
    word ^= word >> _SHIFT_2
    word *= _MIX_2
    word ^= word >> _SHIFT_3
    return word


def normals(stream: int, counter: Times) -> Values:
    """Returns an approximately normal number for each counter, mean 0 and variance 1: the sum of four 16-bit lanes."""
    word = words(stream, counter)
    pair = word & _EVEN_LANES
    word >>= _LANE
    word &= _EVEN_LANES
    pair += word
    total = pair & _LOW_HALF
    pair >>= _HALF
    total += pair
    value = total.astype(np.float64)
    value -= _LANES_MEAN
    value *= _LANES_SCALE
    return value


def lane(word: Words, number: int) -> Values:
    """Returns one of a word's four 16-bit lanes as a uniform number in (0, 1); the four are independent."""
    value = ((word >> np.uint64(16 * number)) & _LOW_LANE).astype(np.float64)
    value += 0.5
    value /= 65536.0
    return value


def slow_normals(stream: int, position: Times, period: int) -> Values:
    """Returns noise that changes slowly: normals at multiples of `period`, linear in between."""
    knot = position // period
    left, right = normals(stream, knot), normals(stream, knot + 1)
    return left + (right - left) * ((position - knot * period) / period)


def hour_knots(stream: int, starts: Times, minutes: int) -> Values:
    """Returns a normal number for each full hour of each row of minutes, including its end; rows start on the hour."""
    return normals(stream, starts[:, None] // 3600 + np.arange(minutes // 60 + 1, dtype=np.int64))


def between_hours(knots: Values) -> Values:
    """Returns rows of minutes from rows of hours, by linear interpolation."""
    left = knots[:, :-1, None]
    lines = (knots[:, 1:, None] - left) * _WITHIN_HOUR
    lines += left
    return lines.reshape(len(knots), -1)


def approximate_exp(log_move: Values) -> Values:
    """Returns an approximation of `exp` from exactly rounded operations: ((1 + x/2n) / (1 − x/2n))ⁿ, n = 256.

    Within 0.0001 % of `exp` for |x| ≤ 1; positive and increasing far beyond.
    """
    small = log_move * _GROWTH_STEP
    result = small + 1.0
    np.subtract(1.0, small, out=small)
    result /= small
    for _ in range(_SQUARINGS):
        result *= result
    return result
