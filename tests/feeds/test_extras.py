"""Extra series of the simulator, and the indicators that use them."""

from __future__ import annotations

import asyncio
import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.feeds.none.feed import NoFeed
from openbell.feeds.port import Feed
from openbell.feeds.sim.bars import minute_bars
from openbell.feeds.sim.feed import NATIVES, SimFeed
from openbell.feeds.sim.universe import LISTINGS
from openbell.indicators.registry import get
from openbell.market.bars import Values, resample
from openbell.market.clock import FixedClock, parse_time
from openbell.market.errors import DataError, NoSuchSeries, UnknownSymbol
from openbell.market.extras import KINDS, Extra
from openbell.market.instruments import AssetClass, parse
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe

HOUR, DAY = 3600, 86400
STEPS = {"funding": 8 * HOUR, "open_interest": HOUR, "long_short": HOUR, "fear_greed": DAY}


def at(text: str) -> int:
    return int(parse_time(text))


NOW = at("2025-11-26T15:00:00Z")


def extra(kind: str, symbol: str, start: int = 0, end: int = NOW, now: float = NOW, seed: int = 7) -> Extra:
    return asyncio.run(SimFeed(FixedClock(now), seed).extra(kind, parse(symbol), start, end))


def same(one: Extra, other: Extra) -> bool:
    return np.array_equal(one.time, other.time) and np.array_equal(one.value, other.value)


def price_at(symbol: str, times: Times, seed: int = 7) -> Values:
    """Returns the close of the last minute before each time."""
    bars = minute_bars(parse(symbol), seed, int(times[0]) - DAY, int(times[-1]) + 1)
    close: Values = bars.close[np.searchsorted(bars.time, times) - 1]
    return close


def change(symbol: str, times: Times, span: int, seed: int = 7) -> Values:
    moved: Values = price_at(symbol, times, seed) / price_at(symbol, times - span, seed) - 1
    return moved


def correlation(one: Values, other: Values) -> float:
    return float(np.corrcoef(one, other)[0, 1])


class TestAvailability:
    def test_each_asset_class_has_its_kinds(self) -> None:
        has = {
            AssetClass.CRYPTO: set(KINDS),
            AssetClass.STOCK: {"delta", "fear_greed"},
            AssetClass.FOREX: {"delta"},
        }
        for instrument in LISTINGS:
            for kind in KINDS:
                if kind in has[instrument.asset_class]:
                    assert len(extra(kind, instrument.symbol, NOW - 2 * DAY).time), (instrument, kind)
                else:
                    with pytest.raises(NoSuchSeries, match=rf"feed sim has no {kind} for {instrument}: .*delta"):
                        extra(kind, instrument.symbol)

    def test_unknown_kinds_and_symbols_are_refused(self) -> None:
        with pytest.raises(NoSuchSeries, match="no tides for BTC/USD: available are delta, funding") as none:
            extra("tides", "BTC/USD")
        assert isinstance(none.value, DataError)
        assert none.value.details == {"feed": "sim", "kind": "tides", "symbol": "BTC/USD"}
        with pytest.raises(UnknownSymbol, match="GME"):
            extra("delta", "GME")

    def test_without_a_feed_the_error_says_what_to_do(self) -> None:
        feed: Feed = NoFeed()
        with pytest.raises(NoSuchSeries, match="feed none has no funding for BTC/USD: set OPENBELL_FEED"):
            asyncio.run(feed.extra("funding", parse("BTC/USD"), 0, NOW))

    @pytest.mark.parametrize("kind", STEPS)
    def test_values_come_at_regular_times(self, kind: str) -> None:
        found = extra(kind, "BTC/USDT", NOW - 30 * DAY)

        assert (np.diff(found.time) == STEPS[kind]).all()
        assert (found.time % STEPS[kind] == 0).all()

    def test_history_reaches_back_as_far_as_bars_do(self) -> None:
        earliest = NATIVES[Timeframe.M1].earliest(NOW)
        for kind in KINDS:
            found = extra(kind, "ETH/USD")
            assert earliest <= found.time[0] < earliest + STEPS.get(kind, 60)


class TestDeterminism:
    @given(st.sampled_from(KINDS), st.integers(-40 * DAY, DAY), st.integers(0, 20 * DAY), st.integers(0, 30 * DAY))
    @settings(deadline=None, max_examples=60)
    def test_values_do_not_depend_on_the_range_or_the_clock(
        self, kind: str, start: int, length: int, later: int
    ) -> None:
        whole = extra(kind, "BTC/USDT", NOW - 60 * DAY, NOW + 60 * DAY, NOW + 30 * DAY)
        first, last = NOW + start, NOW + start + length
        now = NOW + later

        found = extra(kind, "BTC/USDT", first, last, now)

        known = np.minimum(last, now - 59 if kind == "delta" else now + 1)
        chosen = (whole.time >= first) & (whole.time < known)
        assert same(found, Extra(whole.time[chosen], whole.value[chosen]))

    def test_every_machine_and_version_computes_these_series(self) -> None:
        total = hashlib.sha256()
        for symbol, kinds in (("SOL/USDT", KINDS), ("AAPL", ("delta", "fear_greed")), ("EUR/USD", ("delta",))):
            for kind in kinds:
                found = extra(kind, symbol, NOW - 40 * DAY)
                total.update(found.time.tobytes() + found.value.tobytes())
        assert total.hexdigest()[:16] == "e74c12ec691a17cd"

    @pytest.mark.parametrize("kind", KINDS)
    def test_another_seed_gives_other_values(self, kind: str) -> None:
        assert not same(extra(kind, "BTC/USD", NOW - 9 * DAY), extra(kind, "BTC/USD", NOW - 9 * DAY, seed=8))

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "fear_greed"])
    def test_twins_have_different_values(self, kind: str) -> None:
        assert not np.array_equal(
            extra(kind, "BTC/USD", NOW - 9 * DAY).value, extra(kind, "BTC/USDT", NOW - 9 * DAY).value
        )


class TestNoLookAhead:
    def test_the_order_flow_of_a_minute_is_available_at_its_end(self) -> None:
        assert extra("delta", "BTC/USD", NOW - 600, NOW + 600, NOW + 59.9).time[-1] == NOW - 60
        assert extra("delta", "BTC/USD", NOW - 600, NOW + 600, NOW + 60).time[-1] == NOW

    @pytest.mark.parametrize("kind", STEPS)
    def test_other_values_are_available_at_their_time(self, kind: str) -> None:
        moment = at("2025-11-26T00:00:00Z")

        assert extra(kind, "BTC/USD", 0, NOW, moment).time[-1] == moment
        assert extra(kind, "BTC/USD", 0, NOW, moment - 0.1).time[-1] == moment - STEPS[kind]

    def test_fear_and_greed_of_stocks_is_published_after_extended_hours(self) -> None:
        """Extended hours end at 01:00 UTC in winter; the next premarket begins at 08:00 UTC at the earliest."""
        hours = extra("fear_greed", "SPY", NOW - 300 * DAY).time % DAY // HOUR
        assert set(hours.tolist()) == {6}

    @pytest.mark.parametrize("kind", ["funding", "long_short", "open_interest"])
    def test_does_not_predict_the_price(self, kind: str) -> None:
        found = []
        for seed in range(4):
            values = extra(kind, "BTC/USDT", NOW - 360 * DAY, NOW - 2 * DAY, seed=seed)
            daily = values.time % DAY == 0
            coming = -change("BTC/USDT", values.time[daily] + DAY, DAY, seed)
            found.append(correlation(np.diff(values.value[daily]), coming[1:]))
        assert abs(np.mean(found)) < 0.08


class TestConsistencyWithTheBars:
    @pytest.mark.parametrize("symbol", ["BTC/USDT", "AAPL", "SERV", "EUR/USD"])
    def test_order_flow_has_the_bars_direction_and_at_most_its_volume(self, symbol: str) -> None:
        start = NOW - 20 * DAY
        bars = minute_bars(parse(symbol), 7, start, NOW)

        found = extra("delta", symbol, start)

        assert np.array_equal(found.time, bars.time)
        assert (np.abs(found.value) <= bars.volume).all()
        assert (found.value * (bars.close - bars.open) >= 0).all()
        assert correlation(found.value / bars.volume, bars.close / bars.open - 1) > 0.4
        assert (found.value[bars.close != bars.open] != 0).mean() > 0.98

    def test_funding_is_higher_after_a_rise(self) -> None:
        found = extra("funding", "BTC/USDT")

        assert np.abs(found.value).max() <= 0.003
        assert np.median(found.value) == pytest.approx(0.0001, abs=0.00003)
        assert (found.value < 0).any()
        assert correlation(found.value, change("BTC/USDT", found.time, DAY)) > 0.7

    def test_open_interest_is_higher_after_a_rise(self) -> None:
        found = extra("open_interest", "ETH/USDT")

        assert found.value.min() > 0
        assert found.value.max() / found.value.min() < 8
        moved = change("ETH/USDT", found.time, 3 * DAY)
        assert correlation(np.diff(found.value[::72]), np.diff(moved[::72])) > 0.3

    def test_the_long_short_ratio_is_higher_after_a_fall(self) -> None:
        found = extra("long_short", "SOL/USDT")

        assert 0.3 < found.value.min() < 1 < found.value.max() < 4
        assert correlation(found.value, change("SOL/USDT", found.time, DAY)) < -0.5

    @pytest.mark.parametrize(("symbol", "other"), [("BTC/USD", "SOL/USDT"), ("SPY", "TSLA")])
    def test_fear_and_greed_is_one_series_per_class_and_follows_the_market(self, symbol: str, other: str) -> None:
        found = extra("fear_greed", symbol)

        assert same(found, extra("fear_greed", other))
        assert found.value.min() >= 0
        assert found.value.max() <= 100
        assert (found.value == np.round(found.value)).all()
        assert 5 < found.value.std() < 35
        assert correlation(found.value[30:], change(symbol, found.time[30:], 14 * DAY)) > 0.4


class TestIndicators:
    """The indicators of the catalogue, compared with plain loops."""

    SYMBOL = "BTC/USDT"
    START = NOW - 12 * DAY

    @pytest.mark.parametrize("timeframe", [Timeframe.M15, Timeframe.H1, Timeframe.H4])
    def test_cvd_is_the_sum_of_the_order_flow(self, timeframe: Timeframe) -> None:
        bars = resample(minute_bars(parse(self.SYMBOL), 7, self.START - self.START % (4 * HOUR), NOW), timeframe, NOW)
        flow = extra("delta", self.SYMBOL, self.START - DAY)
        expected, total = [], 0.0
        by_minute = dict(zip(flow.time.tolist(), flow.value.tolist(), strict=True))
        for time in bars.time.tolist():
            if time % DAY == 0:
                total = 0.0  # a session of a coin is a UTC day
            total += sum(by_minute.get(minute, 0.0) for minute in range(time, time + timeframe.seconds, 60))
            expected.append(total)

        found = get("cvd").run(bars, {"delta": flow})

        assert found.lines[0].values == pytest.approx(expected, rel=1e-9, abs=1e-6)

    def test_cvd_begins_with_the_first_order_flow(self) -> None:
        bars = resample(minute_bars(parse(self.SYMBOL), 7, NOW - 10 * HOUR, NOW), Timeframe.H1, NOW)

        values = get("cvd").run(bars, {"delta": extra("delta", self.SYMBOL, NOW - 5 * HOUR)}).lines[0].values

        assert np.isnan(values).tolist() == [True] * 5 + [False] * 5

    @pytest.mark.parametrize(
        ("name", "kind", "factor"),
        [
            ("funding", "funding", 100.0),
            ("oi", "open_interest", 1.0),
            ("long_short", "long_short", 1.0),
            ("fear_greed", "fear_greed", 1.0),
        ],
    )
    def test_other_indicators_show_the_latest_value_before_a_bars_end(
        self, name: str, kind: str, factor: float
    ) -> None:
        bars = resample(minute_bars(parse(self.SYMBOL), 7, self.START, NOW), Timeframe.M30, NOW)
        values = extra(kind, self.SYMBOL, self.START)
        expected = []
        for time in bars.time.tolist():
            known = [v for t, v in zip(values.time.tolist(), values.value.tolist(), strict=True) if t < time + 1800]
            expected.append(factor * known[-1] if known else np.nan)

        result = get(name).run(bars, {kind: values})

        (line,) = (*result.lines, *result.histogram)
        assert np.allclose(line.values, expected, rtol=1e-12, equal_nan=True)
        assert bool(result.histogram) is (name == "funding")

    def test_levels_and_names_are_the_contracts(self) -> None:
        bars = resample(minute_bars(parse(self.SYMBOL), 7, NOW - DAY, NOW), Timeframe.H1, NOW)
        shown = {
            name: get(name).run(bars, {get(name).needs[0]: extra(get(name).needs[0], self.SYMBOL, NOW - 2 * DAY)})
            for name in ("cvd", "funding_rate", "open_interest", "ls_ratio", "fng")
        }

        assert shown["ls_ratio"].hlines == (1.0,)
        assert (shown["fng"].hlines, shown["fng"].y_range) == ((25.0, 75.0), (0.0, 100.0))
        assert not any(get(name).overlay for name in shown)
