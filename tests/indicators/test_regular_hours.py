"""What rests on regular hours, on bars that hold more than those: against plain Python over the minutes."""

from __future__ import annotations

from functools import cache
from math import nan

import numpy as np
import pytest

from openbell.indicators.channels import Channels
from openbell.indicators.registry import all_indicators, get
from openbell.indicators.regular_hours import partly_regular, regular_part, regular_part_from_minutes, session_days
from openbell.market.bars import Bars, Values, empty, make, resample
from openbell.market.errors import DataError
from openbell.market.session_table import table_for
from openbell.market.timeframes import Timeframe
from tests.indicators import references
from tests.market.new_york import oracle
from tests.market.walks import CRYPTO, STOCK, at, minutes, trading_day, walk

NEEDY = [name for name, indicator in all_indicators().items() if indicator.regular]
CUT = [Timeframe.H1, Timeframe.H2, Timeframe.H4, Timeframe.H6, Timeframe.H12]
WHOLE = [Timeframe.M1, Timeframe.M3, Timeframe.M5, Timeframe.M15, Timeframe.M30]
SPANS = [
    ("2025-11-24T09:00Z", "2025-12-03T01:00Z"),  # a holiday, a half day, a weekend
    ("2025-03-05T09:00Z", "2025-03-13T00:00Z"),  # the clocks go forward
    ("2025-10-29T08:00Z", "2025-11-06T01:00Z"),  # and back
    ("2024-12-27T09:00Z", "2025-01-07T01:00Z"),  # the turn of the year
]

on_every_span = pytest.mark.parametrize("span", SPANS, ids=lambda span: span[0][:10])
at_every_cut = pytest.mark.parametrize("timeframe", CUT, ids=lambda timeframe: timeframe.name)


@cache
def traded(span: tuple[str, str]) -> Bars:
    """Minutes of all hours that stocks trade in, some without a trade, and extended hours far from the regular price."""
    book = oracle()
    time = minutes(*span)
    row = np.searchsorted(book.premarket, time, side="right") - 1
    time = time[time < book.end[row]]
    time = time[np.random.default_rng(4).random(len(time)) < 0.8]
    bars = walk(time, 22, STOCK, price=187.3)
    row = np.searchsorted(book.open, time, side="right") - 1
    away = np.where(time < book.close[row], 1.0, np.where(time % 7, 1.2, 0.7))
    return make(STOCK, Timeframe.M1, time, *(column * away for column in bars.columns()[1:5]), bars.volume * away)


def larger(span: tuple[str, str], timeframe: Timeframe) -> tuple[Bars, Bars]:
    """Bars and their regular part."""
    bars = resample(traded(span), timeframe, at(span[1]))
    return bars, regular_part_from_minutes(bars, traded(span))


def rows(bars: Bars) -> list[references.Row]:
    return list(zip(*(column.tolist() for column in bars.columns()), strict=True))


def hours(bars: Bars) -> list[tuple[int, int]]:
    """The exchange's sessions around the bars."""
    pairs = zip(oracle().open.tolist(), oracle().close.tolist(), strict=True)
    return [pair for pair in pairs if pair[0] > bars.time[0] - 86400 and pair[0] < bars.time[-1] + 86400]


def lines(result: Channels) -> dict[str, Values]:
    return {line.label: line.values for line in result.lines}


def agree(found: Values, expected: list[float]) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-12, atol=0.0, equal_nan=True))


@on_every_span
@at_every_cut
class TestFromMinutes:
    def test_vwap_and_bands_are_of_the_regular_parts_since_the_session_began(
        self, span: tuple[str, str], timeframe: Timeframe
    ) -> None:
        bars, regular = larger(span, timeframe)
        mean, deviation = references.session_vwap(
            bars.time.tolist(), rows(traded(span)), hours(bars), timeframe.seconds
        )

        bands = lines(get("vwap_bands").run(bars, None, regular))

        assert agree(lines(get("vwap").run(bars, None, regular))["VWAP"], mean)
        assert agree(bands["middle"], mean)
        width = [2.0 * each for each in deviation]
        assert np.allclose(bands["upper"] - bands["middle"], width, rtol=1e-9, atol=1e-9, equal_nan=True)
        assert np.allclose(bands["middle"] - bands["lower"], width, rtol=1e-9, atol=1e-9, equal_nan=True)
        sessions = {references.session_at(t, t + timeframe.seconds, hours(bars)) for t in bars.time.tolist()}
        assert len(sessions - {None}) >= 5

    def test_every_bar_with_time_in_a_session_has_a_vwap(self, span: tuple[str, str], timeframe: Timeframe) -> None:
        bars, regular = larger(span, timeframe)
        inside = [references.session_at(t, t + timeframe.seconds, hours(bars)) is not None for t in bars.time.tolist()]

        assert (~np.isnan(lines(get("vwap").run(bars, None, regular))["VWAP"])).tolist() == inside

    def test_pivots_are_of_the_last_session_that_had_closed(self, span: tuple[str, str], timeframe: Timeframe) -> None:
        bars, regular = larger(span, timeframe)
        known = references.last_closed_session(bars.time.tolist(), rows(traded(span)), hours(bars))

        found = lines(get("pivot").run(bars, None, regular, period="session"))

        assert agree(found["P"], [nan if each is None else sum(each) / 3 for each in known])
        assert agree(found["R2"], [nan if each is None else sum(each) / 3 + each[0] - each[1] for each in known])
        assert agree(found["S2"], [nan if each is None else sum(each) / 3 - each[0] + each[1] for each in known])

    def test_a_part_stands_at_each_bar_with_time_in_a_session(
        self, span: tuple[str, str], timeframe: Timeframe
    ) -> None:
        bars, regular = larger(span, timeframe)
        parts = references.regular_parts(rows(traded(span)), hours(bars), timeframe.seconds)
        nothing = (nan, nan, nan, 0.0)

        assert np.array_equal(regular.time, bars.time)
        assert np.array_equal(session_days(bars) >= 0, ~np.isnan(regular.close))
        columns = (regular.high, regular.low, regular.close, regular.volume)
        for number, column in enumerate(columns):
            assert agree(column, [parts.get(start, nothing)[number] for start in bars.time.tolist()])


@on_every_span
@pytest.mark.parametrize("timeframe", [*WHOLE, *CUT], ids=lambda timeframe: timeframe.name)
def test_pivots_are_those_of_the_daily_bars_at_every_timeframe(span: tuple[str, str], timeframe: Timeframe) -> None:
    bars, regular = larger(span, timeframe)
    daily = resample(traded(span), Timeframe.D1, at(span[1]))
    middles = dict(zip(daily.time.tolist(), ((daily.high + daily.low + daily.close) / 3).tolist(), strict=True))
    closes = dict(hours(bars))
    expected = [max((day for day in middles if closes[day] <= start), default=None) for start in bars.time.tolist()]

    found = lines(get("pivot").run(bars, None, regular, period="session"))["P"]

    assert agree(found, [nan if day is None else middles[day] for day in expected])
    assert len(set(expected)) >= 5
    if timeframe in WHOLE:
        assert np.array_equal(found, lines(get("pivot").run(bars, period="session"))["P"], equal_nan=True)


class TestDailyAndWeeklyBars:
    def test_pivots_are_the_prior_sessions_or_the_prior_weeks(self) -> None:
        for timeframe in (Timeframe.D1, Timeframe.W1):
            bars = resample(traded(SPANS[3]), timeframe, at("2025-01-11T00:00Z"))
            expected = [nan, *((bars.high + bars.low + bars.close) / 3)[:-1].tolist()]

            assert len(bars) == (6 if timeframe is Timeframe.D1 else 3)
            assert agree(lines(get("pivot").run(bars, period="session"))["P"], expected)

    def test_vwap_is_the_bars_own_price(self) -> None:
        bars = resample(traded(SPANS[3]), Timeframe.D1, at(SPANS[3][1]))

        found = lines(get("vwap").run(bars))["VWAP"]

        assert agree(found, ((bars.high + bars.low + bars.close) / 3).tolist())


class TestLevelsByHand:
    """One session at 100 with a spike to 130, after-hours at 500, the next premarket at 10; 4-hour bars in winter."""

    BARS = (
        ("2025-01-07T12:00Z", "holds the opening"),
        ("2025-01-07T16:00Z", "all regular"),
        ("2025-01-07T20:00Z", "holds the closing"),
        ("2025-01-08T00:00Z", "after-hours"),
        ("2025-01-08T08:00Z", "premarket"),
        ("2025-01-08T12:00Z", "holds the next opening"),
    )

    def prices(self) -> tuple[Bars, Bars]:
        points = [
            ("2025-01-07T13:00Z", 10.0, 50.0),
            ("2025-01-07T14:30Z", 100.0, 1.0),
            ("2025-01-07T17:00Z", 130.0, 1.0),
            ("2025-01-07T20:59Z", 100.0, 2.0),
            ("2025-01-07T21:00Z", 500.0, 50.0),
            ("2025-01-08T00:30Z", 500.0, 50.0),
            ("2025-01-08T09:00Z", 10.0, 50.0),
            ("2025-01-08T14:29Z", 10.0, 50.0),
            ("2025-01-08T14:30Z", 110.0, 1.0),
        ]
        time, price, volume = zip(*points, strict=True)
        each = make(STOCK, Timeframe.M1, [at(t) for t in time], price, price, price, price, volume)
        bars = resample(each, Timeframe.H4, at("2025-01-09T00:00Z"))
        assert bars.time.tolist() == [at(start) for start, _ in self.BARS]
        return bars, regular_part_from_minutes(bars, each)

    def test_vwap(self) -> None:
        bars, regular = self.prices()

        found = lines(get("vwap").run(bars, None, regular))["VWAP"]

        assert agree(found, [100.0, 115.0, 107.5, nan, nan, 110.0])

    def test_pivots_change_with_the_first_bar_after_the_closing(self) -> None:
        bars, regular = self.prices()

        found = lines(get("pivot").run(bars, None, regular, period="session"))["P"]

        assert agree(found, [nan, nan, nan, 110.0, 110.0, 110.0])


def of_trades(name: str, *points: tuple[str, float], **chosen: str) -> dict[str, Values]:
    """At 4-hour bars made of single trades."""
    time, price = zip(*points, strict=True)
    trades = make(STOCK, Timeframe.M1, [at(t) for t in time], price, price, price, price, np.ones(len(points)))
    bars = resample(trades, Timeframe.H4, at("2025-01-11T00:00Z"))
    regular = regular_part_from_minutes(bars, trades)
    return lines(get(name).run(bars, None, regular, **chosen))


class TestHalts:
    def test_a_session_without_a_trade_keeps_the_levels_of_the_one_before(self) -> None:
        """On the 8th only the premarket trades, in the bar that holds the opening."""
        trades = (("2025-01-07T17:00Z", 100.0), ("2025-01-08T13:00Z", 7.0), ("2025-01-10T17:00Z", 50.0))

        assert agree(of_trades("pivot", *trades, period="session")["P"], [nan, 100.0, 100.0])
        assert agree(of_trades("vwap", *trades)["VWAP"], [100.0, nan, 50.0])
        assert agree(of_trades("vwap_bands", *trades)["lower"], [100.0, nan, 50.0])

    def test_a_bar_without_a_regular_trade_leaves_the_average_where_it_is(self) -> None:
        trades = (("2025-01-07T15:00Z", 100.0), ("2025-01-07T19:00Z", 130.0), ("2025-01-07T22:00Z", 900.0))

        assert agree(of_trades("vwap", *trades)["VWAP"], [100.0, 115.0, 115.0])
        assert agree(of_trades("vwap_bands", *trades)["upper"], [100.0, 145.0, 145.0])


class TestRegularPart:
    @on_every_span
    @pytest.mark.parametrize("timeframe", WHOLE, ids=lambda timeframe: timeframe.name)
    def test_of_bars_up_to_30_minutes_the_bars_themselves_tell(
        self, span: tuple[str, str], timeframe: Timeframe
    ) -> None:
        bars, regular = larger(span, timeframe)

        found = regular_part(bars)

        assert not partly_regular(bars).any()
        opens = np.append(table_for(int(bars.time[0]), int(bars.time[-1])).open, -1)
        assert np.array_equal(session_days(bars), opens[trading_day(STOCK, bars.time)])
        for mine, theirs in zip(found.columns(), regular.columns(), strict=True):
            assert np.array_equal(mine, theirs, equal_nan=True)

    @on_every_span
    @at_every_cut
    def test_larger_bars_alone_are_refused(self, span: tuple[str, str], timeframe: Timeframe) -> None:
        bars, _ = larger(span, timeframe)

        for name in NEEDY:
            with pytest.raises(DataError, match=r"AAPL: H.* more than regular hours"):
                get(name).run(bars)

    @at_every_cut
    def test_which_bars_hold_more(self, timeframe: Timeframe) -> None:
        bars, _ = larger(SPANS[0], timeframe)
        book = hours(bars)
        expected = [
            any(start < edge < start + timeframe.seconds for pair in book for edge in pair)
            for start in bars.time.tolist()
        ]

        assert partly_regular(bars).tolist() == expected
        assert any(expected)

    def test_large_bars_that_lie_inside_will_do(self) -> None:
        bars, _ = larger(SPANS[0], Timeframe.H1)
        inside = bars.take((session_days(bars) >= 0) & ~partly_regular(bars))

        assert len(inside) > 30
        assert regular_part(inside).same_as(inside)

    @on_every_span
    @pytest.mark.parametrize("timeframe", [*WHOLE, *CUT], ids=lambda timeframe: timeframe.name)
    def test_a_bars_day_depends_on_no_other_bar(self, span: tuple[str, str], timeframe: Timeframe) -> None:
        bars, _ = larger(span, timeframe)
        some = range(0, len(bars), max(1, len(bars) // 200))

        alone = [int(session_days(bars.take(slice(at_bar, at_bar + 1)))[0]) for at_bar in some]

        assert alone == session_days(bars)[list(some)].tolist()
        assert len(set(alone)) > 5

    @pytest.mark.parametrize("timeframe", list(Timeframe), ids=lambda timeframe: timeframe.name)
    def test_what_trades_around_the_clock_is_all_regular(self, timeframe: Timeframe) -> None:
        bars = walk(at("2025-03-03T00:00Z") + np.arange(50) * timeframe.seconds, 3, CRYPTO, timeframe)

        assert regular_part(bars) is bars
        assert np.array_equal(session_days(bars), bars.time // 86400)

    def test_is_for_vwap_bands_and_pivots(self) -> None:
        assert NEEDY == ["pivot", "vwap", "vwap_bands"]

    @at_every_cut
    def test_before_the_minutes_there_is_nothing(self, timeframe: Timeframe) -> None:
        bars, regular = larger(SPANS[0], timeframe)
        later = at("2025-11-28T00:00Z")

        found = regular_part_from_minutes(bars, traded(SPANS[0]).between(later, at(SPANS[0][1])))

        first = int(np.searchsorted(bars.time, later))
        assert np.isnan(found.close[:first]).all()
        assert not found.volume[:first].any()
        assert np.array_equal(found.close[first:], regular.close[first:], equal_nan=True)
        assert np.isnan(regular_part_from_minutes(bars, empty(STOCK)).close).all()

    @at_every_cut
    def test_minutes_of_other_bars_are_left_out(self, timeframe: Timeframe) -> None:
        """Such as those of a bar that has not closed yet."""
        bars, regular = larger(SPANS[0], timeframe)
        some = np.arange(len(bars)) % 3 != 2

        found = regular_part_from_minutes(bars.take(some), traded(SPANS[0]))

        for mine, all_of_it in zip(found.columns(), regular.columns(), strict=True):
            assert np.array_equal(mine, all_of_it[some], equal_nan=True)
