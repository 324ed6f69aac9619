"""Following a series bar by bar gives what the arrays give, in whatever batches the bars come."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.channels import Signal
from openbell.indicators.evaluation import IndicatorRequest
from openbell.indicators.follower import FollowedSignal, Follower, SeriesChanged, can_follow
from openbell.indicators.registry import all_indicators, get
from openbell.indicators.regular_hours import regular_part, session_days
from openbell.indicators.spec import Indicator, Setting
from openbell.market.bars import Bars, Values, empty
from openbell.market.errors import DataError
from openbell.market.timeframes import Timeframe
from tests.counts import runs
from tests.indicators.test_every_indicator import (
    INDICATORS,
    close_enough,
    crypto_bars,
    larger_stock_bars,
    settings_of,
    stock_bars,
    streamed,
)
from tests.indicators.test_streamed_signals import extreme_settings, in_ticks, long_swings
from tests.market.walks import CRYPTO, STOCK, walk

FOLLOWED = [indicator for indicator in INDICATORS if can_follow(indicator)]
BATCHES = runs(5, soak=50)
SOURCES = ["crypto", "stock", "stock at 1 h", "stock at 4 h", "ticks", "swings"]

each_followed = pytest.mark.parametrize("indicator", FOLLOWED, ids=lambda indicator: indicator.name)


class Series(NamedTuple):
    bars: Bars
    regular: Bars


def series_of(source: str) -> Series:
    if source == "stock at 1 h":
        return Series(*larger_stock_bars(Timeframe.H1))
    if source == "stock at 4 h":
        return Series(*larger_stock_bars(Timeframe.H4))
    bars = {"crypto": crypto_bars, "stock": stock_bars, "ticks": in_ticks, "swings": long_swings}[source]()
    return Series(bars, regular_part(bars))


def request_for(indicator: Indicator, **chosen: Setting) -> IndicatorRequest:
    return IndicatorRequest(indicator.name, indicator, indicator.settings(**chosen))


class Followed:
    """What following gave: values at each bar, all signals."""

    def __init__(self, request: IndicatorRequest, series: Series, warm: int) -> None:
        self._request, self._series = request, series
        self.values: list[tuple[float, ...] | None] = [None] * len(series.bars)
        self.signals: list[Signal] = []
        self.rebuild(warm)

    def rebuild(self, count: int) -> None:
        """Begin anew on the first `count` bars."""
        bars, regular = self._upto(count)
        self.follower = Follower(self._request, bars, regular)
        self.signals = [signal for signal in self.signals if signal.index < count]
        self._keep(count)

    def follow(self, first: int, count: int) -> None:
        """Give it the bars up to `count`, from some bar that it has followed on."""
        bars, regular = (part.take(slice(first, None)) for part in self._upto(count))
        for signal in self.follower.update(bars, regular):
            assert isinstance(signal, FollowedSignal)
            assert signal.time == bars.time[signal.index]
            self.signals.append(Signal(first + signal.index, signal.value, signal.label))
        self._keep(count)

    def _upto(self, count: int) -> tuple[Bars, Bars]:
        return self._series.bars.take(slice(0, count)), self._series.regular.take(slice(0, count))

    def _keep(self, count: int) -> None:
        if count:
            assert self.follower.last_time == self._series.bars.time[count - 1]
            self.values[count - 1] = self.follower.values


def expected_values(request: IndicatorRequest, series: Series) -> list[Values]:
    part = series.regular if request.indicator.regular else series.bars
    return streamed(request.indicator, dict(request.settings), part, session_days(series.bars))


@each_followed
class TestFollowing:
    @given(source=st.sampled_from(SOURCES), data=st.data())
    @settings(deadline=None, max_examples=BATCHES)
    def test_in_any_batches_and_after_a_rebuild_is_the_same_as_the_arrays(
        self, indicator: Indicator, source: str, data: st.DataObject
    ) -> None:
        series = series_of(source)
        first = data.draw(st.integers(0, max(0, len(series.bars) - 150)), "first bar")
        some = slice(first, first + data.draw(st.integers(1, 150), "bars"))
        series = Series(*(part.take(some) for part in series))
        count = len(series.bars)
        request = request_for(indicator, **data.draw(st.sampled_from(settings_of(indicator)), "settings"))
        warm, again = data.draw(st.integers(0, count), "warm"), data.draw(st.integers(0, count), "rebuilt at")
        at_bar = warm
        followed = Followed(request, series, warm)
        rebuilt = False
        while at_bar < count:
            upto = data.draw(st.integers(at_bar, count) if at_bar else st.integers(1, count), "batch ends")
            followed.follow(data.draw(st.integers(0, max(0, at_bar - 1)), "batch begins"), upto)
            at_bar = upto
            if at_bar >= again and not rebuilt:
                rebuilt = True
                followed.rebuild(at_bar)

        with np.errstate(all="ignore"):
            channels = indicator.run(series.bars, None, series.regular, **request.settings)
        assert followed.signals == [signal for signal in channels.signals if signal.index >= warm]
        lines = (*channels.lines, *channels.histogram)
        for number, exactly in enumerate(expected_values(request, series)):
            for index, values in enumerate(followed.values):
                if values is None:
                    continue
                assert np.array_equal(values[number], exactly[index], equal_nan=True)
                if lines[number].label not in indicator.displaced:
                    found, expected = np.array([values[number]]), lines[number].values[index : index + 1]
                    assert close_enough(found, expected, series.bars), lines[number].label


@pytest.mark.parametrize("indicator", [each for each in FOLLOWED if each.signals], ids=lambda each: each.name)
@pytest.mark.parametrize("source", SOURCES)
def test_every_signal_comes_once_at_the_bounds_of_every_parameter(indicator: Indicator, source: str) -> None:
    series = series_of(source)
    count = len(series.bars)
    for number, chosen in enumerate(extreme_settings(indicator)):
        random = np.random.default_rng(number)
        warm = int(random.integers(0, count // 2))
        followed = Followed(request_for(indicator, **chosen), series, warm)
        ends = [*sorted(random.integers(warm, count, 40).tolist()), count]
        for before, end in zip([warm, *ends], ends, strict=False):
            followed.follow(max(0, before - int(random.integers(1, 20))), end)

        with np.errstate(all="ignore"):
            expected = indicator.run(series.bars, None, series.regular, **chosen).signals
        assert followed.signals == [signal for signal in expected if signal.index >= warm], chosen


class TestContinuity:
    def follower(self, count: int = 100) -> Follower:
        return Follower(request_for(get("rsi")), crypto_bars().take(slice(0, count)))

    def test_bars_that_hold_nothing_new_have_no_signals(self) -> None:
        follower = self.follower()

        assert follower.update(crypto_bars().take(slice(0, 100))) == []
        assert follower.update(crypto_bars().take(slice(99, 100))) == []
        assert follower.update(empty(CRYPTO)) == []
        assert follower.last_time == crypto_bars().time[99]

    def test_a_missing_bar_is_refused(self) -> None:
        follower = self.follower()

        with pytest.raises(SeriesChanged, match=r"BTC/USD: the bar of \d+ at M1 is missing"):
            follower.update(crypto_bars().take(slice(100, 110)))

    def test_older_bars_are_refused(self) -> None:
        with pytest.raises(SeriesChanged):
            self.follower().update(crypto_bars().take(slice(0, 50)))

    @pytest.mark.parametrize("column", ["open", "high", "low", "close", "volume"])
    def test_a_corrected_last_bar_is_refused(self, column: str) -> None:
        bars = crypto_bars().take(slice(90, 110)).copy()
        getattr(bars, column)[9] *= 1.0000001

        with pytest.raises(SeriesChanged):
            self.follower().update(bars)

    def test_a_last_bar_that_was_taken_away_is_refused(self) -> None:
        bars = crypto_bars().take(np.delete(np.arange(110), 99))

        with pytest.raises(SeriesChanged):
            self.follower().update(bars)

    def test_a_refusal_changes_nothing(self) -> None:
        refused, other = self.follower(), self.follower()
        with pytest.raises(SeriesChanged):
            refused.update(crypto_bars().take(slice(100, 110)))

        assert refused.update(crypto_bars()) == other.update(crypto_bars())
        assert refused.values == other.values

    def test_another_series_is_a_mistake_of_the_caller(self) -> None:
        for other in (stock_bars(), replace(crypto_bars(), timeframe=Timeframe.M5)):
            with pytest.raises(ValueError, match="follows BTC/USD at M1"):
                self.follower().update(other)

    def test_can_begin_without_bars(self) -> None:
        follower = Follower(request_for(get("rsi")), empty(CRYPTO))

        assert (follower.last_time, follower.values) == (None, None)
        found = follower.update(crypto_bars())
        assert [(s.index, s.value, s.label) for s in found] == [
            (s.index, s.value, s.label) for s in get("rsi").run(crypto_bars()).signals
        ]


class TestWhatCanBeFollowed:
    def test_all_but_profiles_and_what_needs_other_series(self) -> None:
        others = {name for name, each in all_indicators().items() if not can_follow(each)}

        assert others == {name for name, each in all_indicators().items() if each.needs or each.profile}
        assert {name for name, each in all_indicators().items() if each.signals}.isdisjoint(others)

    @pytest.mark.parametrize("name", ["funding", "volume_profile"])
    def test_others_are_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match=f"{name} cannot be followed"):
            Follower(request_for(get(name)), crypto_bars())

    def test_regular_hours_are_taken_from_bars_that_lie_inside_or_outside(self) -> None:
        bars = stock_bars()
        vwap = get("vwap").run(bars).lines[0].values
        last = int(np.flatnonzero(~np.isnan(vwap))[-1])
        follower = Follower(request_for(get("vwap")), bars.take(slice(0, 300)))

        follower.update(bars.take(slice(0, last + 1)))

        assert last > 300
        assert follower.values is not None
        assert follower.values[0] == pytest.approx(vwap[last], rel=1e-12)

    def test_bars_that_hold_more_than_regular_hours_need_their_regular_part(self) -> None:
        bars, _ = larger_stock_bars(Timeframe.H1)

        with pytest.raises(DataError, match="more than regular hours"):
            Follower(request_for(get("vwap")), bars)

    def test_a_session_that_spans_two_batches_is_one_session_at_the_turn_of_a_year(self) -> None:
        """The last session of a year and the first of the next, in batches of one bar."""
        opens = [1735655400, 1735828200]  # 2024-12-31 and 2025-01-02, 14:30 UTC
        times = np.concatenate([start + 60 * np.arange(-5, 30) for start in opens])
        bars = walk(times, 3, STOCK)
        follower = Follower(request_for(get("vwap")), bars.take(slice(0, 1)))
        found = []
        for last in range(1, len(bars)):
            follower.update(bars.take(slice(last - 1, last + 1)))
            found.append((follower.values or ())[0])

        assert np.allclose(found, get("vwap").run(bars).lines[0].values[1:], rtol=1e-12, equal_nan=True)
