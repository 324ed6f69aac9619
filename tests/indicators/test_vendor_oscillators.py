"""Oscillators under a vendor's names, held against plain loops from their definitions, and TA-Lib."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import acos, degrees, fsum, log, nan, sqrt

import numpy as np
import pytest
import talib

from tests.indicators import references
from tests.indicators.test_panels import columns, windows
from tests.indicators.test_references import agree, lines
from tests.indicators.test_vendor_averages import fitted, middles, of_bars, walks, weighed
from tests.market.walks import closes


def steps(values: Sequence[float]) -> list[float]:
    return [nan, *(b - a for a, b in pairwise(values))]


def test_bop() -> None:
    """Livshin 2001: (close − open) / (high − low), and TA-Lib's BOP."""
    for bars in walks():
        found = lines("bop", bars)["BOP"]
        rows = zip(*columns(bars, "open", "high", "low", "close"), strict=True)
        assert agree(found, [(close - opened) / (high - low) for opened, high, low, close in rows])
        assert agree(found, talib.BOP(bars.open, bars.high, bars.low, bars.close))
    assert lines("bop", of_bars([(5, 5, 5, 5), (4, 6, 4, 6), (6, 6, 4, 4)]))["BOP"].tolist() == [0.0, 1.0, -1.0]


def test_net_volume() -> None:
    bars = of_bars([(c, c, c, c) for c in (5, 6, 6, 4, 7)], volume=[1, 2, 3, 4, 5])
    assert agree(lines("net_volume", bars)["Net"], [nan, 2.0, 0.0, -4.0, 5.0])
    for each in walks():
        found = np.nancumsum(lines("net_volume", each)["Net"]) + each.volume[0]
        assert agree(found, talib.OBV(each.close, each.volume), scale=1e6)


def test_majority_rule() -> None:
    for bars in walks():
        for length in (1, 5, 14):
            expected = [
                nan if window is None else 100 * sum(step > 0 for step in window) / length
                for window in windows(steps(bars.close.tolist()), length)
            ]
            assert agree(lines("majority_rule", bars, length=length)["Majority"], expected)
    assert lines("majority_rule", closes([1, 2, 2, 3, 2]), length=4)["Majority"][-1] == 50.0


def test_advance_decline() -> None:
    for bars in walks():
        for length in (1, 3, 10):
            expected = [
                nan if window is None else sum(step > 0 for step in window) / max(1, sum(step < 0 for step in window))
                for window in windows(steps(bars.close.tolist()), length)
            ]
            assert agree(lines("advance_decline", bars, length=length)["A/D"], expected)
    found = lines("advance_decline", closes([1, 2, 3, 3, 2, 1, 0, 0, 0, 0]), length=3)["A/D"]
    assert agree(found, [nan, nan, nan, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_percent_b() -> None:
    for bars in walks():
        for length, width in ((20, 2.0), (2, 0.5), (50, 3.0)):
            upper, _, lower = references.bbands(bars.close.tolist(), length, width)
            expected = [(c - low) / (up - low) for c, up, low in zip(bars.close.tolist(), upper, lower, strict=True)]
            assert agree(lines("percent_b", bars, length=length, std_dev=width)["%b"], expected, scale=1.0)
    assert lines("percent_b", closes([3.3] * 30))["%b"][19:].tolist() == [0.5] * 11


def test_volume_oscillator() -> None:
    for bars in walks():
        for short, long in ((5, 10), (10, 5), (1, 30)):
            quick, calm = (references.ema(bars.volume.tolist(), length) for length in (short, long))
            expected = [100 * (a - b) / b for a, b in zip(quick, calm, strict=True)]
            found = lines("volume_oscillator", bars, short=short, long=long)["Volume Osc"]
            assert agree(found, expected, scale=1.0)


def test_linreg_slope() -> None:
    """The textbook's, and TA-Lib's."""
    for bars in walks():
        price = float(bars.close.max())
        for length in (2, 3, 14, 60):
            found = lines("linreg_slope", bars, length=length)["Slope"]
            assert agree(found, fitted(bars.close.tolist(), length)[0], scale=1e-4 * price)
            assert agree(found, talib.LINEARREG_SLOPE(bars.close, length), scale=price)
    assert lines("linreg_slope", closes([1e6] * 20))["Slope"][13:].tolist() == [0.0] * 7


def test_trend_strength() -> None:
    """Pearson's correlation as numpy computes it, and TA-Lib's."""
    for bars in walks():
        number = np.arange(len(bars), dtype=np.float64)
        for length in (3, 9, 50):
            found = lines("trend_strength", bars, length=length)["TSI"]
            expected = [
                nan if window is None else np.corrcoef(window, range(length))[0, 1]
                for window in windows(bars.close.tolist(), length)
            ]
            assert agree(found, expected, scale=1.0)
            if bars.close[0] > 1.0:
                assert np.allclose(found, talib.CORREL(bars.close, number, length), atol=1e-6, equal_nan=True)
    assert lines("trend_strength", closes([5.0] * 12))["TSI"][8:].tolist() == [0.0] * 4
    assert lines("trend_strength", closes(np.arange(1.0, 13.0)))["TSI"][8:].tolist() == [1.0] * 4
    assert lines("trend_strength", closes(np.arange(13.0, 1.0, -1.0)))["TSI"][8:].tolist() == [-1.0] * 4


def strength_of(close: Sequence[float], long: int, short: int) -> list[float]:
    """Blau 1991: EMA(EMA(change, long), short) / EMA(EMA(|change|, long), short)."""
    change = steps(close)
    net, size = (
        references.ema(references.ema(values, long), short) for values in (change, [abs(each) for each in change])
    )
    return [a / b for a, b in zip(net, size, strict=True)]


def test_tsi() -> None:
    for bars in walks():
        for long, short, signal in ((25, 13, 13), (1, 1, 1), (3, 8, 2)):
            found = lines("tsi", bars, long=long, short=short, signal=signal)
            expected = [100 * each for each in strength_of(bars.close.tolist(), long, short)]
            assert agree(found["TSI"], expected, scale=1.0)
            assert agree(found["Signal"], references.ema(expected, signal), scale=1.0)
    assert lines("tsi", closes([3.0] * 60))["Signal"][50:].tolist() == [0.0] * 10


def test_smi_ergodic() -> None:
    for bars in walks():
        for short, long, signal in ((5, 20, 5), (1, 1, 1), (9, 4, 3)):
            found = lines("smi_ergodic", bars, short=short, long=long, signal=signal)
            expected = strength_of(bars.close.tolist(), long, short)
            assert agree(found["SMI"], expected, scale=1.0)
            assert agree(found["Signal"], references.ema(expected, signal), scale=1.0)


def test_smi_oscillator() -> None:
    for bars in walks():
        for short, long, signal in ((5, 20, 5), (2, 3, 4)):
            line = strength_of(bars.close.tolist(), long, short)
            expected = [a - b for a, b in zip(line, references.ema(line, signal), strict=True)]
            found = lines("smi_oscillator", bars, short=short, long=long, signal=signal)["Histogram"]
            assert agree(found, expected, scale=1.0)


def rate(close: Sequence[float], length: int) -> list[float]:
    return [nan if i < length else 100 * (close[i] - close[i - length]) / close[i - length] for i in range(len(close))]


def test_coppock() -> None:
    """Coppock 1962: WMA(10) of ROC(14) + ROC(11), and TA-Lib's averages of them."""
    for bars in walks():
        close = bars.close.tolist()
        for average, long, short in ((10, 14, 11), (1, 1, 1), (5, 3, 20)):
            rates = [a + b for a, b in zip(rate(close, long), rate(close, short), strict=True)]
            found = lines("coppock", bars, wma_length=average, long_roc=long, short_roc=short)["Coppock"]
            assert agree(found, weighed(rates, range(1, average + 1)), scale=1.0)
        plain = talib.WMA(talib.ROC(bars.close, 14)[14:] + talib.ROC(bars.close, 11)[14:], 10)
        assert agree(lines("coppock", bars)["Coppock"][14:], plain, scale=1.0)


def connors_of(close: Sequence[float], rsi: int, streak: int, rank: int) -> list[float]:
    """Connors and Alvarez 2012. As in TradingView, the first bar is one of the bars ranked, with no change."""
    streaks, run = [0.0], 0
    for before, now in pairwise(close):
        side = (now > before) - (now < before)
        run = 0 if side == 0 else run + side if run * side > 0 else side
        streaks.append(float(run))
    ranks = [nan] * len(close)
    changes = [Fraction(now) / Fraction(before) for before, now in pairwise(close)]
    for i in range(rank - 1, len(changes)):
        ranks[i + 1] = 100 * sum(each <= changes[i] for each in changes[max(0, i - rank) : i]) / rank
    parts = zip(references.rsi(close, rsi), references.rsi(streaks, streak), ranks, strict=True)
    return [(a + b + c) / 3 for a, b, c in parts]


def test_connors_rsi() -> None:
    for bars in walks():
        for rsi, streak, rank in ((3, 2, 100), (1, 1, 1), (14, 5, 10)):
            found = lines("connors_rsi", bars, rsi_length=rsi, streak_length=streak, rank_length=rank)["CRSI"]
            assert agree(found, connors_of(bars.close.tolist(), rsi, streak, rank))
    ticks = np.round(walks()[1].close * 10) / 10
    found = lines("connors_rsi", closes(ticks), rank_length=20)["CRSI"]
    assert agree(found, connors_of(ticks.tolist(), 3, 2, 20), scale=1.0)
    # 3.3 / 3 and 1.1 / 1 are the same rise, though their quotients differ in the last bit.
    assert 3.3 / 3.0 != 1.1 / 1.0
    for same in ([1.0, 1.1, 3.0, 3.3], [3.0, 3.3, 1.0, 1.1]):
        assert lines("connors_rsi", closes(same), rsi_length=1, streak_length=1, rank_length=2)["CRSI"][-1] > 80.0


def fisher_of(middle: Sequence[float], length: int) -> list[float]:
    """Ehlers 2002 in TradingView's listing."""
    out, value, fish = [], 0.0, 0.0
    for now, window in zip(middle, windows(middle, length), strict=True):
        if window is None:
            out.append(nan)
            continue
        place = (now - min(window)) / (max(window) - min(window)) if max(window) > min(window) else 0.5
        value = 0.66 * (place - 0.5) + 0.67 * value
        value = 0.999 if value > 0.99 else -0.999 if value < -0.99 else value
        fish = 0.5 * log((1 + value) / (1 - value)) + 0.5 * fish
        out.append(fish)
    return out


def test_fisher() -> None:
    for bars in walks():
        for length in (1, 2, 9, 30):
            found, expected = lines("fisher", bars, length=length), fisher_of(middles(bars), length)
            assert agree(found["Fisher"], expected, scale=1.0)
            assert agree(found["Trigger"], [nan, *expected[:-1]], scale=1.0)
    rise = lines("fisher", closes(np.arange(1.0, 60.0)))["Fisher"]
    assert rise[-1] == pytest.approx(log(1.999 / 0.001)), "limited, so that a long rise stays finite"


def asi_of(rows: Sequence[tuple[float, ...]], limit: float) -> list[float]:
    """Wilder 1978: 50 × N / R × K / T, with R by the largest of three distances."""
    swings = [0.0]
    for (open1, _, _, close1), (opened, high, low, close) in pairwise(rows):
        up, down, body = abs(high - close1), abs(low - close1), abs(close1 - open1)
        largest = max(up, down, high - low)
        if largest == high - low:
            reach = high - low + body / 4
        else:
            reach = up - down / 2 + body / 4 if largest == up else down - up / 2 + body / 4
        move = close - close1 + (close - opened) / 2 + (close1 - open1) / 4
        swings.append(50 * move / reach * max(up, down) / limit if reach else 0.0)
    return [fsum(swings[: i + 1]) for i in range(len(swings))]


def test_asi() -> None:
    for bars in walks():
        rows = list(zip(*columns(bars, "open", "high", "low", "close"), strict=True))
        for limit in (10.0, 0.5, 30_000.0):
            found = lines("asi", bars, limit=limit)["ASI"]
            assert agree(found, asi_of(rows, limit), scale=float(np.max(np.abs(found))))
    gaps = [(5.0, 6, 4, 5), (9, 10, 8, 9), (2, 3, 1, 2), (2, 2, 2, 2), (2, 2, 2, 2), (2, 4, 2, 3)]
    assert agree(lines("asi", of_bars(gaps))["ASI"], asi_of(gaps, 10.0))


def test_ease_of_movement() -> None:
    """Arms 1983, as in TradingView: SMA(divisor × change(hl2) × (high − low) / volume)."""
    for bars in walks():
        high, low, volume = columns(bars, "high", "low", "volume")
        for divisor, length in ((10_000, 14), (1, 1), (1_000_000, 5)):
            moves = zip(steps(middles(bars)), high, low, volume, strict=True)
            ease = [divisor * move * (top - bottom) / traded for move, top, bottom, traded in moves]
            expected = [nan if window is None else fsum(window) / length for window in windows(ease, length)]
            found = lines("ease_of_movement", bars, divisor=divisor, length=length)["EOM"]
            assert agree(found, expected, scale=float(np.nanmax(np.abs(ease))))
    bars = of_bars([(1, 2, 1, 2), (2, 3, 2, 3), (3, 5, 3, 5), (5, 6, 5, 6)], volume=[1, 2, 0, 4])
    found = lines("ease_of_movement", bars, divisor=8, length=1)["EOM"]
    assert agree(found, [nan, 4.0, 0.0, 3.0]), "a bar without volume counts as 0"


def test_chop_zone() -> None:
    """TradingView's listing, with the angle by the arc cosine and not rounded."""
    for bars in walks():
        high, low, close = columns(bars, "high", "low", "close")
        average, expected = references.ema(close, 34), [nan]
        for i in range(1, len(close)):
            tops, bottoms = high[max(0, i - 29) : i + 1], low[max(0, i - 29) : i + 1]
            span = 25 / (max(tops) - min(bottoms)) * min(bottoms)
            y2 = (average[i - 1] - average[i]) / ((high[i] + low[i] + close[i]) / 3) * span
            angle = nan if y2 != y2 else degrees(acos(1 / sqrt(1 + y2 * y2)))
            expected.append(-angle if y2 > 0 else angle)
        assert np.allclose(lines("chop_zone", bars)["Angle"], expected, atol=1e-6, equal_nan=True)
    assert lines("chop_zone", closes([4.0] * 40))["Angle"][34:].tolist() == [0.0] * 6
    assert lines("chop_zone", closes(np.arange(100.0, 160.0)))["Angle"][-1] > 5.0
