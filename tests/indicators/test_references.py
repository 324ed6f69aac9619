"""The numbers themselves, held against definitions written out in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from openbell.indicators.averages import ema, sma, sma_and_deviation, wilder
from openbell.indicators.registry import get
from openbell.market.bars import Bars, Values, make
from openbell.market.timeframes import Timeframe
from tests.indicators import references
from tests.market.new_york import oracle
from tests.market.walks import CRYPTO, DAY, STOCK, at, closes, minutes, walk

SEEDS = range(4)
MONEY = st.floats(1e-8, 1e9)


def lines(name: str, bars: Bars, /, **overrides: object) -> dict[str, Values]:
    result = get(name).run(bars, **overrides)
    return {line.label: line.values for line in (*result.lines, *result.histogram)}


def agree(found: Values, expected: Sequence[float], scale: float = 0.0) -> bool:
    """To 1e-9 of the value; `scale` is the price where the value is a difference of prices."""
    return bool(np.allclose(found, expected, rtol=1e-9, atol=1e-9 * scale, equal_nan=True))


@pytest.fixture(params=SEEDS)
def bars(request: pytest.FixtureRequest) -> Bars:
    price = [0.0000123, 4.2, 245.5, 98234.5][request.param]
    return walk(minutes("2025-03-04T20:00Z", "2025-03-05T02:00Z"), request.param, price=price, step=0.004)


class TestAgainstDefinitions:
    @pytest.mark.parametrize("length", [1, 2, 9, 26, 200])
    def test_ema(self, bars: Bars, length: int) -> None:
        assert agree(lines("ema_line", bars, length=length)["EMA"], references.ema(bars.close.tolist(), length))

    @pytest.mark.parametrize("length", [1, 2, 10, 20, 200])
    def test_sma(self, bars: Bars, length: int) -> None:
        assert agree(lines("sma", bars, length=length)["SMA"], references.sma(bars.close.tolist(), length))

    @pytest.mark.parametrize(("fast", "slow", "signal"), [(12, 26, 9), (3, 10, 16), (26, 12, 9), (1, 2, 1), (5, 5, 5)])
    def test_macd(self, bars: Bars, fast: int, slow: int, signal: int) -> None:
        found = lines("macd", bars, fast=fast, slow=slow, signal=signal)
        line, trigger, histogram = references.macd(bars.close.tolist(), fast, slow, signal)

        scale = float(bars.close.max())
        assert agree(found["MACD"], line, scale)
        assert agree(found["Signal"], trigger, scale)
        assert agree(found["Histogram"], histogram, scale)

    @pytest.mark.parametrize("length", [1, 2, 14, 21, 100])
    def test_rsi(self, bars: Bars, length: int) -> None:
        assert agree(lines("rsi", bars, length=length)["RSI"], references.rsi(bars.close.tolist(), length))

    @pytest.mark.parametrize(("period", "std_dev"), [(20, 2.0), (2, 1.0), (1, 2.0), (50, 2.5)])
    def test_bbands(self, bars: Bars, period: int, std_dev: float) -> None:
        found = lines("bbands", bars, period=period, std_dev=std_dev)
        upper, middle, lower = references.bbands(bars.close.tolist(), period, std_dev)

        assert agree(found["upper"], upper)
        assert agree(found["middle"], middle)
        assert agree(found["lower"], lower)

    @pytest.mark.parametrize("length", [1, 2, 14, 50])
    def test_atr(self, bars: Bars, length: int) -> None:
        expected = references.atr(bars.high.tolist(), bars.low.tolist(), bars.close.tolist(), length)

        assert agree(lines("atr", bars, length=length)["ATR"], expected)

    def test_vwap_of_crypto_begins_anew_at_midnight_utc(self, bars: Bars) -> None:
        days = (bars.time // DAY).tolist()
        columns = [column.tolist() for column in (bars.high, bars.low, bars.close, bars.volume)]

        found = lines("vwap", bars)["VWAP"]

        assert agree(found, references.vwap(columns, days))
        midnight = int(np.searchsorted(bars.time, at("2025-03-05T00:00Z")))
        typical = (bars.high + bars.low + bars.close)[midnight] / 3
        assert found[midnight] == pytest.approx(typical, rel=1e-12)

    @pytest.mark.parametrize(
        ("start", "end"),
        [
            ("2025-11-26T13:00Z", "2025-11-29T00:00Z"),  # a session, a holiday, a half day
            ("2024-12-30T00:00Z", "2025-01-04T00:00Z"),  # the turn of the year
            ("2025-03-06T00:00Z", "2025-03-12T00:00Z"),  # daylight saving
        ],
    )
    def test_vwap_of_stocks_is_that_of_the_regular_session(self, start: str, end: str) -> None:
        bars = walk(minutes(start, end)[::3], 7, STOCK)
        book = oracle()
        row = np.searchsorted(book.open, bars.time, side="right") - 1
        days = np.where(bars.time < book.close[row], row, -1).tolist()
        columns = [column.tolist() for column in (bars.high, bars.low, bars.close, bars.volume)]

        found = lines("vwap", bars)["VWAP"]

        assert agree(found, references.vwap(columns, days))
        assert np.array_equal(np.isnan(found), np.array(days) < 0)

    def test_vwap_waits_for_the_first_trade_of_a_day(self) -> None:
        time = at("2025-03-04T23:58Z") + np.arange(5) * 60
        price = np.array([10.0, 11.0, 12.0, 13.0, 14.0])
        bars = make(CRYPTO, Timeframe.M1, time, price, price, price, price, [1.0, 0.0, 0.0, 2.0, 2.0])

        found = lines("vwap", bars)["VWAP"]

        assert np.array_equal(found, [10.0, 10.0, np.nan, 13.0, 13.5], equal_nan=True)


class TestAgainstPandas:
    """A second opinion on the deviation and on averages without a seed."""

    def test_bands_use_the_populations_deviation(self, bars: Bars) -> None:
        found = lines("bbands", bars)
        rolling = pd.Series(bars.close).rolling(20)

        scale = float(bars.close.max())
        assert agree(found["upper"], (rolling.mean() + 2 * rolling.std(ddof=0)).to_numpy(), scale)
        assert agree(found["lower"], (rolling.mean() - 2 * rolling.std(ddof=0)).to_numpy(), scale)

    def test_an_ema_goes_on_from_its_seed_as_ewm_does(self, bars: Bars) -> None:
        seeded = pd.Series(np.append(bars.close[:9].mean(), bars.close[9:]))

        expected = seeded.ewm(span=9, adjust=False).mean().to_numpy()

        assert agree(lines("ema_line", bars, length=9)["EMA"][8:], expected)

    def test_wilders_average_has_a_weight_of_one_in_length(self, bars: Bars) -> None:
        seeded = pd.Series(np.append(bars.close[:14].mean(), bars.close[14:]))

        assert agree(wilder(bars.close, 14)[13:], seeded.ewm(alpha=1 / 14, adjust=False).mean().to_numpy())


class TestKnownNumbers:
    def test_wilders_own_worksheet(self) -> None:
        """The series that textbooks print for RSI 14, to their two digits."""
        prices = [44.34, 44.09, 44.15, 43.61, 44.33, 44.83, 45.10, 45.42, 45.84, 46.08]
        prices += [45.89, 46.03, 45.61, 46.28, 46.28, 46.00, 46.03, 46.41, 46.22, 45.64]

        found = lines("rsi", closes(prices))["RSI"]

        assert np.isnan(found[:14]).all()
        assert found[14:] == pytest.approx([70.46, 66.25, 66.48, 69.35, 66.29, 57.92], abs=0.01)

    def test_an_ema_by_hand(self) -> None:
        found = lines("ema_line", closes([1, 2, 3, 4, 8]), length=3)["EMA"]

        assert np.array_equal(found, [np.nan, np.nan, 2.0, 3.0, 5.5], equal_nan=True)

    def test_bands_by_hand(self) -> None:
        found = lines("bbands", closes([2, 4, 4, 4, 5, 5, 7, 9]), period=8)

        assert (found["upper"][-1], found["middle"][-1], found["lower"][-1]) == (9.0, 5.0, 1.0)

    def test_the_first_true_range_has_no_gap_and_later_ones_do(self) -> None:
        bars = make(
            CRYPTO,
            Timeframe.M1,
            at("2025-03-04T00:00Z") + np.arange(4) * 60,
            [10, 20, 10, 10],
            [11, 21, 10, 10],
            [9, 20, 9, 10],
            [10, 20, 10, 10],
            [1, 1, 1, 1],
        )
        assert lines("atr", bars, length=1)["ATR"].tolist() == [2.0, 11.0, 11.0, 0.0]

    def test_the_defaults_are_the_contracts(self) -> None:
        assert get("macd").settings() == {"fast": 12, "slow": 26, "signal": 9}
        assert get("rsi").settings() == {"length": 14}
        assert get("bbands").settings() == {"period": 20, "std_dev": 2.0}
        assert get("ema_line").settings() == {"length": 9}
        assert get("sma").settings() == {"length": 10}
        assert get("atr").settings() == {"length": 14}


class TestNothingMoves:
    @given(MONEY)
    @settings(deadline=None, max_examples=100)
    def test_rsi_is_50_and_the_bands_are_the_close(self, price: float) -> None:
        bars = closes([price] * 60)

        assert (lines("rsi", bars)["RSI"][14:] == 50.0).all()
        found = lines("bbands", bars)
        assert all((found[name][19:] == price).all() for name in ("upper", "middle", "lower"))
        assert (lines("sma", bars)["SMA"][9:] == price).all()
        assert (lines("atr", bars)["ATR"][13:] == 0.0).all()

    @pytest.mark.parametrize("length", [1, 2, 14])
    def test_rsi_when_everything_rises_or_falls(self, length: int) -> None:
        up = np.cumsum(np.random.default_rng(1).uniform(0.1, 3.0, 100)) + 5.0

        assert (lines("rsi", closes(up), length=length)["RSI"][length:] == 100.0).all()
        assert (lines("rsi", closes(up[::-1]), length=length)["RSI"][length:] == 0.0).all()

    @pytest.mark.parametrize(("ups", "label"), [(7, "rsi_overbought"), (3, "rsi_oversold")])
    def test_rsi_levels_are_inclusive(self, ups: int, label: str) -> None:
        steps = [1.0] * ups + [-1.0] * (10 - ups)

        result = get("rsi").run(closes(np.cumsum([100.0, *steps])), length=10)

        assert [(signal.index, signal.value, signal.label) for signal in result.signals] == [(10, ups * 10.0, label)]

    def test_rsi_signals_mark_the_bar_at_which_a_level_becomes_true(self) -> None:
        bars = walk(minutes("2025-03-04T00:00Z", "2025-03-05T00:00Z"), 13, step=0.01)
        values = references.rsi(bars.close.tolist(), 14)
        expected = []
        for at_bar in range(1, len(values)):
            before, now = values[at_bar - 1], values[at_bar]
            if now >= 70 and not before >= 70:
                expected.append((at_bar, "rsi_overbought"))
            if now <= 30 and not before <= 30:
                expected.append((at_bar, "rsi_oversold"))

        found = get("rsi").run(bars)

        assert len(expected) > 10
        assert [(signal.index, signal.label) for signal in found.signals] == expected
        assert [s.value for s in found.signals] == pytest.approx([values[i] for i, _ in expected], rel=1e-9)
        assert (found.hlines, found.y_range) == ((30.0, 70.0), (0.0, 100.0))


nearly_flat = st.builds(
    lambda base, steps: [base * (1 + step * 2.0**-52) for step in steps],
    MONEY,
    st.lists(st.integers(-4, 4), min_size=20, max_size=60),
)
wild = st.lists(MONEY, min_size=20, max_size=60)
shifted = st.builds(
    lambda base, steps: [base + step for step in steps],
    st.sampled_from([1e9, 98234.5]),
    st.lists(st.floats(0, 1e-3), min_size=20, max_size=60),
)


class TestBands:
    @given(
        st.one_of(nearly_flat, wild, shifted), st.sampled_from([1, 2, 5, 20]), st.sampled_from([0.1, 1.0, 2.0, 10.0])
    )
    @settings(deadline=None, max_examples=250)
    def test_upper_is_never_below_the_middle_nor_that_below_the_lower(
        self, prices: list[float], period: int, std_dev: float
    ) -> None:
        found = lines("bbands", closes(prices), period=period, std_dev=std_dev)
        upper, middle, lower = (found[name][period - 1 :] for name in ("upper", "middle", "lower"))

        assert (upper >= middle).all()
        assert (middle >= lower).all()
        assert np.isfinite(upper).all()

    @given(st.one_of(nearly_flat, shifted))
    @settings(deadline=None, max_examples=100)
    def test_the_middle_lies_among_the_prices_even_when_they_hardly_move(self, prices: list[float]) -> None:
        found = lines("bbands", closes(prices), period=20)
        for at_bar in range(19, len(prices)):
            window = prices[at_bar - 19 : at_bar + 1]
            ulp = np.spacing(max(window))
            assert min(window) - ulp <= found["middle"][at_bar] <= max(window) + ulp
            spread = max(window) - min(window)
            assert found["upper"][at_bar] - found["lower"][at_bar] <= 2 * spread + 4 * ulp

    @given(shifted)
    @settings(deadline=None, max_examples=60)
    def test_a_small_deviation_at_a_large_price_is_not_lost(self, prices: list[float]) -> None:
        """One pass over squares would lose every digit here."""
        expected = references.bbands(prices, 20, 2.0)
        _, deviation = sma_and_deviation(np.array(prices), 20)
        wanted = (np.array(expected[0]) - np.array(expected[2])) / 4

        ulp = np.spacing(max(prices))
        assert np.allclose(deviation[19:], wanted[19:], rtol=1e-6, atol=2 * ulp)


class TestAverages:
    @given(
        st.lists(MONEY, max_size=40),
        st.integers(0, 5),
        st.integers(1, 12),
        st.sampled_from([(ema, references.ema), (sma, None), (wilder, references.wilder)]),
    )
    @settings(deadline=None, max_examples=150)
    def test_a_leading_warm_up_is_waited_out(
        self,
        values: list[float],
        lead: int,
        length: int,
        pair: tuple[Callable[[Values, int], Values], Callable[[Sequence[float], int], list[float]] | None],
    ) -> None:
        average, reference = pair
        padded: npt.NDArray[np.float64] = np.array([np.nan] * lead + values, dtype=np.float64)
        expected = [np.nan] * lead + (reference or references.sma)(values, length)

        assert np.allclose(average(padded, length), expected, rtol=1e-9, equal_nan=True)

    @given(st.lists(MONEY, min_size=1, max_size=40), st.integers(1, 12))
    @settings(deadline=None, max_examples=60)
    def test_an_average_of_prices_lies_among_them(self, values: list[float], length: int) -> None:
        assume(len(values) >= length)
        array = np.array(values)
        for average in (ema, sma, wilder):
            found = average(array, length)[length - 1 :]
            assert (found <= max(values) * (1 + 1e-12)).all()
            assert (found >= min(values) * (1 - 1e-12) - max(values) * 1e-15).all()
