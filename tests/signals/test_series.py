"""Signals of a run of bars, compared at every bar with an independent calculation."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.bars import Bars, empty, make, resample
from openbell.market.errors import InsufficientData
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from openbell.signals.crossings import NEEDED, find_crossings
from openbell.signals.series import SignalSeries
from tests.indicators import references
from tests.indicators.test_float_ties import moved, ticks
from tests.market.new_york import oracle
from tests.market.walks import CRYPTO, DAY, FOREX, STOCK, at, closes, minutes, walk
from tests.signals.test_crossings import Numbers, by_contract

NAMES = ("ema9", "ma10", "macd", "signal", "hist", "rsi", "bb_upper", "bb_middle", "bb_lower")
TIMEFRAMES = [Timeframe.M1, Timeframe.M5, Timeframe.M15, Timeframe.H1]


def expected_at(bars: Bars) -> list[dict[str, float]]:
    """Returns the contract's snapshot at each bar."""
    close = bars.close.tolist()
    line, signal, hist = references.macd(close, 12, 26, 9)
    upper, middle, lower = references.bbands(close, 20, 2.0)
    columns = (references.ema(close, 9), references.sma(close, 10), line, signal, hist)
    rows = zip(*columns, references.rsi(close, 14), upper, middle, lower, strict=True)
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def regular_days(bars: Bars) -> list[int]:
    """Returns the trading day of each minute: the XNYS session for stocks, the UTC day for crypto."""
    if bars.instrument is not STOCK:
        return [int(day) for day in bars.time // DAY]
    sessions = oracle()
    row = np.searchsorted(sessions.open, bars.time, side="right") - 1
    return [int(day) for day in np.where(bars.time < sessions.close[row], row, -1)]


def expected_vwap(minute_bars: Bars, end: int) -> float | None:
    """Returns the VWAP of the day's minutes that ended by `end`; None if the latest minute is in no trading day."""
    until = minute_bars.between(0, end)
    if not len(until):
        return None
    columns = [column.tolist() for column in (until.high, until.low, until.close, until.volume)]
    value = references.vwap(columns, regular_days(until))[-1]
    return value if isfinite(value) else None


class TestEveryBar:
    @given(st.integers(0, 2**32), st.integers(35, 140), st.sampled_from([0.0005, 0.004, 0.03]))
    @settings(deadline=None, max_examples=25)
    def test_is_the_independent_calculation(self, seed: int, count: int, step: float) -> None:
        bars = walk(at("2025-03-04T22:50Z") + np.arange(count) * 60, seed, price=245.52, step=step)
        series = SignalSeries(bars, bars)
        expected = expected_at(bars)
        price = float(bars.close.max())

        for index in range(33, count):
            found = series.snapshot(index)
            for name in NAMES:
                assert getattr(found, name) == pytest.approx(expected[index][name], rel=1e-9, abs=1e-9 * price), name
            assert (found.price, found.volume, found.time) == (
                bars.close[index],
                bars.volume[index],
                bars.time[index],
            )
            assert found.bb_upper >= found.bb_middle >= found.bb_lower

    @given(st.integers(0, 2**32))
    @settings(deadline=None, max_examples=10)
    def test_crossings_are_those_of_the_bar_and_the_one_before(self, seed: int) -> None:
        bars = walk(at("2025-03-04T22:50Z") + np.arange(120) * 60, seed, step=0.01)
        series = SignalSeries(bars, bars)

        def numbers(index: int) -> Numbers:
            s = series.snapshot(index)
            return Numbers(
                close=s.price,
                ema9=s.ema9,
                macd=s.macd,
                signal=s.signal,
                rsi=s.rsi,
                bb_upper=s.bb_upper,
                bb_middle=s.bb_middle,
                bb_lower=s.bb_lower,
            )

        for index in range(34, 120):
            assert series.crossings(index).table() == by_contract(numbers(index - 1), numbers(index))

    def test_the_signals_of_a_bar_do_not_change_when_more_bars_close(self) -> None:
        bars = walk(minutes("2025-03-04T22:00Z", "2025-03-05T02:00Z"), 5)
        whole = SignalSeries(bars, bars)
        for count in range(35, len(bars), 20):
            part = bars.take(slice(0, count))
            then = SignalSeries(part, part).newest()
            assert then.crossings == whole.crossings(count - 1)
            now = whole.snapshot(count - 1)
            for name in (*NAMES, "price", "volume", "vwap"):
                assert getattr(then.last, name) == pytest.approx(getattr(now, name), rel=1e-12, abs=1e-12)

    def test_newest_compares_the_last_two_bars(self) -> None:
        bars = walk(minutes("2025-03-04T22:00Z", "2025-03-04T23:00Z"), 6)
        series = SignalSeries(bars, bars)

        newest = series.newest()

        assert newest.last == series.snapshot(59)
        assert newest.previous == series.snapshot(58)
        assert newest.crossings == find_crossings(newest.previous, newest.last) == series.crossings(59)

    @given(st.integers(0, 2**32), st.integers(35, 300), st.sampled_from([0.0, 0.0005, 0.03]))
    @settings(deadline=None, max_examples=25)
    def test_reading_the_newest_bar_alone_gives_the_same_bits(self, seed: int, count: int, step: float) -> None:
        bars = walk(at("2025-03-04T22:50Z") + np.arange(count) * 60, seed, price=245.52, step=step)
        newest = SignalSeries(bars, bars).newest()

        found = SignalSeries(bars, bars)

        assert (found.levels(-1).price, found.levels(-1).rsi) == (newest.last.price, newest.last.rsi)
        assert found.crossings(-1) == newest.crossings

    def test_numbers_are_python_floats(self) -> None:
        bars = walk(minutes("2025-03-04T22:00Z", "2025-03-04T23:00Z"), 6)
        last = SignalSeries(bars, bars).newest().last

        assert type(last.time) is int
        assert {type(getattr(last, name)) for name in (*NAMES, "price", "volume", "vwap")} == {float}


class TestHowManyBars:
    @pytest.mark.parametrize("count", [0, 1, 10, 34])
    @pytest.mark.parametrize("timeframe", TIMEFRAMES)
    def test_fewer_than_35_are_too_few_at_every_timeframe(self, timeframe: Timeframe, count: int) -> None:
        """The number of minutes does not matter at larger timeframes."""
        bars = walk(at("2025-03-03T00:00Z") + np.arange(count) * timeframe.seconds, 1, STOCK, timeframe)
        many = walk(minutes("2025-03-01T00:00Z", "2025-03-03T00:00Z"), 1, STOCK)

        with pytest.raises(InsufficientData) as refused:
            SignalSeries(bars, many)

        assert refused.value.details == {"symbol": "AAPL", "bars_available": count, "bars_needed": 35}

    @pytest.mark.parametrize("timeframe", TIMEFRAMES)
    def test_35_are_enough_for_every_number_of_both_bars(self, timeframe: Timeframe) -> None:
        bars = walk(at("2025-03-03T00:00Z") + np.arange(35) * timeframe.seconds, 1, CRYPTO, timeframe)

        newest = SignalSeries(bars, bars).newest()

        assert all(isfinite(getattr(s, name)) for s in (newest.last, newest.previous) for name in NAMES)


class TestVwap:
    @pytest.mark.parametrize("timeframe", TIMEFRAMES)
    @pytest.mark.parametrize("instrument", [CRYPTO, STOCK])
    def test_comes_from_the_minutes_at_every_timeframe(self, timeframe: Timeframe, instrument: Instrument) -> None:
        """The hour from 9:00 to 10:00 Eastern contains half an hour of the session, so its own volume cannot be used."""
        minute_bars = walk(minutes("2025-11-24T09:00Z", "2025-11-27T01:00Z")[::2], 3, instrument)
        bars = resample(minute_bars, timeframe, 1e12)
        series = SignalSeries(bars, minute_bars)

        for index in range(34, len(bars), max(1, len(bars) // 25)):
            end = int(bars.time[index]) + timeframe.seconds
            wanted = expected_vwap(minute_bars, end)
            found = series.snapshot(index).vwap
            assert found == (None if wanted is None else pytest.approx(wanted, rel=1e-9)), index

    def test_is_null_outside_regular_hours_of_a_stock(self) -> None:
        bars = walk(minutes("2025-09-19T19:00Z", "2025-09-19T21:00Z"), 1, STOCK)
        series = SignalSeries(bars, bars)

        assert series.snapshot(59).vwap is not None  # 15:59 Eastern
        assert series.snapshot(60).vwap is None  # 16:00
        assert series.newest().last.vwap is None

    def test_starts_again_with_each_session(self) -> None:
        night = walk(minutes("2025-09-18T19:00Z", "2025-09-18T20:00Z"), 1, STOCK, price=500.0)
        morning = walk(minutes("2025-09-19T13:30Z", "2025-09-19T13:31Z"), 2, STOCK, price=100.0)
        bars = make(
            STOCK, Timeframe.M1, *(np.concatenate(c) for c in zip(night.columns(), morning.columns(), strict=True))
        )

        typical = float(morning.high[0] + morning.low[0] + morning.close[0]) / 3
        assert SignalSeries(bars, bars).newest().last.vwap == pytest.approx(typical, rel=1e-12)

    def test_is_null_without_minutes(self) -> None:
        bars = walk(at("2025-03-03T00:00Z") + np.arange(40) * 3600, 1, CRYPTO, Timeframe.H1)

        assert SignalSeries(bars, empty(CRYPTO)).newest().last.vwap is None

    def test_does_not_look_beyond_the_bars_end(self) -> None:
        minute_bars = walk(minutes("2025-03-04T00:00Z", "2025-03-04T04:00Z"), 8)
        early = resample(minute_bars, Timeframe.M5, at("2025-03-04T03:20Z"))

        known = SignalSeries(early, minute_bars.between(0, at("2025-03-04T03:20Z"))).newest().last.vwap

        assert SignalSeries(early, minute_bars).newest().last.vwap == known


class TestTies:
    """Of 20 closes, 4 are a tick higher: the upper band lies exactly at the higher ones, 0.2 + 2 × 0.4 ticks up."""

    @pytest.mark.parametrize("price", [31.25, 1.1, 0.00001234, 157.3])
    @pytest.mark.parametrize("way", [1, -1])
    def test_a_close_at_a_band_is_not_beyond_it(self, price: float, way: int) -> None:
        steps = [0] * 40 + ([1] * 4 + [0] * 16) * 3 + [1]
        bars = closes([price * (1 + 0.001 * way * step) for step in steps])
        for towards in (0.0, np.inf):
            other = closes(np.nextafter(bars.close, towards))

            newest = SignalSeries(other, other).newest()

            assert not newest.crossings.bb_breakout_up
            assert not newest.crossings.bb_breakout_dn
            assert newest.last.price == (newest.last.bb_upper if way > 0 else newest.last.bb_lower)

    def test_crossings_do_not_change_with_the_last_digits(self) -> None:
        bars = ticks(FOREX, 1.1, 5, 1)
        expected = SignalSeries(bars, bars)
        for way in ("up", "down", "mixed", "mixed too"):
            other = moved(bars, way)
            found = SignalSeries(other, other)

            for index in range(NEEDED, len(bars)):
                assert found.crossings(index) == expected.crossings(index), (way, index)


class TestTrendAndAnchor:
    def test_a_steady_rise_is_bullish_and_its_stop_lies_two_ranges_below(self) -> None:
        bars = closes(100.0 * 1.01 ** np.arange(60))

        newest = SignalSeries(bars, bars).newest()

        reach = references.atr(bars.high.tolist(), bars.low.tolist(), bars.close.tolist(), 14)[-1]
        assert newest.trend == "bullish"
        assert newest.anchor.type == "long_stop"
        assert newest.anchor.price == pytest.approx(bars.close[-1] - 2 * reach, rel=1e-12)
        assert newest.anchor.distance_pct == pytest.approx(200 * reach / bars.close[-1], rel=1e-12)

    def test_a_fall_that_gathers_speed_is_bearish_and_its_stop_lies_above(self) -> None:
        bars = closes(100.0 - 0.02 * np.arange(60) ** 2)

        newest = SignalSeries(bars, bars).newest()

        reach = references.atr(bars.high.tolist(), bars.low.tolist(), bars.close.tolist(), 14)[-1]
        assert newest.trend == "bearish"
        assert newest.anchor.type == "short_stop"
        assert newest.anchor.price == pytest.approx(bars.close[-1] + 2 * reach, rel=1e-12)
        assert newest.anchor.distance_pct > 0

    def test_a_stop_is_never_below_0(self) -> None:
        bars = closes(np.where(np.arange(60) % 2, 100.0, 1.0))

        newest = SignalSeries(bars, bars).newest()

        assert (newest.anchor.type, newest.anchor.price, newest.anchor.distance_pct) == ("long_stop", 0.0, 100.0)

    def test_prices_that_do_not_move_consolidate(self) -> None:
        bars = closes([42.42] * 40)

        newest = SignalSeries(bars, bars).newest()

        assert newest.trend == "consolidating"
        assert newest.crossings.true() == ["bb_squeeze"]
        assert newest.last.rsi == 50.0
        assert newest.last.bb_upper == newest.last.bb_middle == newest.last.bb_lower == 42.42
        assert newest.last.ma10 == 42.42

    @given(st.floats(1e-8, 1e9))
    @settings(deadline=None, max_examples=60)
    def test_prices_that_do_not_move_cross_nothing(self, price: float) -> None:
        """Rounding errors of the averages cause no crossing either."""
        bars = closes([price] * 60)
        series = SignalSeries(bars, bars)

        assert {tuple(series.crossings(index).true()) for index in range(34, 60)} == {("bb_squeeze",)}

    def test_a_wide_swing_without_direction_is_mixed(self) -> None:
        bars = closes(100.0 + 10.0 * np.sin(np.arange(80)))
        series = SignalSeries(bars, bars)

        assert not series.newest().crossings.bb_squeeze
        assert {SignalSeries(bars.take(slice(0, n)), bars).newest().trend for n in range(60, 80)} >= {"mixed"}

    @given(st.integers(0, 2**32))
    @settings(deadline=None, max_examples=20)
    def test_a_trend_needs_price_averages_and_macd_to_agree(self, seed: int) -> None:
        bars = walk(at("2025-03-04T22:50Z") + np.arange(60) * 60, seed, step=0.01)

        newest = SignalSeries(bars, bars).newest()

        last = newest.last
        votes = {np.sign(last.price - last.ema9), np.sign(last.ema9 - last.bb_middle), np.sign(last.macd - last.signal)}
        quiet = "consolidating" if newest.squeezed else "mixed"
        assert newest.trend == ("bullish" if votes == {1.0} else "bearish" if votes == {-1.0} else quiet)
