"""Entries and exits of strategies at stops, channels and levels of the price, at their defaults, as published."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from tests.strategies.plain_rules import Row, Rows, Series, average_ranges, crossed, ema, over, where
from tests.strategies.plain_series import Closes, Rule, closes, combined, highest, lowest


def chandelier(rows: Rows) -> tuple[Series, Series]:
    """The stops of long and of short positions: three average ranges from the extreme of 22 bars."""
    ranges = average_ranges(rows, 22)
    long = combined(lambda top, size: top - 3 * size, highest(rows, 22), ranges)
    return long, combined(lambda bottom, size: bottom + 3 * size, lowest(rows, 22), ranges)


def atr_trailing_stop(rows: Rows) -> Closes:
    close, (long, short) = closes(rows), chandelier(rows)
    return where(len(rows), lambda at: over(close[at], short[at]) and over(close[at], long[at]))


def atr_trailing_stop_exit(rows: Rows) -> Closes:
    close, (long, _) = closes(rows), chandelier(rows)
    return where(len(rows), lambda at: over(long[at], close[at]))


def donchian_breakout(rows: Rows) -> Closes:
    """A new high of 20 bars, without a new low of 10."""

    def holds(at: int) -> bool:
        new_low = rows[at].low < min(row.low for row in rows[at - 10 : at])
        return rows[at].high > max(row.high for row in rows[at - 20 : at]) and not new_low

    return where(len(rows), holds, first=20)


def donchian_exit(rows: Rows) -> Closes:
    return where(len(rows), lambda at: rows[at].low < min(row.low for row in rows[at - 10 : at]), first=10)


def swing_chart(rows: Rows) -> tuple[list[int], Series, Series]:
    """The direction of Gann's chart of two bars, and the last completed swing high and swing low, at each bar.

    It turns up after two higher highs in a row and down after two lower lows, each compared with the last bar that is not
    inside the bar before.
    """
    direction, turn, last = 0, 0, rows[0]
    higher, lower = 0, 0
    top: float | None = None
    bottom: float | None = None
    ways, tops, bottoms = list[int](), list[float | None](), list[float | None]()
    for at, row in enumerate(rows):
        if row.high > last.high or row.low < last.low:
            higher = higher + 1 if row.high > last.high else 0
            lower = lower + 1 if row.low < last.low else 0
            last = row
            turned = 1 if higher >= 2 and direction < 1 else -1 if lower >= 2 and direction > -1 else 0
            leg = rows[turn : at + 1]
            if turned == 1 and direction == -1:
                bottom = min(each.low for each in leg)
            if turned == -1 and direction == 1:
                top = max(each.high for each in leg)
            if turned:
                direction, turn = turned, at
        ways.append(direction)
        tops.append(top)
        bottoms.append(bottom)
    return ways, tops, bottoms


def gann_swing(rows: Rows) -> Closes:
    ways, tops, _ = swing_chart(rows)
    return where(len(rows), lambda at: ways[at] > 0 and over(rows[at].close, tops[at]))


def gann_swing_exit(rows: Rows) -> Closes:
    _, _, bottoms = swing_chart(rows)
    return where(len(rows), lambda at: over(bottoms[at], rows[at].close))


def middle(rows: Rows, at: int, length: int) -> float:
    """Half way between the highest high and the lowest low of the bars up to one."""
    window = rows[at - length + 1 : at + 1]
    return (max(row.high for row in window) + min(row.low for row in window)) / 2


def cloud(rows: Rows, at: int) -> tuple[float, float]:
    """The two spans, drawn 25 bars ahead; from bar 76 on."""
    before = at - 25
    return (middle(rows, before, 9) + middle(rows, before, 26)) / 2, middle(rows, before, 52)


def ichimoku_cloud(rows: Rows) -> Closes:
    def holds(at: int) -> bool:
        above = rows[at].close > max(cloud(rows, at)) and rows[at].close > rows[at - 26].close
        return above and over(middle(rows, at, 9), middle(rows, at, 26))

    return where(len(rows), holds, first=76)


def ichimoku_exit(rows: Rows) -> Closes:
    def holds(at: int) -> bool:
        return over(middle(rows, at, 26), middle(rows, at, 9)) or rows[at].close < min(cloud(rows, at))

    return where(len(rows), holds, first=76)


def regression(values: Sequence[float]) -> tuple[float, float, float]:
    """The end of the least-squares line, its rise per bar, and the population deviation of the values from it."""
    count = len(values)
    mean_place, mean = (count - 1) / 2, sum(values) / count
    squares = sum((place - mean_place) ** 2 for place in range(count))
    rise = sum((place - mean_place) * (value - mean) for place, value in enumerate(values)) / squares
    away = [value - mean - rise * (place - mean_place) for place, value in enumerate(values)]
    return mean + rise * (count - 1 - mean_place), rise, sqrt(sum(each * each for each in away) / count)


def linear_regression_channels(rows: Rows) -> Closes:
    close = closes(rows)

    def holds(at: int) -> bool:
        end, rise, deviation = regression(close[at - 49 : at + 1])
        return rise > 0 and over(end - 2 * deviation, close[at])

    return where(len(rows), holds, first=49)


def linear_regression_exit(rows: Rows) -> Closes:
    close = closes(rows)

    def holds(at: int) -> bool:
        end, rise, deviation = regression(close[at - 49 : at + 1])
        return rise < 0 or over(close[at], end + 2 * deviation)

    return where(len(rows), holds, first=49)


def parabolic_stops(rows: Rows) -> Series:
    """Wilder's stops. As in TradingView, the second close decides the first side, and the stop of a bar is not beyond the
    range of the two bars before it."""
    rising = rows[1].close > rows[0].close
    stop, extreme = (rows[0].low, rows[1].high) if rising else (rows[0].high, rows[1].low)
    factor, found = 0.02, list[float]()

    def further(row: Row) -> bool:
        return row.high > extreme if rising else row.low < extreme

    for at in range(1, len(rows)):
        row, before = rows[at], rows[max(at - 2, 0) : at]
        stop += factor * (extreme - stop)
        if row.low < stop if rising else row.high > stop:
            stop = max(row.high, extreme) if rising else min(row.low, extreme)
            rising, factor = not rising, 0.02
            extreme = row.high if rising else row.low
        elif further(row):
            extreme, factor = row.high if rising else row.low, min(factor + 0.02, 0.2)
        limits = [each.low if rising else each.high for each in before]
        stop = min(stop, *limits) if rising else max(stop, *limits)
        found.append(stop)
    return [None, *found]


def parabolic_sar(rows: Rows) -> Closes:
    close, stops = closes(rows), parabolic_stops(rows)
    return where(len(rows), lambda at: crossed(close, stops, at))


def parabolic_sar_exit(rows: Rows) -> Closes:
    close, stops = closes(rows), parabolic_stops(rows)
    return where(len(rows), lambda at: crossed(stops, close, at))


def pivot(rows: Rows) -> Closes:
    """On days, the session before is the bar before."""
    close = closes(rows)
    pivots: Series = [None, *[(row.high + row.low + row.close) / 3 for row in rows[:-1]]]
    trend = ema(close, 20)

    def holds(at: int) -> bool:
        resistance = 2 * pivots[at] - rows[at - 1].low  # type: ignore[operator]
        return crossed(close, pivots, at) and over(close[at], trend[at]) and over(resistance, close[at])

    return where(len(rows), holds)


def pivot_exit(rows: Rows) -> Closes:
    """Above the first resistance or below the first support."""

    def holds(at: int) -> bool:
        close, then = rows[at].close, rows[at - 1]
        twice = 2 * (then.high + then.low + then.close) / 3
        return over(close, twice - then.low) or over(twice - then.high, close)

    return where(len(rows), holds)


ENTRIES: dict[str, Rule] = {
    "ATR_TRAILING_STOP": atr_trailing_stop,
    "DONCHIAN_BREAKOUT": donchian_breakout,
    "GANN_SWING": gann_swing,
    "ICHIMOKU_CLOUD": ichimoku_cloud,
    "LINEAR_REGRESSION_CHANNELS": linear_regression_channels,
    "PARABOLIC_SAR": parabolic_sar,
    "PIVOT": pivot,
}
EXITS: dict[str, Rule] = {
    "ATR_TRAILING_STOP": atr_trailing_stop_exit,
    "DONCHIAN_BREAKOUT": donchian_exit,
    "GANN_SWING": gann_swing_exit,
    "ICHIMOKU_CLOUD": ichimoku_exit,
    "LINEAR_REGRESSION_CHANNELS": linear_regression_exit,
    "PARABOLIC_SAR": parabolic_sar_exit,
    "PIVOT": pivot_exit,
}
