"""Calculations by loops over lists, and the entries of some canonical strategies, from the published definitions.

Nothing of the indicators or of the evaluation is used. A value that does not exist yet is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

Series = list[float | None]


class Row(NamedTuple):
    """A daily bar."""

    open: float
    high: float
    low: float
    close: float
    volume: float


Rows = Sequence[Row]


def sma(values: Sequence[float], length: int) -> Series:
    return [sum(values[at - length + 1 : at + 1]) / length if at >= length - 1 else None for at in range(len(values))]


def ema(values: Sequence[float], length: int) -> Series:
    """Starts with the simple average."""
    found: Series = [None] * (length - 1)
    now = sum(values[:length]) / length
    found.append(now)
    for value in values[length:]:
        now += (value - now) * 2 / (length + 1)
        found.append(now)
    return found


def later(values: Sequence[float], count: int) -> Series:
    """Values with `count` missing ones before them."""
    return [*[None] * count, *values]


def rsi(values: Sequence[float], length: int) -> Series:
    """Wilder's averages of rises and falls."""
    moves = [after - before for before, after in pairwise(values)]
    rise = sum(max(move, 0) for move in moves[:length]) / length
    fall = sum(max(-move, 0) for move in moves[:length]) / length
    found = [100 * rise / (rise + fall)]
    for move in moves[length:]:
        rise = (rise * (length - 1) + max(move, 0)) / length
        fall = (fall * (length - 1) + max(-move, 0)) / length
        found.append(100 * rise / (rise + fall))
    return later(found, length)


def average_ranges(rows: Rows, length: int) -> Series:
    """Wilder's average true range."""
    return wilder([rows[0].high - rows[0].low, *true_ranges(rows)], length)


def true_ranges(rows: Rows) -> list[float]:
    """From the second bar on."""
    return [max(now.high, then.close) - min(now.low, then.close) for then, now in pairwise(rows)]


def wilder(values: Sequence[float], length: int) -> Series:
    """Wilder's average, which starts with the simple one."""
    found = [sum(values[:length]) / length]
    for each in values[length:]:
        found.append((found[-1] * (length - 1) + each) / length)
    return later(found, length - 1)


def where(count: int, holds: Callable[[int], bool], first: int = 1) -> list[int]:
    """The bars at which a rule holds; a rule that needs a missing value does not."""
    found = []
    for at in range(first, count):
        try:
            if holds(at):
                found.append(at)
        except TypeError:  # a comparison with None
            continue
    return found


def over(value: float | None, other: float | None) -> bool:
    """Returns True if a value is greater by more than rounding. Raises `TypeError` if one is missing."""
    return value - other > 1e-12 * max(abs(value), abs(other))  # type: ignore[operator, arg-type]


def crossed(line: Sequence[float | None], other: Sequence[float | None], at: int) -> bool:
    """Returns True if a line is above another and was not at the bar before."""
    return over(line[at], other[at]) and not over(line[at - 1], other[at - 1])


def momentum_pinball(rows: Rows) -> list[int]:
    changes = [100 * (now.close - then.close) / then.close for then, now in pairwise(rows)]
    pinball = [None, *rsi(changes, 3)]
    low: Series = [30.0] * len(rows)
    return where(len(rows), lambda at: crossed(pinball, low, at) and pinball[at] < 70)  # type: ignore[operator]


def price_gap(rows: Rows) -> list[int]:
    trend = ema([row.close for row in rows], 10)

    def holds(at: int) -> bool:
        row, before = rows[at], rows[at - 1].close
        gap = row.open > before * 1.01 and row.low > before
        return gap and row.close > row.open and row.close > trend[at]  # type: ignore[operator]

    return where(len(rows), holds)


def volatility_sides(rows: Rows) -> list[bool | None]:
    """True while the stop is below the price, False while it is above."""
    found: list[bool | None] = []
    long, stop, extreme = True, 0.0, 0.0
    for row, room in zip(rows, average_ranges(rows, 7), strict=True):
        if room is None:
            found.append(None)
            continue
        if long:
            extreme = max(extreme, row.close)
            stop = max(stop, extreme - 3 * room)
            if row.close < stop:
                long, extreme, stop = False, row.close, row.close + 3 * room
        else:
            extreme = min(extreme, row.close)
            stop = min(stop, extreme + 3 * room)
            if row.close >= stop:
                long, extreme, stop = True, row.close, row.close - 3 * room
        found.append(long)
    return found


def volatility_stop(rows: Rows) -> list[int]:
    sides = volatility_sides(rows)
    return [at for at in range(1, len(rows)) if sides[at] is True and sides[at - 1] is False]


def swings_at(rows: Rows, at: int, depth: int) -> tuple[float | None, float | None]:
    """The swing high and the swing low that a bar confirms: the extreme of `depth` bars on either side of an older bar."""
    centre = at - depth
    if centre < depth:
        return None, None
    before, after = rows[centre - depth : centre], rows[centre + 1 : at + 1]
    row = rows[centre]
    high = row.high > max(each.high for each in before) and row.high >= max(each.high for each in after)
    low = row.low < min(each.low for each in before) and row.low <= min(each.low for each in after)
    return row.high if high else None, row.low if low else None


def last_swings(rows: Rows) -> Iterator[tuple[str, float, float]]:
    """For each bar the kind of the last swing (empty before there are two), its price and the price of the one before."""
    swings: list[tuple[str, float]] = []
    for at in range(len(rows)):
        for kind, price in zip(("high", "low"), swings_at(rows, at, 10), strict=True):
            if price is None:
                continue
            further = not swings or (price > swings[-1][1] if kind == "high" else price < swings[-1][1])
            if further:
                if swings and swings[-1][0] == kind:
                    swings.pop()
                swings.append((kind, price))
        yield (*swings[-1], swings[-2][1]) if len(swings) > 1 else ("", 0.0, 0.0)


def fibonacci_retracements(rows: Rows) -> list[int]:
    found = []
    for at, (row, (kind, top, bottom)) in enumerate(zip(rows, last_swings(rows), strict=True)):
        if kind != "high" or row.close >= top:
            continue
        levels = [top - part * (top - bottom) for part in (0.382, 0.5, 0.618)]
        if any(row.low < level < row.close for level in levels):
            found.append(at)
    return found


def double_patterns(rows: Rows) -> tuple[list[int], list[int]]:
    """The closes that confirm double bottoms, and those that confirm double tops.

    Each waiting pattern is (bar at which it formed, its first bar, neckline, extreme).
    """
    lows: list[tuple[int, float]] = []
    highs: list[tuple[int, float]] = []
    bottom: tuple[int, int, float, float] | None = None
    top: tuple[int, int, float, float] | None = None
    bottoms, tops = [], []
    for at, row in enumerate(rows):
        high, low = swings_at(rows, at, 5)
        if high is not None:
            between = [price for bar, price in lows if highs and bar > highs[-1][0]]
            if between and abs(high - highs[-1][1]) <= 0.02 * highs[-1][1]:
                top = (at, highs[-1][0], min(between), max(high, highs[-1][1]))
        if low is not None:
            between = [price for bar, price in highs if lows and bar > lows[-1][0]]
            if between and abs(low - lows[-1][1]) <= 0.02 * lows[-1][1]:
                bottom = (at, lows[-1][0], max(between), min(low, lows[-1][1]))
        highs += [(at - 5, high)] if high is not None else []
        lows += [(at - 5, low)] if low is not None else []
        if top and (row.close > top[3] or at - top[1] > 120):
            top = None
        if bottom and (row.close < bottom[3] or at - bottom[1] > 120):
            bottom = None
        falls, rises = top and row.close < top[2], bottom and row.close > bottom[2]
        if rises and bottom and not (falls and top and top[0] >= bottom[0]):
            bottoms.append(at)
        elif falls:
            tops.append(at)
        if falls or rises:
            top = bottom = None
    return bottoms, tops


def double_bottoms(rows: Rows) -> list[int]:
    return double_patterns(rows)[0]


def bulge_ends(rows: Rows) -> list[bool]:
    """The mass index has been above 27 and falls below 26.5 at this bar."""
    once = ema([row.high - row.low for row in rows], 9)[8:]
    ratios = [a / b for a, b in zip(once[8:], ema(once, 9)[8:], strict=True)]  # type: ignore[arg-type, operator]
    found = [False] * (len(rows) - len(ratios) + 24)
    swollen = False
    for at in range(24, len(ratios)):
        mass = sum(ratios[at - 24 : at + 1])
        found.append(swollen and mass < 26.5)
        swollen = mass > 27 or (swollen and mass >= 26.5)
    return found


def mass_index(rows: Rows) -> list[int]:
    close = [row.close for row in rows]
    average, ends = ema(close, 9), bulge_ends(rows)

    def holds(at: int) -> bool:
        dropped = close[at] < average[at] and close[at - 1] >= average[at - 1]  # type: ignore[operator]
        return ends[at] and average[at] < average[at - 1] and not dropped  # type: ignore[operator]

    return where(len(rows), holds)


def mass_index_exits(rows: Rows) -> list[int]:
    close = [row.close for row in rows]
    average, ends = ema(close, 9), bulge_ends(rows)

    def holds(at: int) -> bool:
        dropped = close[at] < average[at] and close[at - 1] >= average[at - 1]  # type: ignore[operator]
        rising = ends[at] and average[at] > average[at - 1]  # type: ignore[operator]
        return at > 40 and (dropped or rising)  # the mass index begins at bar 40

    return where(len(rows), holds)


def deviation_lines(rows: Rows) -> tuple[Series, Series]:
    """Mean and lower line (two deviations) of the prices of the last 100 bars; a bar trades evenly over its range."""
    means: Series = [None] * 99
    lower: Series = [None] * 99
    for end in range(100, len(rows) + 1):
        window = rows[end - 100 : end]
        volume = sum(row.volume for row in window)
        mean = sum(row.volume * (row.high + row.low) / 2 for row in window) / volume
        parts = (
            row.volume * (((row.high + row.low) / 2 - mean) ** 2 + (row.high - row.low) ** 2 / 12) for row in window
        )
        means.append(mean)
        lower.append(mean - 2 * (sum(parts) / volume) ** 0.5)
    return means, lower


def volume_profile_deviations(rows: Rows) -> list[int]:
    close: Series = [row.close for row in rows]
    mean, lower = deviation_lines(rows)
    return where(len(rows), lambda at: crossed(close, lower, at) and close[at] < mean[at])  # type: ignore[operator]


def volume_profile_deviations_exits(rows: Rows) -> list[int]:
    close: Series = [row.close for row in rows]
    mean, lower = deviation_lines(rows)
    return where(len(rows), lambda at: close[at] > mean[at] or crossed(lower, close, at))  # type: ignore[operator]


def momentum_pinball_exits(rows: Rows) -> list[int]:
    changes = [100 * (now.close - then.close) / then.close for then, now in pairwise(rows)]
    pinball = [None, *rsi(changes, 3)]
    return where(len(rows), lambda at: pinball[at] > 70)  # type: ignore[operator]


EXITS: dict[str, Callable[[Rows], list[int]]] = {
    "MASS_INDEX": mass_index_exits,
    "MOMENTUM_PINBALL": momentum_pinball_exits,
    "VOLUME_PROFILE_DEVIATIONS": volume_profile_deviations_exits,
}
RULES: dict[str, Callable[[Rows], list[int]]] = {
    "MOMENTUM_PINBALL": momentum_pinball,
    "PRICE_GAP": price_gap,
    "VOLATILITY_STOP": volatility_stop,
    "FIBONACCI_RETRACEMENTS": fibonacci_retracements,
    "DOUBLE_TOP_BOTTOM": double_bottoms,
    "MASS_INDEX": mass_index,
    "VOLUME_PROFILE_DEVIATIONS": volume_profile_deviations,
}
