"""Entries and exits of strategies that follow range bars and Renko bricks, built from closes.

There is a pair for each bar: the direction of the last complete range bar or brick (1 up, -1 down, 0 none yet), and the
number of them in a row.
"""

from __future__ import annotations

from tests.strategies.plain_rules import Rows, average_ranges

Runs = list[tuple[int, int]]


def range_bars(rows: Rows) -> Runs:
    """A range bar is complete when its high and low are 1 per cent of its first price apart. The next one starts there."""
    start = high = low = rows[0].close
    direction = count = 0
    found = []
    for row in rows:
        while True:
            top, bottom = low + 0.01 * start, high - 0.01 * start
            if bottom < row.close < top:
                break
            turned = 1 if row.close >= top else -1
            count = count + 1 if turned == direction else 1
            direction = turned
            start = high = low = top if turned == 1 else bottom
        high, low = max(high, row.close), min(low, row.close)
        found.append((direction, count))
    return found


def renko(rows: Rows) -> Runs:
    """A brick is as high as the average true range of 14 bars when it starts. A reversal takes two heights."""
    level = height = 0.0
    direction = count = 0
    found = []
    for row, average in zip(rows, average_ranges(rows, 14), strict=True):
        if average is None:
            found.append((0, 0))
            continue
        if not height:
            level, height = row.close, average
        while True:
            move = 1 if row.close > level else -1
            needed = 2 * height if move == -direction else height
            if abs(row.close - level) < needed:
                break
            count = count + 1 if move == direction else 1
            direction, level, height = move, level + move * needed, average
        found.append((direction, count))
    return found


def rising(runs: Runs) -> list[int]:
    """More than one in a row has risen."""
    return [at for at, (direction, count) in enumerate(runs) if direction == 1 and count > 1]


def falling(runs: Runs) -> list[int]:
    return [at for at, (direction, _) in enumerate(runs) if direction == -1]


ENTRIES = {"RANGE_BARS": lambda rows: rising(range_bars(rows)), "RENKO_CHART": lambda rows: rising(renko(rows))}
EXITS = {"RANGE_BARS": lambda rows: falling(range_bars(rows)), "RENKO_CHART": lambda rows: falling(renko(rows))}
