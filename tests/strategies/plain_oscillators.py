"""Entries and exits of strategies by oscillators of the price, at their defaults, as published."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from tests.strategies.plain_rules import Rows, Series, average_ranges, crossed, ema, later, over, rsi, sma, where
from tests.strategies.plain_series import Closes, Rule, closes, combined, highest, lowest, of_series
from tests.strategies.plain_trends import directional


def stochastic(rows: Rows) -> Series:
    """Lane's %K of 5 bars, smoothed over 3."""
    raw = combined(
        lambda close, top, bottom: 100 * (close - bottom) / (top - bottom),
        closes(rows),
        highest(rows, 5),
        lowest(rows, 5),
    )
    return of_series(sma, raw, 3)


def adx_stochastic(rows: Rows) -> Closes:
    (adx, plus, minus), line = directional(rows, 14), stochastic(rows)
    low = [20.0] * len(rows)

    def holds(at: int) -> bool:
        return crossed(line, low, at) and over(80, line[at]) and over(adx[at], 20) and over(plus[at], minus[at])

    return where(len(rows), holds)


def adx_stochastic_exit(rows: Rows) -> Closes:
    (_, plus, minus), line = directional(rows, 14), stochastic(rows)
    return where(len(rows), lambda at: over(minus[at], plus[at]) or over(line[at], 80))


def channel_index(rows: Rows) -> Series:
    """Lambert's commodity channel index of 20 bars."""
    typical = [(row.high + row.low + row.close) / 3 for row in rows]
    found: Series = [None] * 19
    for at in range(19, len(rows)):
        window = typical[at - 19 : at + 1]
        mean = sum(window) / 20
        found.append((typical[at] - mean) / (0.015 * sum(abs(each - mean) for each in window) / 20))
    return found


def atr_cci(rows: Rows) -> Closes:
    index, ranges = channel_index(rows), average_ranges(rows, 14)
    usual, level = of_series(sma, ranges, 20), [100.0] * len(rows)
    return where(len(rows), lambda at: crossed(index, level, at) and over(ranges[at], usual[at]))


def atr_cci_exit(rows: Rows) -> Closes:
    index = channel_index(rows)
    return where(len(rows), lambda at: over(100, index[at]))


def awesome(rows: Rows) -> Series:
    """Williams' oscillator: averages of 5 and 34 middles."""
    middles = [(row.high + row.low) / 2 for row in rows]
    return combined(lambda fast, slow: fast - slow, sma(middles, 5), sma(middles, 34))


def awesome_oscillator(rows: Rows) -> Closes:
    line, zero = awesome(rows), [0.0] * len(rows)
    return where(len(rows), lambda at: crossed(line, zero, at))


def awesome_exit(rows: Rows) -> Closes:
    line, zero = awesome(rows), [0.0] * len(rows)
    return where(len(rows), lambda at: crossed(zero, line, at))


def percent_r(rows: Rows) -> Series:
    """Larry Williams' %R of 14 bars, -100 to 0."""
    return combined(
        lambda close, top, bottom: -100 * (top - close) / (top - bottom),
        closes(rows),
        highest(rows, 14),
        lowest(rows, 14),
    )


def bband_williams_r(rows: Rows) -> Closes:
    close, place = closes(rows), percent_r(rows)

    def holds(at: int) -> bool:
        window = close[at - 19 : at + 1]
        mean = sum(window) / 20
        band = mean - 2 * sqrt(sum((each - mean) ** 2 for each in window) / 20)
        return over(band, close[at]) and over(-80, place[at])

    return where(len(rows), holds, first=19)


def bband_williams_r_exit(rows: Rows) -> Closes:
    close, mean, place = closes(rows), sma(closes(rows), 20), percent_r(rows)
    return where(len(rows), lambda at: over(close[at], mean[at]) or over(place[at], -20))


def detrended(rows: Rows) -> Series:
    """The close less the average of 20 bars of 11 bars ago, which is half of them and one."""
    return combined(lambda close, mean: close - mean, closes(rows), [*[None] * 11, *sma(closes(rows), 20)[:-11]])


def dpo_crossover(rows: Rows) -> Closes:
    line, zero = detrended(rows), [0.0] * len(rows)
    return where(len(rows), lambda at: crossed(line, zero, at))


def dpo_exit(rows: Rows) -> Closes:
    line, zero = detrended(rows), [0.0] * len(rows)
    return where(len(rows), lambda at: crossed(zero, line, at))


def macd_and_signal(close: Sequence[float]) -> tuple[Series, Series]:
    """Appel's difference of averages of 12 and 26 bars, and its average of 9."""
    line = combined(lambda fast, slow: fast - slow, ema(close, 12), ema(close, 26))
    return line, of_series(ema, line, 9)


def macd_crossover(rows: Rows) -> Closes:
    macd, signal = macd_and_signal(closes(rows))
    return where(len(rows), lambda at: crossed(macd, signal, at))


def macd_exit(rows: Rows) -> Closes:
    macd, signal = macd_and_signal(closes(rows))
    return where(len(rows), lambda at: crossed(signal, macd, at))


def ema_macd(rows: Rows) -> Closes:
    close, (macd, signal) = closes(rows), macd_and_signal(closes(rows))
    trend = ema(close, 50)
    return where(len(rows), lambda at: crossed(macd, signal, at) and over(close[at], trend[at]))


def ema_macd_exit(rows: Rows) -> Closes:
    macd, signal = macd_and_signal(closes(rows))
    return where(len(rows), lambda at: over(signal[at], macd[at]))


def know_sure_thing(rows: Rows) -> tuple[Series, Series]:
    """Pring's sum of four smoothed rates of change, and its average of 9 bars."""
    close, parts = closes(rows), []
    for weight, (length, smooth) in enumerate([(10, 10), (15, 10), (20, 10), (30, 15)], start=1):
        rates = [100 * (now - then) / then for now, then in zip(close[length:], close[:-length], strict=True)]
        parts.append([None if rate is None else weight * rate for rate in [*[None] * length, *sma(rates, smooth)]])
    line = combined(lambda *values: sum(values), *parts)
    return line, of_series(sma, line, 9)


def kst_oscillator(rows: Rows) -> Closes:
    line, signal = know_sure_thing(rows)
    return where(len(rows), lambda at: crossed(line, signal, at))


def kst_exit(rows: Rows) -> Closes:
    line, signal = know_sure_thing(rows)
    return where(len(rows), lambda at: crossed(signal, line, at))


def momentum_and_average(rows: Rows) -> tuple[Series, Series]:
    """The change of the close over 10 bars, and its average of 20."""
    close = closes(rows)
    line = later([now - then for now, then in zip(close[10:], close[:-10], strict=True)], 10)
    return line, of_series(sma, line, 20)


def momentum_sma_crossover(rows: Rows) -> Closes:
    line, average = momentum_and_average(rows)
    return where(len(rows), lambda at: crossed(line, average, at))


def momentum_sma_exit(rows: Rows) -> Closes:
    line, average = momentum_and_average(rows)
    return where(len(rows), lambda at: crossed(average, line, at))


def price_oscillator(rows: Rows) -> tuple[Series, Series]:
    """The distance of the average of 12 bars from that of 26 in per cent, and its average of 9 bars."""
    close = closes(rows)
    line = combined(lambda fast, slow: 100 * (fast - slow) / slow, ema(close, 12), ema(close, 26))
    return line, of_series(ema, line, 9)


def price_oscillator_signal(rows: Rows) -> Closes:
    line, signal = price_oscillator(rows)
    return where(len(rows), lambda at: crossed(line, signal, at))


def price_oscillator_exit(rows: Rows) -> Closes:
    line, signal = price_oscillator(rows)
    return where(len(rows), lambda at: crossed(signal, line, at))


def sma_rsi(rows: Rows) -> Closes:
    close, trend, short = closes(rows), sma(closes(rows), 200), rsi(closes(rows), 2)
    return where(len(rows), lambda at: over(close[at], trend[at]) and over(5, short[at]))


def sma_rsi_exit(rows: Rows) -> Closes:
    close, short = closes(rows), sma(closes(rows), 5)
    return where(len(rows), lambda at: over(close[at], short[at]))


ENTRIES: dict[str, Rule] = {
    "ADX_STOCHASTIC": adx_stochastic,
    "ATR_CCI": atr_cci,
    "AWESOME_OSCILLATOR": awesome_oscillator,
    "BBAND_WILLIAMS_R": bband_williams_r,
    "DPO_CROSSOVER": dpo_crossover,
    "EMA_MACD": ema_macd,
    "KST_OSCILLATOR": kst_oscillator,
    "MACD_CROSSOVER": macd_crossover,
    "MOMENTUM_SMA_CROSSOVER": momentum_sma_crossover,
    "PRICE_OSCILLATOR_SIGNAL": price_oscillator_signal,
    "SMA_RSI": sma_rsi,
}
EXITS: dict[str, Rule] = {
    "ADX_STOCHASTIC": adx_stochastic_exit,
    "ATR_CCI": atr_cci_exit,
    "AWESOME_OSCILLATOR": awesome_exit,
    "BBAND_WILLIAMS_R": bband_williams_r_exit,
    "DPO_CROSSOVER": dpo_exit,
    "EMA_MACD": ema_macd_exit,
    "KST_OSCILLATOR": kst_exit,
    "MACD_CROSSOVER": macd_exit,
    "MOMENTUM_SMA_CROSSOVER": momentum_sma_exit,
    "PRICE_OSCILLATOR_SIGNAL": price_oscillator_exit,
    "SMA_RSI": sma_rsi_exit,
}
