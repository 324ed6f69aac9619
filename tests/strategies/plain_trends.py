"""Entries and exits of strategies by trends and averages of the price, at their defaults, as published."""

from __future__ import annotations

from math import exp, log

from tests.strategies.plain_rules import Rows, Series, crossed, ema, over, true_ranges, where, wilder
from tests.strategies.plain_series import Closes, Rule, closes, combined, of_series


def directional(rows: Rows, length: int) -> tuple[Series, Series, Series]:
    """Wilder's ADX, +DI and -DI. The first bar has no movement."""
    ups, downs = [], []
    for at in range(1, len(rows)):
        up, down = rows[at].high - rows[at - 1].high, rows[at - 1].low - rows[at].low
        ups.append(up if up > down and up > 0 else 0.0)
        downs.append(down if down > up and down > 0 else 0.0)
    ranges = wilder(true_ranges(rows), length)
    plus = combined(lambda part, whole: 100 * part / whole, wilder(ups, length), ranges)
    minus = combined(lambda part, whole: 100 * part / whole, wilder(downs, length), ranges)
    index = combined(lambda up, down: 100 * abs(up - down) / (up + down), plus, minus)
    return [None, *of_series(wilder, index, length)], [None, *plus], [None, *minus]


def adx_dmi(rows: Rows) -> Closes:
    adx, plus, minus = directional(rows, 14)
    return where(len(rows), lambda at: over(plus[at], minus[at]) and over(adx[at], 25))


def adx_dmi_exit(rows: Rows) -> Closes:
    _, plus, minus = directional(rows, 14)
    return where(len(rows), lambda at: over(minus[at], plus[at]))


def tema_and_dema(rows: Rows) -> tuple[Series, Series]:
    """Mulloy's averages of 12 and of 26 bars."""

    def repeated(length: int) -> tuple[Series, Series, Series]:
        once = ema(closes(rows), length)
        twice = of_series(ema, once, length)
        return once, twice, of_series(ema, twice, length)

    once, twice, _ = repeated(26)
    double = combined(lambda first, second: 2 * first - second, once, twice)
    return combined(lambda first, second, third: 3 * first - 3 * second + third, *repeated(12)), double


def dema_tema_crossover(rows: Rows) -> Closes:
    tema, dema = tema_and_dema(rows)
    return where(len(rows), lambda at: crossed(tema, dema, at))


def dema_tema_exit(rows: Rows) -> Closes:
    tema, dema = tema_and_dema(rows)
    return where(len(rows), lambda at: crossed(dema, tema, at))


def double_ema_crossover(rows: Rows) -> Closes:
    fast, slow = ema(closes(rows), 12), ema(closes(rows), 26)
    return where(len(rows), lambda at: crossed(fast, slow, at))


def double_ema_exit(rows: Rows) -> Closes:
    fast, slow = ema(closes(rows), 12), ema(closes(rows), 26)
    return where(len(rows), lambda at: crossed(slow, fast, at))


def elder_ray_ma(rows: Rows) -> Closes:
    average = ema(closes(rows), 13)
    bear = combined(lambda low, mean: low - mean, [row.low for row in rows], average)

    def holds(at: int) -> bool:
        return over(average[at], average[at - 1]) and over(0, bear[at]) and over(bear[at], bear[at - 1])

    return where(len(rows), holds)


def elder_ray_exit(rows: Rows) -> Closes:
    average = ema(closes(rows), 13)
    return where(len(rows), lambda at: over(average[at - 1], average[at]))


def adaptive_average(rows: Rows) -> Series:
    """Ehlers' FRAMA of 16 bars: the fractal dimension of the path decides the weight of a bar's middle."""

    def slope(part: Rows) -> float:
        return (max(row.high for row in part) - min(row.low for row in part)) / len(part)

    found: Series = [None] * 15
    now = (rows[15].high + rows[15].low) / 2
    found.append(now)
    for at in range(16, len(rows)):
        window = rows[at - 15 : at + 1]
        dimension = log((slope(window[:8]) + slope(window[8:])) / slope(window)) / log(2)
        weight = min(1.0, max(0.01, exp(-4.6 * (dimension - 1))))
        now = weight * (rows[at].high + rows[at].low) / 2 + (1 - weight) * now
        found.append(now)
    return found


def frama(rows: Rows) -> Closes:
    close, average = closes(rows), adaptive_average(rows)
    return where(len(rows), lambda at: crossed(close, average, at))


def frama_exit(rows: Rows) -> Closes:
    close, average = closes(rows), adaptive_average(rows)
    return where(len(rows), lambda at: crossed(average, close, at))


def heikin_ashi_candles(rows: Rows) -> list[tuple[float, float]]:
    """The open and the close of each candle."""
    candles = [((rows[0].open + rows[0].close) / 2, sum(rows[0][:4]) / 4)]
    for row in rows[1:]:
        candles.append((sum(candles[-1]) / 2, sum(row[:4]) / 4))
    return candles


def heiken_ashi(rows: Rows) -> Closes:
    candles = heikin_ashi_candles(rows)
    return where(len(rows), lambda at: candles[at][1] > candles[at][0] and candles[at][1] > candles[at - 1][1])


def heiken_ashi_exit(rows: Rows) -> Closes:
    candles = heikin_ashi_candles(rows)
    return where(len(rows), lambda at: over(*candles[at]), first=0)


ENTRIES: dict[str, Rule] = {
    "ADX_DMI": adx_dmi,
    "DEMA_TEMA_CROSSOVER": dema_tema_crossover,
    "DOUBLE_EMA_CROSSOVER": double_ema_crossover,
    "ELDER_RAY_MA": elder_ray_ma,
    "FRAMA": frama,
    "HEIKEN_ASHI": heiken_ashi,
}
EXITS: dict[str, Rule] = {
    "ADX_DMI": adx_dmi_exit,
    "DEMA_TEMA_CROSSOVER": dema_tema_exit,
    "DOUBLE_EMA_CROSSOVER": double_ema_exit,
    "ELDER_RAY_MA": elder_ray_exit,
    "FRAMA": frama_exit,
    "HEIKEN_ASHI": heiken_ashi_exit,
}
