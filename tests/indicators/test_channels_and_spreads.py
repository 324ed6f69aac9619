"""The regression channel, the rolling profile and volume spread analysis, held against plain loops in exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import fsum, nan, sqrt
from statistics import linear_regression

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.registry import get
from openbell.market.bars import Bars, make
from openbell.market.timeframes import Timeframe
from tests.indicators import references
from tests.indicators.test_panels import columns, windows
from tests.indicators.test_profiles import reference as volume_at_price
from tests.indicators.test_references import agree, lines
from tests.indicators.test_signals_at_prefixes import in_ticks
from tests.market.walks import CRYPTO, at, closes, minutes, walk

PRICES = [0.0000123, 4.2, 245.5, 98234.5]


@pytest.fixture(params=range(len(PRICES)))
def bars(request: pytest.FixtureRequest) -> Bars:
    return walk(
        minutes("2025-03-04T22:00Z", "2025-03-05T02:00Z"), request.param, price=PRICES[request.param], step=0.004
    )


class TestRegressionChannel:
    @pytest.mark.parametrize(("length", "deviations"), [(50, 2.0), (3, 1.0), (2, 2.0), (120, 0.5)])
    def test_regression_channel(self, bars: Bars, length: int, deviations: float) -> None:
        middle, width, slope = [], [], []
        for window in windows(bars.close.tolist(), length):
            if window is None:
                middle.append(nan)
                width.append(nan)
                slope.append(nan)
                continue
            rise, start = linear_regression(range(length), window)
            misses = [price - (start + rise * i) for i, price in enumerate(window)]
            middle.append(start + rise * (length - 1))
            width.append(deviations * sqrt(fsum(miss * miss for miss in misses) / length))
            slope.append(100 * rise / window[-1])

        found = lines("regression_channel", bars, length=length, deviations=deviations)

        scale = float(bars.close.max())
        assert agree(found["middle"], middle)
        assert agree(found["upper"], [m + w for m, w in zip(middle, width, strict=True)], scale)
        assert agree(found["lower"], [m - w for m, w in zip(middle, width, strict=True)], scale)
        assert agree(found["slope"], slope, 1.0)

    def test_its_middle_is_that_of_linreg(self, bars: Bars) -> None:
        assert agree(lines("regression_channel", bars)["middle"], lines("linreg", bars, length=50)["LinReg"].tolist())

    def test_closes_on_a_line_have_no_deviation_even_at_a_large_price(self) -> None:
        found = lines("regression_channel", closes(1e9 + np.arange(200.0)))

        assert found["middle"][49:].tolist() == (1e9 + np.arange(49.0, 200.0)).tolist()
        assert (found["upper"] - found["lower"])[49:].max() == 0.0
        assert found["slope"][-1] == pytest.approx(100.0 / (1e9 + 199.0), rel=1e-12)

    @given(st.floats(1e-8, 1e9))
    @settings(deadline=None, max_examples=20)
    def test_nothing_moves(self, price: float) -> None:
        found = lines("regression_channel", closes([price] * 60))

        assert [set(values[49:].tolist()) for values in found.values()] == [{price}, {price}, {price}, {0.0}]


def area_around(amounts: list[float]) -> tuple[int, int, int]:
    """The fullest row, and the first and last row of the value area, by adding pairs of rows to a list."""
    fullest = amounts.index(max(amounts))
    chosen = [fullest]
    while fsum(amounts[row] for row in chosen) < 0.7 * fsum(amounts):
        above = [row for row in (chosen[-1] + 1, chosen[-1] + 2) if row < len(amounts)]
        below = [row for row in (chosen[0] - 2, chosen[0] - 1) if row >= 0]
        higher = fsum(amounts[row] for row in above) >= fsum(amounts[row] for row in below)
        chosen = [*chosen, *above] if above and (higher or not below) else [*below, *chosen]
    return fullest, chosen[0], chosen[-1]


def profile_of(bars: Bars, length: int, bins: int, mult: float) -> list[tuple[float, ...]]:
    """Window by window: rows as for the volume profile; the moments of even distributions in exact fractions."""
    out: list[tuple[float, ...]] = [(nan,) * 6] * (length - 1)
    for end in range(length, len(bars) + 1):
        part = bars.take(slice(end - length, end))
        fullest, first, last = area_around(volume_at_price(part, bins))
        bottom, top = float(part.low.min()), float(part.high.max())
        height = (top - bottom) / bins
        volume = mean = square = Fraction(0)
        for low, high, traded in zip(
            *(map(Fraction, each) for each in columns(part, "low", "high", "volume")), strict=True
        ):
            volume += traded
            mean += traded * (low + high) / 2
            square += traded * (low * low + low * high + high * high) / 3
        mean, square = mean / volume, square / volume
        rows = (bottom + height * (fullest + 0.5), bottom + height * (last + 1), bottom + height * first)
        room = mult * sqrt(square - mean * mean)
        out.append((*rows, float(mean), float(mean) + room, float(mean) - room))
    return out


class TestRollingProfile:
    @pytest.mark.parametrize(("length", "bins", "mult"), [(100, 24, 2.0), (20, 10, 1.0), (2, 2, 0.5), (35, 50, 3.0)])
    def test_rolling_profile(self, bars: Bars, length: int, bins: int, mult: float) -> None:
        some = bars.take(slice(0, 140))
        expected = profile_of(some, length, bins, mult)

        found = lines("rolling_profile", some, length=length, bins=bins, mult=mult)

        for (label, values), column in zip(found.items(), zip(*expected, strict=True), strict=True):
            assert agree(values, column), label

    def test_it_is_the_session_profile_of_its_window(self, bars: Bars) -> None:
        """A second opinion, from the rows of the profiles that are drawn."""
        window = bars.take(slice(70, 170))
        control, upper, lower = get("session_vp").run(replace(window, time=window.time[0] + np.arange(100))).hlines

        found = lines("rolling_profile", bars)

        assert [found[label][169] for label in ("poc", "vah", "val")] == pytest.approx(
            [control, upper, lower], rel=1e-9
        )

    def test_a_price_without_a_range_is_every_level(self) -> None:
        found = lines("rolling_profile", closes([10.1] * 120))

        assert [set(values[99:].tolist()) for values in found.values()] == [{10.1}] * 6

    def test_single_prices_belong_to_one_row(self) -> None:
        data = replace(closes([10.0, 20.0, 12.0, 13.0, 19.0]), volume=np.array([1.0, 1.0, 3.0, 4.0, 1.0]))

        found = lines("rolling_profile", data, length=5, bins=5)

        assert [float(values[-1]) for values in found.values()][:4] == pytest.approx([13.0, 14.0, 12.0, 13.7])

    def test_a_window_without_volume_has_no_levels(self) -> None:
        data = walk(minutes("2025-03-04T00:00Z", "2025-03-04T03:00Z"), 3)
        volume = data.volume.copy()
        volume[40:120] = 0.0

        found = lines("rolling_profile", replace(data, volume=volume), length=20)

        for values in found.values():
            assert np.array_equal(np.flatnonzero(np.isnan(values)), [*range(19), *range(59, 120)])

    @pytest.mark.parametrize("bins", [24, 100])
    def test_bars_before_the_window_decide_nothing(self, bins: int) -> None:
        """Prices in ticks, so that rows are often equal but for rounding."""
        data = in_ticks()
        whole = lines("rolling_profile", data, bins=bins)
        for begin in (1, 37, 111, 250):
            later = lines("rolling_profile", data.take(slice(begin, None)), bins=bins)
            for label, values in later.items():
                assert agree(values[99:], whole[label][begin + 99 :].tolist()), label

    def test_the_levels_lie_in_the_range_of_the_window(self) -> None:
        data = in_ticks()
        found = lines("rolling_profile", data, length=30)
        for end in range(30, len(data) + 1):
            part = data.take(slice(end - 30, end))
            if part.volume.any():
                low, high = part.low.min() * (1 - 1e-12), part.high.max() * (1 + 1e-12)
                assert all(low <= found[label][end - 1] <= high for label in ("poc", "vah", "val", "mean"))
                assert found["val"][end - 1] <= found["poc"][end - 1] <= found["vah"][end - 1]


class TestVolumeSpread:
    @pytest.mark.parametrize("length", [3, 20, 60])
    def test_volume_spread(self, length: int) -> None:
        """Lines and signals from their definitions, written out."""
        data = walk(minutes("2025-03-04T00:00Z", "2025-03-06T00:00Z"), 5)
        high, low, close, volume = columns(data, "high", "low", "close", "volume")
        height = [h - w for h, w in zip(high, low, strict=True)]
        spread = [h / mean for h, mean in zip(height, references.sma(height, length), strict=True)]
        traded = [v / mean for v, mean in zip(volume, references.sma(volume, length), strict=True)]
        place = [(c - w) / h for c, w, h in zip(close, low, height, strict=True)]
        expected = []
        for i in range(length - 1, len(close)):
            up, down = close[i] > close[i - 1], close[i] < close[i - 1]
            quiet = traded[i] <= 0.7 and volume[i] < volume[i - 1] and volume[i] < volume[i - 2] and spread[i] <= 0.8
            new_high = i >= length and high[i] > max(high[i - length : i])
            checks = (
                ("stopping_volume", down and traded[i] >= 2 and spread[i] >= 1.2 and place[i] >= 0.5),
                ("no_demand", up and quiet),
                ("no_supply", down and quiet),
                ("upthrust", new_high and place[i] <= 0.3 and traded[i] >= 1.5),
            )
            expected += [(i, label) for label, holds in checks if holds]

        found = lines("volume_spread", data, length=length)
        result = get("volume_spread").run(data, length=length)

        assert agree(found["spread"], spread)
        assert agree(found["volume"], traded)
        assert agree(found["close_position"], place, 1.0)
        assert [(signal.index, signal.label) for signal in result.signals] == expected
        assert [signal.value for signal in result.signals] == pytest.approx([traded[i] for i, _ in expected])
        if length == 3:
            assert {label for _, label in expected} == set(get("volume_spread").labels)

    def test_nothing_traded_and_nothing_moved(self) -> None:
        found = get("volume_spread").run(replace(closes([10.1] * 60), volume=np.zeros(60)))

        assert [set(line.values[19:].tolist()) for line in found.lines] == [{0.0}, {0.0}, {0.5}]
        assert not found.signals

    def test_stopping_volume_by_hand(self) -> None:
        """Three quiet bars, then a wide fall on much volume that closes above its middle."""
        rows = [(10, 11, 9, 10), (10, 11, 9, 10), (10, 11, 9, 10), (10, 10, 4, 8)]
        time = at("2025-03-04T00:00Z") + np.arange(4) * 60
        data = make(CRYPTO, Timeframe.M1, time, *zip(*rows, strict=True), [1.0, 1.0, 1.0, 7.0])

        (signal,) = get("volume_spread").run(data, length=3).signals

        assert (signal.index, signal.label) == (3, "stopping_volume")
        assert signal.value == pytest.approx(7.0 / 3.0)
