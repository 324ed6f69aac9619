"""Averages, bands and stops under a vendor's names, held against plain loops from their definitions, and TA-Lib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import cos, exp, fsum, isnan, nan, pi, sqrt

import numpy as np
import talib

from openbell.indicators.registry import get
from openbell.market.bars import Bars, make
from openbell.market.timeframes import Timeframe
from tests.indicators import references
from tests.indicators.test_panels import columns, windows
from tests.indicators.test_references import agree, lines
from tests.market.walks import CRYPTO, at, closes, minutes, walk

PRICES = (0.0000123, 4.2, 245.5, 98234.5)


@cache
def walks() -> tuple[Bars, ...]:
    """One walk per price, each of 300 bars."""
    time = minutes("2025-03-04T20:00Z", "2025-03-05T01:00Z")
    return tuple(walk(time, seed, price=price, step=0.004) for seed, price in enumerate(PRICES))


def of_bars(rows: Sequence[tuple[float, float, float, float]], volume: Sequence[float] | None = None) -> Bars:
    """Bars from open, high, low and close."""
    time = at("2025-03-04T00:00Z") + 60 * np.arange(len(rows))
    return make(CRYPTO, Timeframe.M1, time, *zip(*rows, strict=True), np.ones(len(rows)) if volume is None else volume)


def weighed(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The mean of the newest values by weights, oldest first."""
    return [
        nan if window is None else fsum(w * value for w, value in zip(weights, window, strict=True)) / fsum(weights)
        for window in windows(values, len(weights))
    ]


def later(values: Sequence[float], by: int) -> list[float]:
    return [nan if i < by else values[i - by] for i in range(len(values))]


def middles(bars: Bars) -> list[float]:
    return [(high + low) / 2 for high, low in zip(*columns(bars, "high", "low"), strict=True)]


def by_method(values: Sequence[float], length: int) -> Iterator[tuple[str, list[float]]]:
    """The three averages that a method names, of values that may begin with NaN."""
    yield "simple", [nan if window is None else fsum(window) / length for window in windows(values, length)]
    yield "exponential", references.ema(values, length)
    yield "weighted", weighed(values, range(1, length + 1))


def test_smma() -> None:
    for bars in walks():
        for length in (1, 2, 7, 30):
            expected = references.wilder(bars.close.tolist(), length)
            assert agree(lines("smma", bars, length=length)["SMMA"], expected)


def test_alma() -> None:
    """Legoux and Kouzis-Loukas 2009: exp(−(i − m)² / 2s²), m = offset (length − 1), s = length / sigma."""
    for bars in walks():
        for length, offset, sigma in ((9, 0.85, 6.0), (20, 0.0, 3.0), (2, 1.0, 100.0), (1, 0.5, 6.0)):
            m, s = offset * (length - 1), length / sigma
            expected = weighed(bars.close.tolist(), [exp(-((i - m) ** 2) / (2 * s * s)) for i in range(length)])
            assert agree(lines("alma", bars, length=length, offset=offset, sigma=sigma)["ALMA"], expected)


def test_hamming() -> None:
    """Hamming's window as numpy has it, and written out."""
    for bars in walks():
        for length in (1, 2, 3, 10, 51):
            found = lines("hamming", bars, length=length)["Hamming"]
            assert agree(found, weighed(bars.close.tolist(), np.hamming(length).tolist()))
    weights = [0.54 - 0.46 * cos(2 * pi * i / 9) for i in range(10)]
    assert agree(lines("hamming", walks()[0])["Hamming"], weighed(walks()[0].close.tolist(), weights))


def mcginley_of(close: Sequence[float], length: int) -> list[float]:
    """McGinley 1990, as in TradingView: MD[1] + (close − MD[1]) / (length (close / MD[1])⁴), from the average on."""
    out, level = [], nan
    for value, seed in zip(close, references.sma(close, length), strict=True):
        level = seed if level != level else level + (value - level) / (length * (value / level) ** 4)
        out.append(level)
    return out


def test_mcginley() -> None:
    for bars in walks():
        for length in (2, 10, 14):
            expected = mcginley_of(bars.close.tolist(), length)
            assert agree(lines("mcginley", bars, length=length)["McGinley"], expected)
    crash = lines("mcginley", closes([100.0] * 12 + [1.0] * 3))["McGinley"]
    assert crash[9:].tolist() == [100.0] * 3 + [1.0] * 3, "it does not pass the close"


def test_price_channel() -> None:
    for bars in walks():
        high, low = columns(bars, "high", "low")
        for length in (1, 2, 20):
            found = lines("price_channel", bars, length=length)
            assert agree(found["upper"], [nan if w is None else max(w) for w in windows(high, length)])
            assert agree(found["lower"], [nan if w is None else min(w) for w in windows(low, length)])


def test_envelope() -> None:
    for bars in walks():
        for length, upper, lower in ((20, 2.0, 2.0), (5, 10.0, 0.5), (1, 100.0, 100.0)):
            for method, middle in by_method(bars.close.tolist(), length):
                found = lines("envelope", bars, length=length, upper=upper, lower=lower, method=method)
                assert agree(found["middle"], middle)
                assert agree(found["upper"], [value + value * upper / 100 for value in middle])
                assert agree(found["lower"], [value - value * lower / 100 for value in middle], scale=bars.close[0])


def test_ma_channel() -> None:
    for bars in walks():
        high, low = columns(bars, "high", "low")
        for upper, lower, right, left in ((20, 20, 0, 0), (3, 8, 5, 1), (8, 3, 0, 40)):
            found = lines(
                "ma_channel", bars, upper_length=upper, lower_length=lower, upper_offset=right, lower_offset=left
            )
            assert agree(found["upper"], later(references.sma(high, upper), right))
            assert agree(found["lower"], later(references.sma(low, lower), left))


def test_alligator() -> None:
    """Williams 1995: smoothed averages of the middle over 21, 13 and 8 bars, moved 8, 5 and 3 bars into the future."""
    for bars in walks():
        middle = middles(bars)
        found = lines("alligator", bars)
        for name, length, offset in (("Jaw", 21, 8), ("Teeth", 13, 5), ("Lips", 8, 3)):
            assert agree(found[name], later(references.wilder(middle, length), offset))
        found = lines("alligator", bars, jaw=5, teeth=3, lips=2, jaw_offset=0, teeth_offset=30, lips_offset=1)
        assert agree(found["Jaw"], references.wilder(middle, 5))
        assert agree(found["Teeth"], later(references.wilder(middle, 3), 30))
        assert agree(found["Lips"], later(references.wilder(middle, 2), 1))


def kama_of(close: Sequence[float], length: int, fast: int, slow: int) -> list[float]:
    """Kaufman 1995: KAMA[1] + c² (close − KAMA[1]), c = ER (fast − slow) + slow. It starts at the close before."""
    out, level = [nan] * length, close[length - 1]
    for i in range(length, len(close)):
        path = fsum(abs(close[j] - close[j - 1]) for j in range(i - length + 1, i + 1))
        ratio = abs(close[i] - close[i - length]) / path if path else 0.0
        level += (ratio * (2 / (fast + 1) - 2 / (slow + 1)) + 2 / (slow + 1)) ** 2 * (close[i] - level)
        out.append(level)
    return out


def test_kama() -> None:
    for bars in walks():
        for length, fast, slow in ((10, 2, 30), (1, 1, 1), (5, 10, 3), (30, 3, 100)):
            expected = kama_of(bars.close.tolist(), length, fast, slow)
            assert agree(lines("kama", bars, length=length, fast=fast, slow=slow)["KAMA"], expected)
        assert agree(lines("kama", bars)["KAMA"], talib.KAMA(bars.close, 10))
    assert lines("kama", closes([7.1] * 20))["KAMA"][10:].tolist() == [7.1] * 10


def fitted(values: Sequence[float], length: int) -> tuple[list[float], list[float], list[float]]:
    """Slope, end and standard error (length − 2 degrees of freedom) of the least-squares line, as in a textbook."""
    found: list[tuple[float, float, float]] = []
    for window in windows(values, length):
        if window is None:
            found.append((nan, nan, nan))
            continue
        x_mean, y_mean = (length - 1) / 2, fsum(window) / length
        sxx = fsum((x - x_mean) ** 2 for x in range(length))
        slope = fsum((x - x_mean) * (y - y_mean) for x, y in enumerate(window)) / sxx
        rest = fsum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in enumerate(window))
        error = sqrt(rest / (length - 2)) if length > 2 else nan
        found.append((slope, y_mean + slope * (length - 1 - x_mean), error))
    slopes, ends, errors = map(list, zip(*found, strict=True))
    return slopes, ends, errors


def test_std_error_bands() -> None:
    """Andersen 1996: the regression's end over 21 closes and its standard errors, both averaged over 3 bars."""
    for bars in walks():
        for length, errors, average in ((21, 2.0, 3), (3, 1.0, 1), (10, 0.5, 8)):
            _, ends, error = fitted(bars.close.tolist(), length)
            pairs = zip(by_method(ends, average), by_method(error, average), strict=True)
            for (method, middle), (_, width) in pairs:
                found = lines("std_error_bands", bars, length=length, errors=errors, average=average, method=method)
                assert agree(found["middle"], middle)
                assert agree(found["upper"], [m + errors * w for m, w in zip(middle, width, strict=True)])
                assert agree(found["lower"], [m - errors * w for m, w in zip(middle, width, strict=True)])


def test_chande_kroll() -> None:
    """Chande and Kroll 1994: extremes over q bars of the stops from extremes over p bars and x average true ranges.

    TradingView leaves bars without a stop out of the first windows.
    """
    for bars in walks():
        high, low, close = columns(bars, "high", "low", "close")
        for p, x, q in ((10, 1.0, 9), (1, 0.5, 1), (4, 3.0, 20)):
            room = references.atr(high, low, close, p)
            first_high = [nan if w is None else max(w) - x * r for w, r in zip(windows(high, p), room, strict=True)]
            first_low = [nan if w is None else min(w) + x * r for w, r in zip(windows(low, p), room, strict=True)]
            found = lines("chande_kroll", bars, atr_length=p, multiplier=x, stop_length=q)
            for stops, label, extreme in ((first_high, "short", max), (first_low, "long", min)):
                parts = [stops[max(0, end - q) : end] if end >= q else [] for end in range(1, len(stops) + 1)]
                known = [[stop for stop in part if not isnan(stop)] for part in parts]
                assert agree(found[label], [extreme(part) if part else nan for part in known])


def fractal_tops(high: Sequence[float], n: int) -> dict[int, float]:
    """TradingView's listing: n lower bars after the centre; n lower bars before it, or after up to 4 that are not higher."""
    found = {}
    for at_bar in range(2 * n, len(high)):
        c = at_bar - n
        after = all(high[c + i] < high[c] for i in range(1, n + 1))
        for plateau in range(5):
            first = c - plateau - n
            if after and first >= 0:
                level = all(high[c - i] <= high[c] for i in range(1, plateau + 1))
                if level and all(high[i] < high[c] for i in range(first, c - plateau)):
                    found[at_bar] = high[c]
    return found


def test_fractals() -> None:
    for bars in walks():
        tick = float(bars.close[0]) / 300
        high, low = (np.round(column / tick) * tick for column in (bars.high, bars.low))
        coarse = make(CRYPTO, Timeframe.M1, bars.time, low, high, low, high, bars.volume)
        for each in (bars, coarse):
            for length in (2, 3, 7):
                ups = fractal_tops(each.high.tolist(), length)
                downs = {index: -low for index, low in fractal_tops((-each.low).tolist(), length).items()}
                result = get("fractals").run(each, length=length)
                signals = {(s.index, s.label): s.value for s in result.signals}
                expected = {(index, "fractal_up"): price for index, price in ups.items()}
                expected |= {(index, "fractal_down"): price for index, price in downs.items()}
                assert signals == expected
                assert len(ups) > 2
                for line, levels in zip(result.lines, (ups, downs), strict=True):
                    held = [levels[max(k for k in levels if k <= i)] if i >= min(levels) else nan for i in range(300)]
                    assert agree(line.values, held)


def test_a_fractal_is_the_last_of_up_to_five_equal_highs() -> None:
    for equal in range(1, 8):
        high = [1.0, 2.0, *[3.0] * equal, 2.0, 1.0, 1.0]
        signals = get("fractals").run(closes(high)).signals
        found = [(s.index, s.value) for s in signals if s.label == "fractal_up"]
        assert found == ([(3 + equal, 3.0)] if equal <= 5 else []), equal


def wilder_level_of(bars: Bars, length: int, multiplier: float) -> list[float]:
    """Wilder 1978, the volatility system: SAR = SIC ∓ C × ATR, reversed by a close beyond yesterday's SAR."""
    high, low, close = columns(bars, "high", "low", "close")
    out: list[float] = []
    long, since = True, length - 1
    for i, room in enumerate(references.atr(high, low, close, length)):
        if room != room:
            out.append(nan)
            continue
        if i > length - 1 and (close[i] < out[-1] if long else close[i] > out[-1]):
            long, since = not long, i
        held = close[since : i + 1]
        out.append(max(held) - multiplier * room if long else min(held) + multiplier * room)
    return out


def test_volatility_index() -> None:
    for bars in walks():
        for length, multiplier in ((10, 3.0), (1, 0.5), (20, 2.0)):
            found = lines("volatility_index", bars, length=length, multiplier=multiplier)["Level"]
            assert agree(found, wilder_level_of(bars, length, multiplier))
            sides = np.sign(bars.close - found)
            assert {-1.0, 1.0} <= set(sides.tolist()), "it reverses"
    assert lines("volatility_index", closes([2.7] * 20))["Level"][9:].tolist() == [2.7] * 11
