"""Volatility under a vendor's names, held against plain loops from their definitions, and TA-Lib."""

from __future__ import annotations

from itertools import pairwise
from math import fsum, log, nan, sqrt
from statistics import stdev

import numpy as np
import talib

from tests.indicators import references
from tests.indicators.test_panels import columns, windows
from tests.indicators.test_reference_table import REFERENCES
from tests.indicators.test_references import agree, lines
from tests.indicators.test_vendor_averages import fitted, walks
from tests.market.walks import closes


def test_std_dev() -> None:
    """The population's, as TradingView's ta.stdev and TA-Lib's STDDEV."""
    for bars in walks():
        price = float(bars.close.max())
        for length, factor in ((5, 1.0), (20, 2.5), (1, 1.0)):
            upper, middle, _ = references.bbands(bars.close.tolist(), length, factor)
            found = lines("std_dev", bars, length=length, deviations=factor)["StdDev"]
            assert agree(found, [a - b for a, b in zip(upper, middle, strict=True)], scale=price)
    assert agree(lines("std_dev", walks()[2])["StdDev"], talib.STDDEV(walks()[2].close, 5), scale=10.0)


def test_bb_width() -> None:
    for bars in walks():
        for length, width in ((20, 2.0), (5, 0.5), (1, 1.0)):
            upper, middle, lower = references.bbands(bars.close.tolist(), length, width)
            expected = [(up - low) / mid for up, mid, low in zip(upper, middle, lower, strict=True)]
            assert agree(lines("bb_width", bars, length=length, std_dev=width)["BBW"], expected, scale=1.0)


def test_std_error() -> None:
    for bars in walks():
        for length in (3, 14, 40):
            _, _, expected = fitted(bars.close.tolist(), length)
            found = lines("std_error", bars, length=length)["StdErr"]
            assert agree(found, expected, scale=1e-4 * bars.close[0])
    on_a_line = lines("std_error", closes([1e6 + 0.25 * i for i in range(30)]))["StdErr"][13:]
    assert on_a_line.tolist() == [0.0] * 17


def test_chaikin_volatility() -> None:
    for bars in walks():
        high, low = columns(bars, "high", "low")
        for length, back in ((10, 10), (1, 1), (5, 20)):
            ranges = references.ema([top - bottom for top, bottom in zip(high, low, strict=True)], length)
            expected = [
                nan if i < back else 100 * (ranges[i] - ranges[i - back]) / ranges[i - back] for i in range(len(bars))
            ]
            found = lines("chaikin_volatility", bars, length=length, roc_length=back)["Volatility"]
            assert agree(found, expected, scale=1.0)
    assert np.isnan(lines("chaikin_volatility", closes([3.0] * 40))["Volatility"]).all()


def returns(close: list[float]) -> list[float]:
    return [nan, *(log(now / before) for before, now in pairwise(close))]


def test_volatility_close() -> None:
    """The sample deviation of the log returns, times the root of the days of a year."""
    for bars in walks():
        for length, days in ((10, 252), (2, 365), (60, 1)):
            expected = [
                nan if window is None else 100 * stdev(window) * sqrt(days)
                for window in windows(returns(bars.close.tolist()), length)
            ]
            found = lines("volatility_close", bars, length=length, days=days)["Volatility"]
            assert agree(found, expected, scale=1e-3)
    doubling = lines("volatility_close", closes([2.0**i for i in range(14)]))["Volatility"]
    assert doubling[10:].tolist() == [0.0] * 4, "a steady trend has no deviation"


def test_volatility_zero_trend() -> None:
    for bars in walks():
        for length, days in ((10, 252), (1, 365), (60, 1)):
            expected = [
                nan if window is None else 100 * sqrt(days * fsum(each**2 for each in window) / length)
                for window in windows(returns(bars.close.tolist()), length)
            ]
            found = lines("volatility_zero_trend", bars, length=length, days=days)["Volatility"]
            assert agree(found, expected)
    doubling = lines("volatility_zero_trend", closes([2.0**i for i in range(14)]), days=1)["Volatility"]
    assert agree(doubling[10:], [100 * log(2)] * 4)


def test_volatility_ohlc() -> None:
    """Garman and Klass 1980."""
    for bars in walks():
        rows = zip(*columns(bars, "open", "high", "low", "close"), strict=True)
        parts = [
            log(high / low) ** 2 / 2 - (2 * log(2) - 1) * log(close / opened) ** 2 for opened, high, low, close in rows
        ]
        for length, days in ((10, 252), (1, 365), (60, 1)):
            expected = [
                nan if window is None else 100 * sqrt(days / length * fsum(window)) for window in windows(parts, length)
            ]
            found = lines("volatility_ohlc", bars, length=length, days=days)["Volatility"]
            assert agree(found, expected)
    assert lines("volatility_ohlc", closes([3.0] * 12))["Volatility"][9:].tolist() == [0.0] * 3


STANDING_STILL = {
    **dict.fromkeys(("smma", "alma", "hamming", "mcginley", "kama", "price_channel", "ma_channel", "alligator"), 7.7),
    **dict.fromkeys(("std_error_bands", "chande_kroll", "volatility_index"), 7.7),
    **dict.fromkeys(
        ("linreg_slope", "fisher", "tsi", "coppock", "smi_ergodic", "smi_oscillator", "trend_strength"), 0.0
    ),
    **dict.fromkeys(("bop", "asi", "volume_oscillator", "ease_of_movement", "net_volume", "std_dev", "std_error"), 0.0),
    **dict.fromkeys(("bb_width", "volatility_close", "volatility_ohlc", "volatility_zero_trend"), 0.0),
    **dict.fromkeys(("advance_decline", "majority_rule", "chop_zone"), 0.0),
    **dict.fromkeys(("fractals", "chaikin_volatility"), nan),
    "percent_b": 0.5,
    "connors_rsi": 200 / 3,
}


def test_nothing_moves_and_nothing_trades() -> None:
    """A constant, or null where there is nothing to compare with."""
    still = closes([7.7] * 200)
    still.volume[:] = 0.0
    for name, expected in STANDING_STILL.items():
        for label, values in lines(name, still).items():
            assert np.allclose(values[-50:], expected, rtol=1e-12, atol=0.0, equal_nan=True), (name, label)
    assert lines("envelope", still)["middle"][-1] == 7.7
    assert {name for file, names in REFERENCES.items() if "vendor" in file for name in names} == {
        *STANDING_STILL,
        "envelope",
    }
