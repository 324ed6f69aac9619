"""Volatility under a vendor's names, held against plain loops from their definitions, and TA-Lib."""

from __future__ import annotations

import talib

from tests.indicators import references
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
