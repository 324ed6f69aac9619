"""Momentum, adaptive averages and volume, held against plain loops from the published definitions and TA-Lib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from math import exp, fsum, log, nan

import numpy as np
import pytest
import talib
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.registry import get
from openbell.indicators.windows import window_weighted_mean
from openbell.market.bars import Bars, make
from openbell.market.timeframes import Timeframe
from tests.indicators import references
from tests.indicators.test_panels import after_nan, columns, windows
from tests.indicators.test_references import agree, lines
from tests.market.walks import CRYPTO, at, closes, minutes, walk

PRICES = [0.0000123, 4.2, 245.5, 98234.5]
MONEY = st.floats(1e-8, 1e9)


@pytest.fixture(params=range(len(PRICES)))
def bars(request: pytest.FixtureRequest) -> Bars:
    return walk(
        minutes("2025-03-04T20:00Z", "2025-03-05T02:00Z"), request.param, price=PRICES[request.param], step=0.004
    )


def symmetric(values: Sequence[float]) -> list[float]:
    """Ehlers' four-bar filter: (x + 2 x[1] + 2 x[2] + x[3]) / 6."""
    return [nan if w is None else (w[3] + 2 * w[2] + 2 * w[1] + w[0]) / 6 for w in windows(values, 4)]


def frama_of(bars: Bars, length: int) -> list[float]:
    """Ehlers' listing of 2005, with N1, N2, N3 and the dimension written out."""
    high, low = columns(bars, "high", "low")
    half, out, dimension, level = length // 2, [], 1.0, nan
    for i in range(len(high)):
        price = (high[i] + low[i]) / 2
        if i + 1 < length:
            out.append(nan)
            continue
        newer, older = slice(i + 1 - half, i + 1), slice(i + 1 - length, i + 1 - half)
        n1 = (max(high[newer]) - min(low[newer])) / half
        n2 = (max(high[older]) - min(low[older])) / half
        n3 = (max(high[i + 1 - length : i + 1]) - min(low[i + 1 - length : i + 1])) / length
        if n1 > 0 and n2 > 0 and n3 > 0:
            dimension = (log(n1 + n2) - log(n3)) / log(2)
        alpha = min(1.0, max(0.01, exp(-4.6 * (dimension - 1))))
        level = price if level != level else alpha * price + (1 - alpha) * level
        out.append(level)
    return out


def rainbow_of(close: list[float], length: int, depth: int, lookback: int) -> tuple[list[float], list[float]]:
    """Widner's: recursive averages, the close's distance from their mean, and their spread, over the range."""
    colours, layer = [], close
    for _ in range(depth):
        layer = after_nan(references.sma, layer, length)
        colours.append(layer)
    oscillator, width = [], []
    for i, window in enumerate(windows(close, lookback)):
        now = [colour[i] for colour in colours]
        if window is None or now[-1] != now[-1]:
            oscillator.append(nan)
            width.append(nan)
            continue
        height = max(window) - min(window)
        oscillator.append(100 * (close[i] - fsum(now) / depth) / height)
        width.append(100 * (max(now) - min(now)) / height)
    return oscillator, width


def vidya_of(close: list[float], length: int, cmo_length: int) -> list[float]:
    """Chande's: α k close + (1 − α k) VIDYA[1], k the absolute momentum oscillator from 0 to 1."""
    alpha, level, out = 2 / (length + 1), nan, []
    seeds = references.sma(close, length)
    for i in range(len(close)):
        if i >= cmo_length and level != level:
            level = seeds[i]
        elif level == level:
            steps = [close[j] - close[j - 1] for j in range(i + 1 - cmo_length, i + 1)]
            gains, losses = fsum(s for s in steps if s > 0), -fsum(s for s in steps if s < 0)
            k = abs(gains - losses) / (gains + losses) if gains + losses else 0.0
            level = alpha * k * close[i] + (1 - alpha * k) * level
        out.append(level)
    return out


def vwma_of(bars: Bars, length: int) -> list[float]:
    """Σ close × volume / Σ volume, exactly; the simple average without volume."""
    close, volume = columns(bars, "close", "volume")
    out = []
    for i in range(len(close)):
        if i + 1 < length:
            out.append(nan)
            continue
        pairs = [(Fraction(close[j]), Fraction(volume[j])) for j in range(i + 1 - length, i + 1)]
        traded = sum(v for _, v in pairs)
        out.append(float(sum(c * v for c, v in pairs) / traded if traded else sum(c for c, _ in pairs) / length))
    return out


class TestAgainstDefinitions:
    @pytest.mark.parametrize("length", [1, 10, 60])
    def test_momentum(self, bars: Bars, length: int) -> None:
        close = bars.close.tolist()
        expected = [nan] * length + [close[i] - close[i - length] for i in range(length, len(close))]

        found = lines("momentum", bars, length=length)["Momentum"]

        assert agree(found, expected)
        assert agree(found, talib.MOM(bars.close, length))

    @pytest.mark.parametrize(("fast", "slow"), [(3, 10), (1, 5), (10, 3), (6, 20), (7, 7)])
    def test_chaikin(self, bars: Bars, fast: int, slow: int) -> None:
        rows = zip(*columns(bars, "high", "low", "close", "volume"), strict=True)
        flows = [(2 * c - h - low) / (h - low) * v for h, low, c, v in rows]
        line = [fsum(flows[: i + 1]) for i in range(len(flows))]
        expected = [a - b for a, b in zip(references.ema(line, fast), references.ema(line, slow), strict=True)]

        assert agree(lines("chaikin", bars, fast=fast, slow=slow)["Chaikin"], expected, 1000.0)

    def test_pvt(self, bars: Bars) -> None:
        close, volume = columns(bars, "close", "volume")
        parts = [Fraction(volume[i]) * (Fraction(close[i]) / Fraction(close[i - 1]) - 1) for i in range(1, len(close))]
        expected = [nan, *map(float, accumulate(parts))]

        assert agree(lines("pvt", bars)["PVT"], expected, 1.0)

    @pytest.mark.parametrize("length", [2, 4, 16, 40])
    def test_frama(self, bars: Bars, length: int) -> None:
        assert agree(lines("frama", bars, length=length)["FRAMA"], frama_of(bars, length))

    @pytest.mark.parametrize(("length", "depth", "lookback"), [(2, 10, 10), (5, 3, 20), (1, 1, 2), (3, 20, 5)])
    def test_rainbow(self, bars: Bars, length: int, depth: int, lookback: int) -> None:
        oscillator, width = rainbow_of(bars.close.tolist(), length, depth, lookback)
        found = lines("rainbow", bars, length=length, depth=depth, lookback=lookback)

        assert agree(found["Oscillator"], oscillator, 1.0)
        assert agree(found["Bandwidth"], width, 1.0)

    @pytest.mark.parametrize("length", [1, 4, 10, 50])
    def test_rvi(self, bars: Bars, length: int) -> None:
        opened, high, low, close = columns(bars, "open", "high", "low", "close")
        moves = symmetric([c - o for o, c in zip(opened, close, strict=True)])
        ranges = symmetric([h - w for h, w in zip(high, low, strict=True)])
        vigor = [
            nan if m is None or r is None else fsum(m) / fsum(r)
            for m, r in zip(windows(moves, length), windows(ranges, length), strict=True)
        ]
        found = lines("rvi", bars, length=length)

        assert agree(found["RVI"], vigor, 1e-3)
        assert agree(found["Signal"], symmetric(vigor), 1e-3)

    @pytest.mark.parametrize(("length", "cmo_length"), [(14, 9), (5, 20), (1, 1), (50, 5)])
    def test_vidya(self, bars: Bars, length: int, cmo_length: int) -> None:
        found = lines("vidya", bars, length=length, cmo_length=cmo_length)["VIDYA"]

        assert agree(found, vidya_of(bars.close.tolist(), length, cmo_length))

    @pytest.mark.parametrize("length", [1, 20, 90])
    def test_relative_volume(self, bars: Bars, length: int) -> None:
        volume = bars.volume.tolist()
        expected = [nan] * length
        expected += [volume[i] * length / fsum(volume[i - length : i]) for i in range(length, len(volume))]

        assert agree(lines("relative_volume", bars, length=length)["RVOL"], expected)

    @pytest.mark.parametrize("length", [1, 20, 90])
    def test_volume_balance(self, bars: Bars, length: int) -> None:
        close, volume = columns(bars, "close", "volume")
        expected = [nan] * length
        for i in range(length, len(close)):
            rising = fsum(volume[j] for j in range(i + 1 - length, i + 1) if close[j] > close[j - 1])
            expected.append(100 * rising / fsum(volume[i + 1 - length : i + 1]))

        assert agree(lines("volume_balance", bars, length=length)["balance"], expected)

    @pytest.mark.parametrize(("fast", "slow", "signal"), [(12, 26, 9), (3, 10, 16), (26, 12, 9), (1, 2, 1)])
    def test_volume_macd(self, bars: Bars, fast: int, slow: int, signal: int) -> None:
        found = lines("volume_macd", bars, fast=fast, slow=slow, signal=signal)
        line = [a - b for a, b in zip(vwma_of(bars, fast), vwma_of(bars, slow), strict=True)]
        trigger = references.ema(line, signal)
        scale = float(bars.close.max())

        assert agree(found["MACD"], line, scale)
        assert agree(found["Signal"], trigger, scale)
        assert agree(found["Histogram"], [a - b for a, b in zip(line, trigger, strict=True)], scale)


class TestKnownNumbers:
    def test_an_odd_length_of_frama_is_the_even_one_below(self) -> None:
        bars = walk(minutes("2025-03-04T00:00Z", "2025-03-04T02:00Z"), 3)

        assert np.array_equal(
            lines("frama", bars, length=17)["FRAMA"], lines("frama", bars, length=16)["FRAMA"], equal_nan=True
        )

    def test_frama_follows_a_trend_at_once(self) -> None:
        rising = closes(100.0 + np.arange(60.0))

        assert lines("frama", rising)["FRAMA"][15:].tolist() == rising.close[15:].tolist()

    def test_vidya_is_the_ema_while_every_close_rises(self) -> None:
        rising = closes(100.0 + np.cumsum(np.random.default_rng(4).uniform(0.1, 2.0, 80)))

        assert agree(lines("vidya", rising)["VIDYA"], lines("ema_line", rising, length=14)["EMA"].tolist())

    def test_the_level_of_the_accumulation_line_does_not_matter_to_chaikin(self) -> None:
        """A bar of enormous volume long ago costs no digit: there is no running total."""
        bars = walk(minutes("2025-03-04T00:00Z", "2025-03-04T10:00Z"), 3)
        volume = bars.volume.copy()
        volume[0] = 1e18

        found = lines("chaikin", replace(bars, volume=volume))["Chaikin"]

        assert np.allclose(found[-60:], lines("chaikin", bars)["Chaikin"][-60:], rtol=1e-12)

    def test_relative_volume_leaves_the_bar_itself_out(self) -> None:
        bars = replace(closes([10.0] * 5), volume=np.array([1.0, 3.0, 8.0, 0.0, 4.0]))

        assert agree(lines("relative_volume", bars, length=2)["RVOL"], [nan, nan, 4.0, 0.0, 1.0])

    def test_equal_closes_are_half_of_the_volume_balance(self) -> None:
        bars = replace(closes([10.0, 11.0, 11.0, 10.0]), volume=np.array([5.0, 1.0, 2.0, 4.0]))

        assert agree(lines("volume_balance", bars, length=2)["balance"], [nan, nan, 200.0 / 3.0, 100.0 / 6.0])

    def test_pvt_by_hand(self) -> None:
        bars = replace(closes([10.0, 11.0, 5.5, 5.5]), volume=np.array([7.0, 20.0, 10.0, 3.0]))

        assert agree(lines("pvt", bars)["PVT"], [nan, 2.0, -3.0, -3.0])


class TestNothingMoves:
    FLAT = (
        ("momentum", {"Momentum": 0.0}),
        ("chaikin", {"Chaikin": 0.0}),
        ("pvt", {"PVT": 0.0}),
        ("rainbow", {"Oscillator": 0.0, "Bandwidth": 0.0}),
        ("rvi", {"RVI": 0.0, "Signal": 0.0}),
        ("volume_balance", {"balance": 50.0}),
        ("volume_macd", {"MACD": 0.0, "Signal": 0.0, "Histogram": 0.0}),
    )

    @pytest.mark.parametrize(("name", "expected"), FLAT, ids=[name for name, _ in FLAT])
    @given(price=MONEY, volume=st.sampled_from([0.0, 1.0, 1e9]))
    @settings(deadline=None, max_examples=20)
    def test_every_panel_is_exactly_in_its_middle(
        self, name: str, expected: dict[str, float], price: float, volume: float
    ) -> None:
        found = lines(name, replace(closes([price] * 80), volume=np.full(80, volume)))

        lead = get(name).warmup(**get(name).settings()) - 1
        assert {label: set(values[lead:].tolist()) for label, values in found.items()} == {
            label: {value} for label, value in expected.items()
        }

    @given(price=MONEY)
    @settings(deadline=None, max_examples=20)
    def test_every_average_is_exactly_the_price(self, price: float) -> None:
        flat = closes([price] * 60)

        assert set(lines("frama", flat)["FRAMA"][15:].tolist()) == {price}
        assert set(lines("vidya", flat)["VIDYA"][13:].tolist()) == {price}

    def test_nothing_traded_before_is_no_relative_volume(self) -> None:
        silent = replace(closes([10.0] * 40), volume=np.append(np.zeros(39), 5.0))

        assert np.isnan(lines("relative_volume", silent)["RVOL"]).all()

    def test_a_window_without_volume_has_the_simple_average(self) -> None:
        bars = walk(minutes("2025-03-04T00:00Z", "2025-03-04T03:00Z"), 3)
        volume = bars.volume.copy()
        volume[60:120] = 0.0
        quiet = replace(bars, volume=volume)
        fast, slow = references.sma(bars.close.tolist(), 12), references.sma(bars.close.tolist(), 26)

        found = lines("volume_macd", quiet)["MACD"]

        assert agree(found[85:120], [fast[i] - slow[i] for i in range(85, 120)], 100.0)
        assert np.isfinite(found[25:]).all()


class TestWeightedMean:
    @given(
        st.lists(st.tuples(MONEY, st.sampled_from([0.0, 1e-9, 1.0, 7.5, 1e9])), max_size=40),
        st.integers(1, 12),
    )
    @settings(deadline=None, max_examples=100)
    def test_lies_among_the_values(self, pairs: list[tuple[float, float]], length: int) -> None:
        values, weights = (
            np.array(each, dtype=np.float64) for each in (zip(*pairs, strict=True) if pairs else ([], []))
        )
        found = window_weighted_mean(values, weights, length)

        for i in range(length - 1, len(pairs)):
            window = values[i + 1 - length : i + 1]
            slack = 1e-12 * window.max()
            assert window.min() - slack <= found[i] <= window.max() + slack


def test_volume_is_read_only_where_it_traded() -> None:
    """A bar without a range has no money flow, whatever it traded."""
    time = at("2025-03-04T00:00Z") + np.arange(30) * 60
    price = 100.0 + np.arange(30.0)
    bars = make(CRYPTO, Timeframe.M1, time, price, price, price, price, np.full(30, 5.0))

    assert set(lines("chaikin", bars)["Chaikin"][9:].tolist()) == {0.0}
