"""Oscillators under a vendor's names, held against plain loops from their definitions, and TA-Lib."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import nan

import numpy as np
import talib

from tests.indicators import references
from tests.indicators.test_panels import columns, windows
from tests.indicators.test_references import agree, lines
from tests.indicators.test_vendor_averages import of_bars, walks
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
