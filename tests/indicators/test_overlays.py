"""What is drawn over the price, held against definitions written out in plain Python, and where each of them turns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import fsum, isnan, isqrt, nan, sqrt

import numpy as np
import pandas as pd
import pytest
import talib
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.channels import Channels, Segment
from openbell.indicators.registry import get
from openbell.indicators.regular_hours import day_starts, day_sums
from openbell.market.bars import Bars, Values, make
from openbell.market.timeframes import Timeframe
from tests.indicators import references
from tests.market.new_york import oracle
from tests.market.walks import CRYPTO, DAY, STOCK, at, closes, minutes, walk

Numbers = Sequence[float]
Turns = list[tuple[int, float, str]]


@pytest.fixture(params=range(4))
def bars(request: pytest.FixtureRequest) -> Bars:
    price = [0.0000123, 4.2, 245.5, 98234.5][request.param]
    return walk(minutes("2025-03-04T20:00Z", "2025-03-05T02:00Z"), request.param, price=price, step=0.004)


def run(name: str, bars: Bars, **overrides: object) -> Channels:
    return get(name).run(bars, **overrides)


def lines(name: str, bars: Bars, **overrides: object) -> dict[str, Values]:
    return {line.label: line.values for line in run(name, bars, **overrides).lines}


def turns(result: Channels) -> Turns:
    return [(signal.index, signal.value, signal.label) for signal in result.signals]


def agree(found: Values, expected: Numbers) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-9, atol=0.0, equal_nan=True))


def columns(bars: Bars) -> tuple[list[float], list[float], list[float], list[float]]:
    """High, low, close and volume as lists."""
    return bars.high.tolist(), bars.low.tolist(), bars.close.tolist(), bars.volume.tolist()


def candles(rows: Sequence[tuple[float, float, float, float]], start: str = "2025-03-04T00:00Z") -> Bars:
    """Minutes from open, high, low and close."""
    time = at(start) + np.arange(len(rows)) * 60
    return make(CRYPTO, Timeframe.M1, time, *np.array(rows).T, np.ones(len(rows)))


def sessions(bars: Bars) -> list[int]:
    """The NYSE session of each bar by exchange_calendars, −1 outside regular hours; the UTC day for crypto."""
    if bars.instrument is not STOCK:
        return [int(day) for day in bars.time // DAY]
    book = oracle()
    row = np.searchsorted(book.open, bars.time, side="right") - 1
    return [int(day) for day in np.where(bars.time < book.close[row], row, -1)]


def window(values: Numbers, at_bar: int, length: int) -> Numbers | None:
    """The newest values at a bar, if there are so many."""
    return values[at_bar + 1 - length : at_bar + 1] if at_bar + 1 >= length else None


def middles(bars: Bars, length: int) -> list[float]:
    """Between highest high and lowest low, by slices."""
    highs, lows, _, _ = columns(bars)
    out = []
    for at_bar in range(len(bars)):
        high, low = window(highs, at_bar, length), window(lows, at_bar, length)
        out.append((max(high) + min(low)) / 2 if high and low else nan)
    return out


def weighted(values: Numbers, length: int) -> list[float]:
    """The weighted average from its definition; leading NaN are waited out."""
    out = []
    for at_bar in range(len(values)):
        newest = window(values, at_bar, length)
        ranked = [rank * value for rank, value in enumerate(newest, 1)] if newest else [nan]
        out.append(fsum(ranked) / (length * (length + 1) / 2))
    return out


class TestAverages:
    @pytest.mark.parametrize("chosen", [{}, {"fast": 1, "medium": 5, "slow": 3, "trend": 300}])
    def test_ema_stack_is_four_averages_by_the_definition(self, bars: Bars, chosen: dict[str, int]) -> None:
        found = lines("ema_stack", bars, **chosen)
        lengths = {"fast": 8, "medium": 21, "slow": 50, "trend": 200} | chosen

        assert list(found) == list(lengths)
        assert all(agree(found[name], references.ema(bars.close.tolist(), length)) for name, length in lengths.items())

    @pytest.mark.parametrize("length", [1, 2, 9, 20, 100])
    def test_wma_by_the_definition(self, bars: Bars, length: int) -> None:
        assert agree(lines("wma", bars, length=length)["WMA"], weighted(bars.close.tolist(), length))

    @pytest.mark.parametrize("length", [2, 9, 25, 200])
    def test_weights_are_those_of_ta_lib(self, bars: Bars, length: int) -> None:
        assert agree(lines("wma", bars, length=length)["WMA"], talib.WMA(bars.close, length))
        assert agree(lines("hma", bars, length=length)["HMA"], talib.HMA(bars.close, length))
        assert agree(lines("linreg", bars, length=length)["LinReg"], talib.LINEARREG(bars.close, length))

    def test_wma_by_hand(self) -> None:
        assert lines("wma", closes([1, 2, 6]), length=3)["WMA"][2] == pytest.approx((1 + 4 + 18) / 6, rel=1e-15)

    @pytest.mark.parametrize("length", [1, 2, 3, 9, 16, 50])
    def test_hma_by_hulls_definition(self, bars: Bars, length: int) -> None:
        close = bars.close.tolist()
        fast, slow = weighted(close, max(1, length // 2)), weighted(close, length)
        lead = [2 * a - b for a, b in zip(fast, slow, strict=True)]

        assert agree(lines("hma", bars, length=length)["HMA"], weighted(lead, isqrt(length)))

    @pytest.mark.parametrize("length", [1, 2, 9, 60])
    def test_dema_and_tema_by_mulloys_definition(self, bars: Bars, length: int) -> None:
        once = references.ema(bars.close.tolist(), length)
        twice = references.ema(once, length)
        thrice = references.ema(twice, length)

        assert agree(lines("dema", bars, length=length)["DEMA"], [2 * a - b for a, b in zip(once, twice, strict=True)])
        tema = [3 * a - 3 * b + c for a, b, c in zip(once, twice, thrice, strict=True)]
        assert agree(lines("tema", bars, length=length)["TEMA"], tema)

    @pytest.mark.parametrize("length", [1, 2, 20, 100])
    def test_vwma_by_the_definition(self, bars: Bars, length: int) -> None:
        _, _, close, volume = columns(bars)
        expected = []
        for at_bar in range(len(bars)):
            prices, weights = window(close, at_bar, length), window(volume, at_bar, length)
            if prices is None or weights is None:
                expected.append(nan)
                continue
            expected.append(fsum(p * v for p, v in zip(prices, weights, strict=True)) / fsum(weights))

        assert agree(lines("vwma", bars, length=length)["VWMA"], expected)

    def test_vwma_has_no_value_while_nothing_trades_and_the_right_one_after(self) -> None:
        """Running sums would leave a remainder here and divide by it."""
        volume = np.concatenate((np.random.default_rng(1).uniform(0, 9, 30), np.zeros(10), [2.0, 2.0]))
        price = np.linspace(100.3, 99.1, 42)
        time = at("2025-03-04T00:00Z") + np.arange(42) * 60
        bars = make(CRYPTO, Timeframe.M1, time, price, price, price, price, volume)

        found = lines("vwma", bars, length=5)["VWMA"]

        assert np.flatnonzero(np.isnan(found)).tolist() == [0, 1, 2, 3, *range(34, 40)]
        assert found[40:] == pytest.approx([price[40], (price[40] + price[41]) / 2], rel=1e-15)

    @pytest.mark.parametrize("length", [2, 3, 25, 100])
    def test_linreg_is_the_end_of_numpys_least_squares_line(self, bars: Bars, length: int) -> None:
        ages = np.arange(1.0 - length, 1.0)
        expected = [nan] * (length - 1)
        for end in range(length, len(bars) + 1):
            newest = bars.close[end - length : end]
            expected.append(float(newest.mean() + np.polyfit(ages, newest - newest.mean(), 1)[1]))

        assert agree(lines("linreg", bars, length=length)["LinReg"], expected)

    def test_linreg_of_a_straight_line_is_that_line(self) -> None:
        line = np.linspace(50.0, 80.0, 61)

        assert lines("linreg", closes(line))["LinReg"][24:] == pytest.approx(line[24:], rel=1e-13)


class TestChannels:
    @pytest.mark.parametrize(("length", "multiplier", "of"), [(20, 1.5, 10), (1, 1.0, 1), (2, 0.5, 14), (50, 3.0, 20)])
    def test_keltner_by_the_definition(self, bars: Bars, length: int, multiplier: float, of: int) -> None:
        high, low, close, _ = columns(bars)
        middle, width = references.ema(close, length), references.atr(high, low, close, of)

        result = run("keltner", bars, length=length, multiplier=multiplier, atr_length=of)

        upper, centre, lower = (line.values for line in result.lines)
        assert agree(upper, [m + multiplier * w for m, w in zip(middle, width, strict=True)])
        assert agree(centre, middle)
        assert agree(lower, [m - multiplier * w for m, w in zip(middle, width, strict=True)])
        assert (result.fills[0].upper is upper, result.fills[0].lower is lower) == (True, True)

    @pytest.mark.parametrize("length", [1, 2, 20, 100])
    def test_donchian_by_slices(self, bars: Bars, length: int) -> None:
        high, low, _, _ = columns(bars)
        found = lines("donchian", bars, length=length)

        assert found["upper"].tolist()[length - 1 :] == [max(window(high, i, length) or []) for i in full(bars, length)]
        assert found["lower"].tolist()[length - 1 :] == [min(window(low, i, length) or []) for i in full(bars, length)]
        assert agree(found["middle"], middles(bars, length))

    def test_donchian_is_that_of_ta_lib(self, bars: Bars) -> None:
        expected = talib.DONCHIAN(bars.high, bars.low, 20)

        assert all(agree(f, e) for f, e in zip(lines("donchian", bars).values(), expected, strict=True))

    @pytest.mark.parametrize(("length", "multiplier"), [(22, 3.0), (1, 1.0), (50, 2.0)])
    def test_chandelier_by_the_definition(self, bars: Bars, length: int, multiplier: float) -> None:
        high, low, close, _ = columns(bars)
        width = references.atr(high, low, close, length)
        found = lines("chandelier", bars, length=length, multiplier=multiplier)

        usable = full(bars, length)
        long = [max(window(high, i, length) or []) - multiplier * width[i] for i in usable]
        short = [min(window(low, i, length) or []) + multiplier * width[i] for i in usable]
        assert agree(found["long"], [nan] * (length - 1) + long)
        assert agree(found["short"], [nan] * (length - 1) + short)


def full(bars: Bars, length: int) -> range:
    """The bars at which a window is full."""
    return range(length - 1, len(bars))


def weighted_bands(bars: Bars, multiplier: float) -> tuple[list[float], list[float], list[float]]:
    """Mean and population deviation of the typical price since the session began, weighted by volume, in two passes."""
    out: tuple[list[float], list[float], list[float]] = ([], [], [])
    high, low, close, volume = columns(bars)
    days = sessions(bars)
    first = 0
    for i, day in enumerate(days):
        first = i if i and day != days[i - 1] else first
        prices = [(high[j] + low[j] + close[j]) / 3 for j in range(first, i + 1)]
        weights = volume[first : i + 1]
        traded = fsum(weights)
        if day < 0 or not traded:
            mean = deviation = nan
        else:
            mean = fsum(p * v for p, v in zip(prices, weights, strict=True)) / traded
            deviation = sqrt(fsum(v * (p - mean) ** 2 for p, v in zip(prices, weights, strict=True)) / traded)
        for column, value in zip(out, (multiplier, 0.0, -multiplier), strict=True):
            column.append(mean + value * deviation)
    return out


class TestVwapBands:
    @pytest.mark.parametrize("multiplier", [2.0, 0.5])
    def test_crypto_by_two_passes(self, bars: Bars, multiplier: float) -> None:
        found = lines("vwap_bands", bars, multiplier=multiplier)

        assert list(found) == ["upper", "middle", "lower"]
        assert all(agree(f, e) for f, e in zip(found.values(), weighted_bands(bars, multiplier), strict=True))

    def test_stocks_by_two_passes_over_the_regular_session(self) -> None:
        bars = walk(minutes("2025-11-26T13:00Z", "2025-11-29T00:00Z")[::3], 7, STOCK)

        found = lines("vwap_bands", bars)

        assert all(agree(f, e) for f, e in zip(found.values(), weighted_bands(bars, 2.0), strict=True))
        assert np.array_equal(np.isnan(found["upper"]), np.array(sessions(bars)) < 0)

    def test_the_middle_is_the_vwap_itself(self, bars: Bars) -> None:
        assert np.array_equal(lines("vwap_bands", bars)["middle"], lines("vwap", bars)["VWAP"])

    def test_a_session_begins_without_width(self) -> None:
        bars = walk(minutes("2025-03-04T23:50Z", "2025-03-05T00:10Z"), 3)
        found = lines("vwap_bands", bars)

        assert [i for i in range(20) if found["upper"][i] == found["lower"][i]] == [0, 10]

    def test_waits_for_the_first_trade_of_a_day(self) -> None:
        time = at("2025-03-04T23:58Z") + np.arange(6) * 60
        price = np.array([10.0, 11.0, 12.0, 13.0, 15.0, 99.0])
        bars = make(CRYPTO, Timeframe.M1, time, price, price, price, price, [1.0, 0.0, 0.0, 2.0, 2.0, 0.0])

        found = lines("vwap_bands", bars, multiplier=1.0)

        assert np.array_equal(found["upper"], [10.0, 10.0, nan, 13.0, 15.0, 15.0], equal_nan=True)
        assert np.array_equal(found["lower"], [10.0, 10.0, nan, 13.0, 13.0, 13.0], equal_nan=True)

    def test_a_small_deviation_at_a_large_price_is_not_lost(self) -> None:
        """Squares less the square of the mean would lose every digit here."""
        price = 1e9 + np.tile([0.0, 1e-3], 200)

        found = lines("vwap_bands", closes(price), multiplier=1.0)

        assert (found["upper"] - found["lower"])[-1] == pytest.approx(1e-3, abs=5 * np.spacing(1e9))

    @given(st.lists(st.floats(0.0, 1e9), max_size=60), st.lists(st.integers(1, 9), min_size=1, max_size=60))
    @settings(deadline=None, max_examples=200)
    def test_sums_begin_anew_with_a_day_however_long_it_is(self, values: list[float], sizes: list[int]) -> None:
        days = np.repeat(np.arange(len(sizes)), sizes)[: len(values)]
        values = values[: len(days)]
        expected: list[float] = []
        for i, value in enumerate(values):
            expected.append(value if not i or days[i] != days[i - 1] else expected[-1] + value)

        assert day_sums(np.array(values, dtype=np.float64), day_starts(days)).tolist() == expected


def pine_supertrend(bars: Bars, length: int, factor: float) -> tuple[list[float], list[int]]:
    """The script that TradingView prints under ta.supertrend, line by line; direction −1 is up."""
    high, low, close, _ = columns(bars)
    atr = references.atr(high, low, close, length)
    trend, direction = [nan] * len(close), [0] * len(close)
    upper, lower = [nan] * len(close), [nan] * len(close)
    for i in range(length - 1, len(close)):
        upper[i] = (high[i] + low[i]) / 2 + factor * atr[i]
        lower[i] = (high[i] + low[i]) / 2 - factor * atr[i]
        before = [0.0 if isnan(band[i - 1]) else band[i - 1] for band in (upper, lower)]
        lower[i] = lower[i] if lower[i] > before[1] or close[i - 1] < before[1] else before[1]
        upper[i] = upper[i] if upper[i] < before[0] or close[i - 1] > before[0] else before[0]
        if isnan(atr[i - 1]):
            direction[i] = 1
        elif trend[i - 1] == before[0]:
            direction[i] = -1 if close[i] > upper[i] else 1
        else:
            direction[i] = 1 if close[i] < lower[i] else -1
        trend[i] = lower[i] if direction[i] == -1 else upper[i]
    return trend, direction


def flips_of(sides: Sequence[int], values: Numbers) -> Turns:
    """Where a side that is not 0 differs from the bar before; 1 is up."""
    found = []
    for i, (before, now) in enumerate(pairwise(sides), 1):
        if before and now != before:
            found.append((i, values[i], "flip_up" if now > 0 else "flip_down"))
    return found


class TestSupertrend:
    @pytest.mark.parametrize(("length", "multiplier"), [(10, 3.0), (2, 0.1), (5, 1.0), (30, 2.0)])
    def test_is_tradingviews_script_and_flips_where_that_does(self, bars: Bars, length: int, multiplier: float) -> None:
        trend, direction = pine_supertrend(bars, length, multiplier)

        result = run("supertrend", bars, length=length, multiplier=multiplier)

        assert agree(result.lines[0].values, trend)
        expected = flips_of([-side for side in direction], trend)
        assert [(i, label) for i, _, label in turns(result)] == [(i, label) for i, _, label in expected]
        assert [s.value for s in result.signals] == pytest.approx([value for _, value, _ in expected], rel=1e-9)
        assert len(expected) > 2

    def test_by_hand_a_close_at_the_stop_is_no_flip_and_one_beyond_it_is(self) -> None:
        bars = candles(
            [(10, 11, 9, 10), (11, 12, 10, 12), (12, 13, 12, 12.5), (12, 12.5, 11.5, 11.5), (11, 11.5, 10.5, 11)]
        )

        result = run("supertrend", bars, length=1, multiplier=1.0)

        assert result.lines[0].values.tolist() == [12.0, 12.0, 11.5, 11.5, 12.0]
        assert turns(result) == [(2, 11.5, "flip_up"), (4, 12.0, "flip_down")]

    def test_begins_falling_even_above_its_band(self) -> None:
        result = run("supertrend", candles([(10, 20, 10, 20), (20, 21, 20, 21)]), length=1, multiplier=0.1)

        assert result.lines[0].values[0] == 16.0
        assert [(s.index, s.label) for s in result.signals] == [(1, "flip_up")]


def pine_sar(bars: Bars, start: float, increment: float, maximum: float) -> tuple[list[float], list[int]]:
    """The script that TradingView prints under ta.sar, line by line; side 1 is below the price."""
    high, low, close, _ = columns(bars)
    found, sides = [nan], [0]
    result = extreme = acceleration = nan
    below = False
    for i in range(1, len(close)):
        first = i == 1
        if first:
            below = close[1] > close[0]
            extreme, result = (high[1], low[0]) if below else (low[1], high[0])
            acceleration = start
        result += acceleration * (extreme - result)
        if below and result > low[i]:
            first, below, result, extreme, acceleration = True, False, max(high[i], extreme), low[i], start
        elif not below and result < high[i]:
            first, below, result, extreme, acceleration = True, True, min(low[i], extreme), high[i], start
        if not first and (high[i] > extreme if below else low[i] < extreme):
            extreme = high[i] if below else low[i]
            acceleration = min(acceleration + increment, maximum)
        past = slice(max(0, i - 2), i)
        result = min(result, *low[past]) if below else max(result, *high[past])
        found.append(result)
        sides.append(1 if below else -1)
    return found, sides


class TestSar:
    @pytest.mark.parametrize("chosen", [(0.02, 0.02, 0.2), (0.1, 0.05, 0.1), (0.001, 0.3, 1.0), (0.5, 0.0, 0.2)])
    def test_is_tradingviews_script_and_flips_where_that_does(
        self, bars: Bars, chosen: tuple[float, float, float]
    ) -> None:
        found, sides = pine_sar(bars, *chosen)

        result = run("sar", bars, start=chosen[0], increment=chosen[1], maximum=chosen[2])

        assert agree(result.lines[0].values, found)
        assert turns(result) == flips_of(sides, result.lines[0].values.tolist())
        assert len(result.signals) > 10

    def test_by_hand_its_beginning_is_no_flip_and_a_touch_is_none(self) -> None:
        """It turns at the second bar, which begins it; the third touches it, the fourth goes through."""
        bars = candles([(9, 10, 8, 9), (10, 11, 9, 10), (9, 10, 8, 9), (9, 10, 9, 10)])

        result = run("sar", bars, start=0.5, increment=0.0, maximum=0.5)

        assert np.array_equal(result.lines[0].values, [nan, 11.0, 11.0, 8.0], equal_nan=True)
        assert turns(result) == [(3, 8.0, "flip_up")]

    def test_the_stop_is_never_on_the_wrong_side_of_the_price(self, bars: Bars) -> None:
        stop = lines("sar", bars)["SAR"][1:]

        assert ((stop <= bars.low[1:]) | (stop >= bars.high[1:])).all()


class TestIchimoku:
    @pytest.mark.parametrize(
        ("conversion", "base", "span", "displacement"), [(9, 26, 52, 26), (3, 5, 2, 9), (40, 7, 20, 2)]
    )
    def test_by_slices_and_shifts(self, bars: Bars, conversion: int, base: int, span: int, displacement: int) -> None:
        result = run("ichimoku", bars, conversion=conversion, base=base, span=span, displacement=displacement)
        found = {line.label: line.values for line in result.lines}
        fast, slow, wide = (middles(bars, length) for length in (conversion, base, span))
        by = displacement - 1
        ahead = [nan] * by

        assert agree(found["Conversion"], fast)
        assert agree(found["Base"], slow)
        assert agree(found["Span A"], ahead + [(a + b) / 2 for a, b in zip(fast, slow, strict=True)][:-by])
        assert agree(found["Span B"], ahead + wide[:-by])
        assert agree(found["Lagging"], bars.close.tolist()[by:] + ahead)

    def test_a_displacement_of_26_is_25_bars(self) -> None:
        bars = walk(minutes("2025-03-04T00:00Z", "2025-03-04T04:00Z"), 5)
        found = lines("ichimoku", bars)

        assert found["Span A"][76] == (found["Conversion"][51] + found["Base"][51]) / 2
        assert found["Span B"][76] == (bars.high[:52].max() + bars.low[:52].min()) / 2
        assert found["Lagging"][:-25].tolist() == bars.close[25:].tolist()
        assert [int(np.isnan(values).sum()) for values in found.values()] == [8, 25, 50, 76, 25]

    @pytest.mark.parametrize(
        ("name", "count"), [("ichimoku", 60), ("ichimoku", 10), ("alligator", 60), ("alligator", 3)]
    )
    def test_the_values_ahead_are_those_of_the_bars_to_come(self, name: str, count: int) -> None:
        bars = walk(minutes("2025-03-04T00:00Z", "2025-03-04T04:00Z"), 5)
        known = run(name, bars.take(slice(0, count))).lines
        later = run(name, bars).lines

        ahead = [(line.ahead, whole.values) for line, whole in zip(known, later, strict=True) if line.ahead is not None]
        assert [len(values) for values, _ in ahead] == ([25, 25] if name == "ichimoku" else [8, 5, 3])
        for values, whole in ahead:
            assert np.array_equal(values, whole[count : count + len(values)], equal_nan=True)

    def test_a_displacement_of_1_shifts_nothing(self, bars: Bars) -> None:
        found = lines("ichimoku", bars, displacement=1)

        assert agree(found["Lagging"], bars.close.tolist())
        assert agree(found["Span B"], middles(bars, 52))

    def test_the_cloud_lies_between_the_spans(self, bars: Bars) -> None:
        result = run("ichimoku", bars)

        assert result.fills[0].upper is result.lines[2].values
        assert result.fills[0].lower is result.lines[3].values
        assert result.fills[0].ahead == (result.lines[2].ahead, result.lines[3].ahead)


class TestHeikinAshi:
    def test_by_the_definition(self, bars: Bars) -> None:
        expected: list[tuple[float, float, float, float]] = []
        for o, h, low, c in zip(bars.open.tolist(), *columns(bars)[:3], strict=True):
            close = (o + h + low + c) / 4
            opened = (expected[-1][0] + expected[-1][3]) / 2 if expected else (o + c) / 2
            expected.append((opened, max(h, opened, close), min(low, opened, close), close))

        result = run("heikin_ashi", bars)

        assert [line.label for line in result.lines] == ["open", "high", "low", "close"]
        assert all(
            agree(line.values, column) for line, column in zip(result.lines, zip(*expected, strict=True), strict=True)
        )
        sides = [1 if close > opened else -1 for opened, _, _, close in expected]
        assert [(i, label) for i, _, label in turns(result)] == [
            (i, label) for i, _, label in flips_of(sides, result.lines[3].values.tolist())
        ]

    def test_a_flip_is_the_other_colour_not_a_body_without_one(self) -> None:
        """No body, up (the first colour: no flip), no body, down, up."""
        bars = candles([(10, 12, 10, 12), (12, 14, 12, 14), (12, 12, 12, 12), (11, 11, 11, 11), (13, 13, 13, 13)])

        assert turns(run("heikin_ashi", bars)) == [(3, 11.0, "flip_down"), (4, 13.0, "flip_up")]


def classic(high: float, low: float, close: float) -> tuple[float, ...]:
    """P, R1, R2, R3, S1, S2, S3 as floor traders write them."""
    p = (high + low + close) / 3
    return p, 2 * p - low, p + high - low, high + 2 * (p - low), 2 * p - high, p - (high - low), low - 2 * (high - p)


class TestPivot:
    @pytest.mark.parametrize(
        ("timeframe", "period"),
        [
            (Timeframe.M1, "session"),
            (Timeframe.M15, "session"),
            (Timeframe.M30, "week"),
            (Timeframe.H4, "week"),
            (Timeframe.D1, "month"),
            (Timeframe.D3, "month"),
            (Timeframe.W1, "year"),
            (Timeframe.MONTH, "year"),
        ],
    )
    def test_auto_is_tradingviews_choice_of_the_period(self, timeframe: Timeframe, period: str) -> None:
        start = at("2023-10-02T00:00Z")
        bars = walk(start + np.arange(400) * timeframe.seconds, 3, CRYPTO, timeframe)

        automatic, chosen = (lines("pivot", bars, period=each) for each in ("auto", period))

        assert all(np.array_equal(automatic[level], chosen[level], equal_nan=True) for level in chosen)

    @pytest.mark.parametrize("instrument", [CRYPTO, STOCK])
    @pytest.mark.parametrize("period", ["week", "month", "year"])
    def test_longer_periods_are_those_of_the_calendar(self, period: str, instrument: object) -> None:
        """Each bar has the levels of the last week, month or year before that of its session, by plain dates."""
        given = STOCK if instrument is STOCK else CRYPTO
        bars = walk(at("2024-11-20T00:00Z") + np.arange(0, 80 * 24, 5) * 3600, 3, given, Timeframe.M30)
        high, low, close, _ = columns(bars)
        number = -1
        numbers = []
        for time, day in zip(bars.time.tolist(), sessions(bars), strict=True):
            date = datetime.fromtimestamp(time, UTC).date()
            keys = {"week": (date - timedelta(date.weekday())).toordinal(), "month": 12 * date.year + date.month}
            number = keys.get(period, date.year) if day >= 0 else number
            numbers.append(number)
        inside = [day >= 0 for day in sessions(bars)]
        expected: list[tuple[float, ...]] = [(nan,) * 7] * len(bars)
        for each in dict.fromkeys(numbers):
            rows = [i for i in range(len(bars)) if numbers[i] == each and inside[i]]
            if rows:
                known = classic(max(high[i] for i in rows), min(low[i] for i in rows), close[rows[-1]])
                since = max(i for i in range(len(bars)) if numbers[i] == each) + 1
                expected[since:] = [known] * (len(bars) - since)

        found = lines("pivot", bars, period=period)

        for level, values in enumerate(found.values()):
            assert agree(values, [each[level] for each in expected])
        assert not np.isnan(found["P"][-1])

    def test_classic_differs_from_traditional_in_the_third_levels(self) -> None:
        time = [at("2025-03-04T00:00Z"), at("2025-03-05T00:00Z")]
        bars = make(CRYPTO, Timeframe.D1, time, [10, 10], [12, 99], [6, 1], [10.5, 50], [1, 1])

        found = lines("pivot", bars, kind="classic", period="session")

        assert [values[1] for values in found.values()] == [9.5, 13.0, 15.5, 21.5, 7.0, 3.5, -2.5]
        assert [lines("pivot", bars, period="session")[level][1] for level in ("R3", "S3")] == [19.0, 1.0]

    @pytest.mark.parametrize(
        ("start", "end", "instrument"),
        [
            ("2025-03-05T13:00Z", "2025-03-12T00:00Z", STOCK),  # a weekend, and daylight saving in it
            ("2025-11-25T13:00Z", "2025-12-02T23:00Z", STOCK),  # a holiday, a half day, a weekend
            ("2024-12-30T00:00Z", "2025-01-04T00:00Z", STOCK),  # the turn of the year
            ("2025-03-07T00:00Z", "2025-03-11T00:00Z", CRYPTO),  # never closes
        ],
    )
    def test_is_the_prior_sessions_by_the_exchanges_calendar(self, start: str, end: str, instrument: object) -> None:
        bars = walk(minutes(start, end)[::7], 3, STOCK if instrument is STOCK else CRYPTO)
        high, low, close, _ = columns(bars)
        days = sessions(bars)
        order = [day for day in dict.fromkeys(days) if day >= 0]
        of_day = {day: [i for i, each in enumerate(days) if each == day] for day in order}
        expected: list[tuple[float, ...]] = [(nan,) * 7] * len(bars)
        for inside in of_day.values():
            known = classic(max(high[i] for i in inside), min(low[i] for i in inside), close[inside[-1]])
            since = inside[-1] + 1  # after-hours, the night and the next session, until that one has closed
            expected[since:] = [known] * (len(bars) - since)

        found = lines("pivot", bars)

        assert list(found) == ["P", "R1", "R2", "R3", "S1", "S2", "S3"]
        assert len(order) > 2
        for level, values in enumerate(found.values()):
            assert agree(values, [each[level] for each in expected])

    @pytest.mark.parametrize(
        ("last", "after", "following"),
        [
            ("2025-03-07T20:59Z", "2025-03-07T21:00Z", "2025-03-10T13:30Z"),  # Friday; Monday, an hour earlier in UTC
            ("2025-11-28T17:59Z", "2025-11-28T18:00Z", "2025-12-01T14:30Z"),  # the half day after Thanksgiving
        ],
    )
    def test_what_trades_outside_regular_hours_does_not_count(self, last: str, after: str, following: str) -> None:
        """The session's last minute does, the first one after it does not, however far it goes."""
        times = [at(last) - 3600, at(last), at(after), at(following) - 60, at(following)]
        high, low, close = (
            [110.0, 108.0, 500.0, 400.0, 101.0],
            [95.0, 90.0, 1.0, 2.0, 99.0],
            [100.0, 105.0, 77.0, 88.0, 100.0],
        )
        bars = make(STOCK, Timeframe.M1, times, close, high, low, close, np.ones(5))

        found = lines("pivot", bars)

        assert all(np.isnan(values[:2]).all() for values in found.values())
        for bar in (
            2,
            3,
            4,
        ):  # known when the session has closed, and unmoved by what follows before the next one closes
            assert [values[bar] for values in found.values()] == pytest.approx(classic(110.0, 90.0, 105.0), rel=1e-14)

    def test_by_hand(self) -> None:
        time = [at("2025-03-04T00:00Z"), at("2025-03-05T00:00Z")]
        bars = make(CRYPTO, Timeframe.D1, time, [10, 10], [12, 99], [6, 1], [9, 50], [1, 1])

        assert [values[1] for values in lines("pivot", bars, period="session").values()] == [
            9.0,
            12.0,
            15.0,
            18.0,
            6.0,
            3.0,
            0.0,
        ]

    def test_a_day_without_bars_is_passed_over(self) -> None:
        time = [at("2025-03-04T00:00Z"), at("2025-03-07T00:00Z")]
        bars = make(CRYPTO, Timeframe.D1, time, [10, 10], [12, 99], [6, 1], [9, 50], [1, 1])

        assert lines("pivot", bars, period="session")["P"][1] == 9.0


def plain_zigzag(bars: Bars, deviation: float, half: int) -> tuple[Turns, list[tuple[int, float]]]:
    """TradingView's ZigZag library bar by bar: signals and the swings that are confirmed."""
    high, low, _, _ = columns(bars)
    pivots: list[tuple[int, float, bool]] = []
    signals: Turns = []
    for now in range(2 * half, len(bars)):
        i = now - half
        for series, up in ((high, True), (low, False)):
            sign = 1 if up else -1
            if any(sign * series[j] > sign * series[i] for j in range(i + 1, now + 1)):
                continue
            if any(sign * series[j] >= sign * series[i] for j in range(i - half, i)):
                continue
            if not pivots:
                pivots.append((i, series[i], up))
            elif pivots[-1][2] == up:
                if sign * series[i] > sign * pivots[-1][1]:
                    pivots[-1] = (i, series[i], up)
            elif sign * 100 * (series[i] - pivots[-1][1]) / abs(pivots[-1][1]) >= deviation:
                signals.append((now, pivots[-1][1], "swing_high" if pivots[-1][2] else "swing_low"))
                pivots.append((i, series[i], up))
    return signals, [(i, price) for i, price, _ in pivots[:-1]]


class TestZigzag:
    @pytest.mark.parametrize(("deviation", "depth"), [(5.0, 5), (0.5, 2), (1.0, 12), (0.01, 3)])
    @pytest.mark.parametrize("rounded", [False, True])
    def test_is_tradingviews_library_bar_by_bar(self, bars: Bars, deviation: float, depth: int, rounded: bool) -> None:
        if rounded:  # many equal highs and lows
            steps = [np.round(column / column[0] * 200) for column in (bars.open, bars.high, bars.low, bars.close)]
            bars = make(CRYPTO, Timeframe.M1, bars.time, *steps, bars.volume)
        signals, swings = plain_zigzag(bars, deviation, depth // 2)

        result = run("zigzag", bars, deviation=deviation, depth=depth)

        assert turns(result) == signals
        assert result.divlines == tuple(Segment(*a, *b) for a, b in pairwise(swings))
        assert result.lines == ()

    def test_a_swing_is_known_only_when_the_other_side_is(self) -> None:
        """Up to 110 at bar 4, down to 104.5 (5 % less) at bar 8, up again: the high is confirmed two bars after the low."""
        path = [100, 102, 105, 108, 110, 108, 107, 106, 104.5, 106, 107, 108, 112, 113]
        result = run("zigzag", closes(path), depth=5)

        assert turns(result) == [(10, 110.0, "swing_high")]
        assert turns(run("zigzag", closes(path[:10]), depth=5)) == []
        assert result.divlines == ()  # one swing, no leg yet

        longer = run("zigzag", closes([*path, 112, 111, 106, 107, 108]), depth=5)
        assert turns(longer) == [(10, 110.0, "swing_high"), (15, 104.5, "swing_low"), (18, 113.0, "swing_high")]
        assert longer.divlines == (Segment(4, 110.0, 8, 104.5), Segment(8, 104.5, 13, 113.0))

    def test_what_is_not_far_enough_is_no_swing(self) -> None:
        path = [100, 102, 105, 108, 110, 108, 107, 106, 104.6, 106, 107, 108, 112, 113]

        assert turns(run("zigzag", closes(path), depth=5)) == []

    def test_a_confirmed_leg_never_changes(self, bars: Bars) -> None:
        whole = run("zigzag", bars, deviation=0.5).divlines
        for cut in range(1, len(bars), 17):
            then = run("zigzag", bars.take(slice(0, cut)), deviation=0.5).divlines
            assert whole[: len(then)] == then


class TestContract:
    @pytest.mark.parametrize(
        ("name", "alias", "defaults"),
        [
            ("ema_stack", "ema", {"fast": 8, "medium": 21, "slow": 50, "trend": 200}),
            ("keltner", "kc", {"length": 20, "multiplier": 1.5, "atr_length": 10}),
            ("donchian", None, {"length": 20}),
            ("vwap_bands", None, {"multiplier": 2.0}),
            ("supertrend", None, {"length": 10, "multiplier": 3.0}),
            ("sar", "parabolic_sar", {"start": 0.02, "increment": 0.02, "maximum": 0.2}),
            ("ichimoku", "ichi", {"conversion": 9, "base": 26, "span": 52, "displacement": 26}),
            ("heikin_ashi", "ha", {}),
            ("pivot", "pivot_points", {"kind": "traditional", "period": "auto"}),
            ("wma", None, {"length": 9}),
            ("hma", None, {"length": 9}),
            ("dema", None, {"length": 9}),
            ("tema", None, {"length": 9}),
            ("vwma", None, {"length": 20}),
            ("linreg", None, {"length": 25}),
            ("chandelier", None, {"length": 22, "multiplier": 3.0}),
            ("zigzag", None, {"deviation": 5.0, "depth": 10}),
        ],
    )
    def test_names_and_defaults(self, name: str, alias: str | None, defaults: dict[str, object]) -> None:
        assert get(name).settings() == defaults
        assert get(alias or name) is get(name)
        assert get(name).overlay

    @pytest.mark.parametrize("name", ["supertrend", "sar", "heikin_ashi"])
    def test_flips_take_turns_and_stand_at_the_line(self, name: str, bars: Bars) -> None:
        result = run(name, bars)
        drawn = result.lines[-1].values

        assert get(name).labels == ("flip_up", "flip_down")
        assert len(result.signals) > 2
        assert all(signal.value == drawn[signal.index] for signal in result.signals)
        assert all(a.label != b.label for a, b in pairwise(result.signals))


class TestNothingMoves:
    @given(st.floats(1e-8, 1e9))
    @settings(deadline=None, max_examples=60)
    def test_nothing_flips_and_every_line_is_the_price(self, price: float) -> None:
        bars = closes([price] * 240)
        for name in ("ema_stack", "keltner", "vwap_bands", "dema", "tema", "vwma"):
            for line in run(name, bars).lines:
                assert line.values[199:] == pytest.approx(price, rel=1e-13)
        for name in ("donchian", "chandelier", "supertrend", "sar", "wma", "hma", "linreg", "ichimoku"):
            result = run(name, bars)
            assert result.signals == ()
            assert all((line.values[199:-25] == price).all() for line in result.lines), name
        assert run("heikin_ashi", bars).signals == ()
        assert run("zigzag", bars) == Channels()


class TestAgainstPandas:
    """A second opinion on windows and weights."""

    def test_windows(self, bars: Bars) -> None:
        high, low = pd.Series(bars.high).rolling(26).max(), pd.Series(bars.low).rolling(26).min()
        turnover = pd.Series(bars.close * bars.volume).rolling(20).sum()

        assert agree(lines("ichimoku", bars)["Base"], ((high + low) / 2).to_numpy())
        assert agree(lines("vwma", bars)["VWMA"], (turnover / pd.Series(bars.volume).rolling(20).sum()).to_numpy())
