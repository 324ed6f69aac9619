"""Profiles against plain loops: a bar's volume over its prices, row by row; nothing lost, nothing invented."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise
from math import fsum

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.catalogue.hvn_lvn import peaks
from openbell.indicators.channels import Channels
from openbell.indicators.profiles import (
    MAX_SESSIONS,
    SESSIONS,
    PriceRows,
    by_session,
    control_row,
    one_session,
    value_area,
    value_areas,
)
from openbell.indicators.registry import get
from openbell.market.bars import Bars, make, resample
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from tests.market.new_york import oracle
from tests.market.walks import CRYPTO, STOCK, at, closes, minutes, trading_day, walk

PROFILES = ("volume_profile", "session_vp", "hvn_lvn", "naked_poc", "tpo")


def area_of(volumes: list[int]) -> tuple[int, int]:
    """The value area around the fullest row."""
    return value_area([0.0, *accumulate(map(float, volumes))], volumes.index(max(volumes)))


def reference(bars: Bars, bins: int, visits: bool = False) -> list[float]:
    """Volume at price from its definition: each bar's volume, spread evenly from its low to its high."""
    bottom, top = min(bars.low.tolist()), max(bars.high.tolist())
    height = (top - bottom) / bins
    parts: list[list[float]] = [[] for _ in range(bins)]
    for low, high, volume in zip(bars.low.tolist(), bars.high.tolist(), bars.volume.tolist(), strict=True):
        if visits or high == low:
            first, last = (row_at(price, bottom, top, bins) for price in (low, high))
            for row in range(first, last + 1):
                parts[row].append(1.0 if visits else volume)
            continue
        for row in range(bins):
            floor, ceiling = bottom + height * row, bottom + height * (row + 1)
            parts[row].append(volume * max(min(high, ceiling) - max(low, floor), 0.0) / (high - low))
    return [fsum(part) for part in parts]


def row_at(price: float, bottom: float, top: float, bins: int) -> int:
    """The row of a price, by exact fractions of its decimals: a price at an edge is in the row above it."""
    exact, floor, ceiling = (Fraction(f"{value:.13g}") for value in (price, bottom, top))
    return 0 if floor == ceiling else min(bins - 1, int((exact - floor) * bins / (ceiling - floor)))


def near(expected: object) -> object:
    """To 1e-9, however small."""
    return pytest.approx(expected, rel=1e-9, abs=1e-18)


def run(name: str, bars: Bars, **chosen: object) -> Channels:
    return get(name).run(bars, **chosen)


def slices(bars: Bars, days: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """First and last bar of each run of equal numbers, −1 left out."""
    edges = [0, *(i for i in range(1, len(days)) if days[i] != days[i - 1]), len(days)]
    return [(a, b - 1) for a, b in pairwise(edges) if days[a] >= 0]


@pytest.fixture(params=range(3))
def bars(request: pytest.FixtureRequest) -> Bars:
    """Nearly four days."""
    price = [0.0000123, 245.5, 98234.5][request.param]
    times = minutes("2025-03-03T20:00Z", "2025-03-07T02:00Z")[::7]
    return walk(times, request.param, price=price, step=0.004)


def stock_bars() -> Bars:
    """Three sessions with their extended hours, a holiday between and a half day at the end."""
    return walk(minutes("2025-11-25T12:00Z", "2025-11-29T00:00Z")[::3], 5, STOCK, price=187.3)


class TestVolumeProfile:
    @pytest.mark.parametrize("bins", [1, 2, 24, 101])
    def test_is_the_volume_at_each_price(self, bars: Bars, bins: int) -> None:
        expected = reference(bars, bins)
        height = (bars.high.max() - bars.low.min()) / bins

        found = run("volume_profile", bars, bins=bins).hbars

        assert [bar.width for bar in found] == near([0.3 * v / max(expected) for v in expected])
        assert [bar.height for bar in found] == near([height] * bins)
        assert [bar.y for bar in found] == near([bars.low.min() + height * (n + 0.5) for n in range(bins)])
        assert {(bar.offset, bar.left) for bar in found} == {(0.0, False)}

    def test_the_widest_row_is_the_point_of_control(self, bars: Bars) -> None:
        expected = reference(bars, 24)

        found = run("volume_profile", bars).hbars

        widest = max(found, key=lambda bar: bar.width)
        assert widest.width == pytest.approx(0.3)
        assert found.index(widest) == expected.index(max(expected))

    def test_rising_and_falling_volume_stand_side_by_side_and_add_up(self, bars: Bars) -> None:
        rising = bars.close >= bars.open
        quiet = [
            make(CRYPTO, Timeframe.M1, *bars.columns()[:5], np.where(way, bars.volume, 0.0))
            for way in (rising, ~rising)
        ]
        up, down = (reference(each, 24) for each in quiet)
        scale = 0.3 / max(reference(bars, 24))

        found = run("volume_profile", bars, split_up_down=True).hbars

        assert len(found) == 48
        assert [bar.width for bar in found[::2]] == near([scale * v for v in up])
        assert [bar.width for bar in found[1::2]] == near([scale * v for v in down])
        assert [bar.offset for bar in found[1::2]] == [bar.width for bar in found[::2]]
        assert {bar.offset for bar in found[::2]} == {0.0}
        whole = run("volume_profile", bars).hbars
        together = [a.width + b.width for a, b in zip(found[::2], found[1::2], strict=True)]
        assert together == near([bar.width for bar in whole])

    def test_range_bars_looks_at_the_newest_only(self, bars: Bars) -> None:
        assert run("volume_profile", bars, range_bars=100) == run("volume_profile", bars.tail(100))
        assert run("volume_profile", bars, range_bars=10_000) == run("volume_profile", bars)

    def test_either_side(self, bars: Bars) -> None:
        assert all(bar.left for bar in run("volume_profile", bars, side="left").hbars)
        assert all(bar.left for bar in run("tpo", bars, side="left").hbars)
        assert not any(bar.left for bar in run("tpo", bars).hbars)


class TestRows:
    @given(
        st.integers(0, 2**32),
        st.integers(1, 60),
        st.integers(1, 120),
        st.sampled_from([1e-8, 1.0, 1e9]),
        st.sampled_from([1e-16, 1e-12, 1e-3, 0.3]),
    )
    @settings(deadline=None, max_examples=150)
    def test_all_volume_is_somewhere(self, seed: int, count: int, bins: int, price: float, step: float) -> None:
        """Even where the whole range is a few units in the last place."""
        bars = walk(at("2025-03-04T00:00Z") + np.arange(count) * 60, seed, price=price, step=step)

        traded = PriceRows(one_session(bars), bins).spread(bars.volume)

        assert traded.shape == (1, bins)
        assert (traded >= 0).all()
        assert traded.sum() == pytest.approx(fsum(bars.volume), rel=1e-12)

    @given(st.integers(0, 2**32), st.integers(1, 50))
    @settings(deadline=None, max_examples=60)
    def test_prices_on_the_edges_of_rows(self, seed: int, bins: int) -> None:
        """Whole prices and rows of height one: a bar from 3 to 7 gives a quarter to each of four rows."""
        random = np.random.default_rng(seed)
        low = random.integers(0, bins, 40)
        high = np.minimum(low + random.integers(0, 6, 40), bins)
        low[0], high[0] = 0, bins
        time = at("2025-03-04T00:00Z") + np.arange(40) * 60
        bars = make(CRYPTO, Timeframe.M1, time, low + 1, high + 1, low + 1, high + 1, random.integers(1, 9, 40))

        traded = PriceRows(one_session(bars), bins).spread(bars.volume)[0]

        assert traded == pytest.approx(reference(bars, bins), rel=1e-12)

    def test_a_price_that_stands_still_is_one_row_without_height(self) -> None:
        bars = closes([10.1] * 30)
        for name in ("volume_profile", "tpo", "session_vp"):
            (only,) = run(name, bars).hbars
            assert (only.y, only.height) == (10.1, 0.0)
        assert run("session_vp", bars).hlines == (10.1, 10.1, 10.1)
        assert run("hvn_lvn", bars).hlines == (10.1,)

    def test_without_volume_there_is_nothing_to_show_but_time(self, bars: Bars) -> None:
        silent = make(CRYPTO, Timeframe.M1, *bars.columns()[:5], np.zeros(len(bars)))
        for name in PROFILES:
            result = run(name, silent)
            assert bool(result.hbars) is (name == "tpo")
            assert bool(result.hlines) is (name == "tpo")


class TestSessions:
    def test_days_of_stocks_are_regular_hours(self) -> None:
        bars = stock_bars()
        book = oracle()
        row = np.searchsorted(book.open, bars.time, side="right") - 1
        days = np.where(bars.time < book.close[row], row, -1)

        found = by_session(bars, "daily")

        assert list(zip(found.first.tolist(), found.last.tolist(), strict=True)) == slices(bars, days)
        assert len(found) == 3
        assert found.bars.same_as(bars.take(days >= 0))

    def test_weeks_begin_on_monday_and_hours_on_the_hour(self) -> None:
        crypto = walk(minutes("2025-03-01T00:00Z", "2025-03-17T00:00Z")[::30])
        stock = walk(minutes("2025-03-03T00:00Z", "2025-03-15T00:00Z")[::30], 3, STOCK)

        weeks = by_session(crypto, "weekly")
        assert crypto.time[weeks.first].tolist() == [at("2025-03-01"), at("2025-03-03"), at("2025-03-10")]
        stock_weeks = by_session(stock, "weekly")
        # Daylight saving begins between the two.
        assert stock.time[stock_weeks.first].tolist() == [at("2025-03-03T14:30Z"), at("2025-03-10T13:30Z")]
        assert stock.time[stock_weeks.last].tolist() == [at("2025-03-07T20:30Z"), at("2025-03-14T19:30Z")]
        hours = by_session(crypto, "hourly")
        assert (crypto.time[hours.first] % 3600 == 0).all()
        assert len(hours) == 16 * 24

    @pytest.mark.parametrize("timeframe", [Timeframe.M5, Timeframe.H1, Timeframe.H4, Timeframe.H12, Timeframe.D1])
    def test_a_larger_bar_belongs_to_the_session_it_shares_time_with(self, timeframe: Timeframe) -> None:
        """4-hour bars are anchored to midnight UTC: the one with the opening begins in the premarket."""
        whole = walk(minutes("2025-11-25T09:00Z", "2025-11-29T01:00Z"), 5, STOCK)
        traded = table_minutes(whole)
        bars = resample(traded, timeframe, at("2025-11-30"))
        regular = resample(traded.take(trading_day(STOCK, traded.time) >= 0), timeframe, at("2025-11-30"))

        found = by_session(bars, "daily")

        assert found.bars.time.tolist() == regular.time.tolist()
        assert len(found) == 3

    @pytest.mark.parametrize("instrument", [CRYPTO, STOCK])
    @pytest.mark.parametrize("kind", SESSIONS)
    def test_the_newest_are_what_the_newest_bars_give(self, kind: str, instrument: Instrument) -> None:
        bars = walk(minutes("2025-03-03T00:00Z", "2025-03-15T00:00Z")[::30], 3, instrument)
        whole = by_session(bars, kind)
        count = len(whole) - 1

        newest = whole.latest(count)

        assert len(newest) == count
        assert newest.bars.same_as(bars.take(np.isin(bars.time, newest.bars.time)))
        assert newest.bars.time[newest.begins].tolist() == bars.time[whole.first[1:]].tolist()
        assert newest.last.tolist() == whole.last[1:].tolist()

    def test_before_the_calendars_years_there_are_no_sessions(self) -> None:
        bars = walk(minutes("1965-03-08T00:00Z", "1965-03-09T00:00Z")[::30], 3, STOCK)

        assert len(by_session(bars, "daily")) == len(by_session(bars, "weekly")) == 0
        assert run("session_vp", bars) == run("naked_poc", bars) == Channels()


def table_minutes(bars: Bars) -> Bars:
    """Those of any session's hours, extended ones included: from 04:00 to 20:00 in New York, in winter."""
    hour = (bars.time // 3600 - 5) % 24
    holiday = (bars.time >= at("2025-11-27T05:00Z")) & (bars.time < at("2025-11-28T05:00Z"))
    return bars.take((hour >= 4) & (hour < 20) & ~holiday)


class TestSessionProfile:
    @pytest.mark.parametrize("kind", ["daily", "hourly"])
    def test_every_session_has_its_own_profile_at_its_own_place(self, bars: Bars, kind: str) -> None:
        step = {"daily": 86400, "hourly": 3600}[kind]
        runs = slices(bars, bars.time // step)[-MAX_SESSIONS:]

        found = run("session_vp", bars, session=kind, bins=12).hbars

        assert len(found) == 12 * len(runs)
        for number, (first, last) in enumerate(runs):
            part = bars.take(slice(first, last + 1))
            expected = reference(part, 12)
            rows = found[12 * number : 12 * number + 12]
            width = (last - first + 1) / len(bars)
            scale = 0.7 * width / max(expected)
            assert [bar.width for bar in rows] == near([scale * v for v in expected])
            assert {bar.offset for bar in rows} == {first / len(bars)}
            assert all(bar.left and bar.offset + bar.width <= (last + 1) / len(bars) for bar in rows)
            assert rows[0].y - rows[0].height / 2 == near(part.low.min())
            assert rows[-1].y + rows[-1].height / 2 == near(part.high.max())

    @pytest.mark.parametrize("bins", [5, 24, 60])
    def test_the_levels_are_the_newest_sessions(self, bars: Bars, bins: int) -> None:
        first, last = slices(bars, bars.time // 86400)[-1]
        part = bars.take(slice(first, last + 1))
        expected = reference(part, bins)
        bottom, height = part.low.min(), (part.high.max() - part.low.min()) / bins

        control, upper, lower = run("session_vp", bars, bins=bins).hlines

        assert control == near(bottom + height * (expected.index(max(expected)) + 0.5))
        inside = [v for n, v in enumerate(expected) if lower <= bottom + height * (n + 0.5) <= upper]
        assert fsum(inside) >= 0.7 * fsum(expected)
        assert lower < control < upper
        assert [level.label for level in (control, upper, lower)] == ["POC", "VAH", "VAL"]
        assert run("session_vp", bars, bins=bins, show_value_area=False).hlines == (control,)

    @given(st.lists(st.integers(0, 1000), min_size=1, max_size=60))
    @settings(deadline=None, max_examples=200)
    def test_the_value_area_holds_seven_tenths_around_the_fullest_row(self, volumes: list[int]) -> None:
        traded = np.array(volumes, dtype=np.float64)

        first, last = area_of(volumes)

        assert first <= int(np.argmax(traded)) <= last
        inside = traded[first : last + 1].sum()
        assert inside >= 0.7 * traded.sum()
        # The pair of rows that was added last was needed.
        grown_up, grown_down = traded[first : max(first, last - 1)].sum(), traded[first + 2 : last + 1].sum()
        assert first == last or min(grown_up, grown_down) < 0.7 * traded.sum()

    def test_a_value_area_by_hand(self) -> None:
        """40 at the control; two above hold 30 + 5, two below 20 + 10: up first, and 75 of 107 are enough."""
        assert area_of([1, 10, 20, 40, 30, 5, 1]) == (3, 5)

    @given(st.lists(st.lists(st.integers(0, 9), min_size=7, max_size=7), min_size=1, max_size=20))
    @settings(deadline=None, max_examples=100)
    def test_many_value_areas_at_once_are_those_of_each(self, profiles: list[list[int]]) -> None:
        below = np.cumsum(np.array([[0, *volumes] for volumes in profiles], dtype=np.float64).T, axis=0)

        control = control_row(np.diff(below, axis=0), below[-1])

        assert control.tolist() == [volumes.index(max(volumes)) for volumes in profiles]
        first, last = value_areas(below, control)
        assert list(zip(first.tolist(), last.tolist(), strict=True)) == [area_of(volumes) for volumes in profiles]

    def test_rounding_does_not_decide_between_equal_rows(self) -> None:
        """0.1 + 0.2 is more than 0.3: of rows that are equal but for that, the lowest is the control."""
        volumes = np.array([0.0, 0.3, 0.1, 0.1 + 0.2, 0.1])

        assert volumes.argmax() == 3
        assert control_row(volumes, volumes.sum()) == 1

    def test_only_so_many_sessions_have_rows_and_each_has_levels(self) -> None:
        bars = walk(at("2025-03-04T00:00Z") + np.arange(MAX_SESSIONS + 30) * 3600, 2, timeframe=Timeframe.M30)

        found = run("session_vp", bars, session="hourly", bins=2)

        assert len(found.hbars) == 2 * MAX_SESSIONS
        assert min(bar.offset for bar in found.hbars) == 30 / len(bars)
        assert [each.x1 for each in found.divlines] == [bar for bar in range(len(bars)) for _ in range(3)]

    def test_stock_bars_outside_regular_hours_take_no_part(self) -> None:
        bars = stock_bars()
        regular = trading_day(STOCK, bars.time) >= 0
        loud = make(STOCK, Timeframe.M1, *bars.columns()[:5], np.where(regular, bars.volume, bars.volume * 1e6))

        assert run("session_vp", loud) == run("session_vp", bars)


class TestNodes:
    def test_peaks_and_valleys_by_hand(self) -> None:
        volumes = np.array([2.0, 9.0, 3.0, 1.0, 4.0, 6.0, 5.0, 5.5, 0.0, 8.0])

        assert peaks(volumes, 1, 0.0, 9) == [1, 5, 7, 9]
        assert peaks(volumes, 1, 1.0, 9) == [1, 5, 9]  # 5.5 stands only 0.5 above the way to 6
        assert peaks(volumes, 1, 0.0, 2) == [1, 9]
        assert peaks(volumes, 2, 0.0, 9) == [1, 5, 9]
        assert peaks(-volumes, 1, 0.0, 9) == [3, 6, 8]  # neither end is a valley: nothing is traded beyond
        assert peaks(-volumes, 1, 5.0, 9) == [3, 8]

    def test_a_plateau_is_one_node(self) -> None:
        assert peaks(np.array([1.0, 4.0, 4.0, 4.0, 2.0, 3.0, 3.0, 5.0]), 2, 0.0, 9) == [1, 7]

    @given(st.lists(st.integers(0, 12), min_size=3, max_size=40), st.integers(1, 5), st.integers(0, 12))
    @settings(deadline=None, max_examples=200)
    def test_prominence_is_the_least_descent_on_the_way_to_higher_ground(
        self, volumes: list[int], neighborhood: int, least: int
    ) -> None:
        """The definition of mountaineers, looked up from every higher row at once."""
        padded = [0, *volumes, 0]
        expected = []
        for at_row, height in enumerate(volumes):
            near = range(max(0, at_row - neighborhood), min(len(volumes), at_row + neighborhood + 1))
            if any(volumes[n] > height or (volumes[n] == height and n < at_row) for n in near):
                continue
            here = at_row + 1
            keys = []
            for side in (range(here), range(here + 1, len(padded))):
                ways = [n for n in side if padded[n] > height] or [side[0] if side[-1] < here else side[-1]]
                keys.append(max(min(padded[min(n, here) : max(n, here) + 1]) for n in ways))
            prominence = height - max(keys)
            if prominence > 0 and prominence >= least:
                expected.append(at_row)

        assert peaks(np.array(volumes, dtype=np.float64), neighborhood, float(least), 99) == expected

    def test_levels_and_thin_bars_stand_at_the_nodes(self, bars: Bars) -> None:
        volumes = np.array(reference(bars, 48))
        bottom, height = bars.low.min(), (bars.high.max() - bars.low.min()) / 48
        rows = peaks(volumes, 2, 0.1 * volumes.max(), 5) + peaks(-volumes, 2, 0.1 * volumes.max(), 5)

        found = run("hvn_lvn", bars)

        assert len(rows) > 3
        assert found.hlines == near([bottom + height * (row + 0.5) for row in rows])
        assert [bar.y for bar in found.hbars] == list(found.hlines)
        assert [bar.width for bar in found.hbars] == near(0.3 * volumes[rows] / volumes.max())
        assert all(0 < bar.height < height / 2 and not bar.left for bar in found.hbars)

    def test_each_kind_can_be_left_out(self, bars: Bars) -> None:
        both = run("hvn_lvn", bars).hlines
        high, low = run("hvn_lvn", bars, show_lvn=False).hlines, run("hvn_lvn", bars, show_hvn=False).hlines

        assert (*high, *low) == both
        assert {level.label for level in high} == {"HVN"}
        assert {level.label for level in low} == {"LVN"}
        assert run("hvn_lvn", bars, show_lvn=False, show_hvn=False) == Channels()
        assert len(run("hvn_lvn", bars, top_n=1).hlines) <= 2


class TestNakedPoc:
    @pytest.mark.parametrize("kind", ["hourly", "daily"])
    def test_are_exactly_the_untouched_ones(self, bars: Bars, kind: str) -> None:
        step = {"hourly": 3600, "daily": 86400}[kind]
        runs = slices(bars, bars.time // step)[:-1]
        expected = []
        for first, last in runs[-20:]:
            part = bars.take(slice(first, last + 1))
            volumes = reference(part, 24)
            height = (part.high.max() - part.low.min()) / 24
            most = max(volumes) - 1e-9 * sum(volumes)  # the lowest of equal rows
            price = part.low.min() + height * (next(i for i, v in enumerate(volumes) if v >= most) + 0.5)
            if not any(bars.low[i] <= price <= bars.high[i] for i in range(last + 1, len(bars))):
                expected.append((price, first / len(bars)))

        found = run("naked_poc", bars, session=kind)

        assert found.hlines == near([price for price, _ in expected])
        assert [bar.y for bar in found.hbars] == list(found.hlines)
        assert [bar.offset for bar in found.hbars] == [offset for _, offset in expected]
        assert [bar.width for bar in found.hbars] == [1 - offset for _, offset in expected]
        assert all(bar.left for bar in found.hbars)

    def test_some_are_left_after_a_jump_and_gone_after_the_return(self) -> None:
        """Each day trades around its own price; the fourth comes back to the second's."""
        prices = [100.0, 200.0, 300.0, 200.0, 400.0]
        days = [walk(minutes("2025-03-03", "2025-03-04")[::10] + n * 86400, n, price=p) for n, p in enumerate(prices)]
        columns = [np.concatenate(column) for column in zip(*(day.columns() for day in days), strict=True)]
        bars = make(CRYPTO, Timeframe.M1, *columns)

        found = run("naked_poc", bars).hlines

        assert len(found) == 3  # the days around 100 and 300, and the fourth, which nobody came back to
        assert found == pytest.approx([100, 300, 200], rel=0.2)
        assert run("naked_poc", bars, max_sessions=2).hlines == found[1:]

    def test_the_session_under_way_has_none_yet_but_one_that_is_over_has(self) -> None:
        bars = stock_bars()
        day = trading_day(STOCK, bars.time)
        end = int(np.flatnonzero(day == day.max())[-1])
        jumped = np.where(np.arange(len(bars)) > end, 3.0, 1.0)  # after hours, far from where the session traded
        later = make(STOCK, Timeframe.M1, bars.time, *(column * jumped for column in bars.columns()[1:5]), bars.volume)

        during = run("naked_poc", later.take(slice(0, end + 1))).hlines
        after = run("naked_poc", later).hlines

        assert len(after) == len(during) + 1
        assert after[:-1] == during


def levels_of(amounts: list[float], bars: Bars, bins: int, share: float = 0.7) -> list[float]:
    """The point of control and the ends of the value area: two rows at a time, the fuller side, up to a share of all."""
    bottom, height, slack = bars.low.min(), (bars.high.max() - bars.low.min()) / bins, 1e-9 * sum(amounts)
    control = next(i for i, amount in enumerate(amounts) if amount >= max(amounts) - slack)
    first = last = control
    while sum(amounts[first : last + 1]) < share * sum(amounts) - slack:
        above, beneath = sum(amounts[last + 1 : last + 3]), sum(amounts[max(0, first - 2) : first])
        if last < bins - 1 and (first == 0 or above >= beneath - slack):
            last = min(bins - 1, last + 2)
        else:
            first = max(0, first - 2)
    return [bottom + height * (control + 0.5), bottom + height * (last + 1), bottom + height * first]


def test_a_volume_profile_has_its_point_of_control_and_value_area() -> None:
    bars = walk(minutes("2025-03-04T00:00Z", "2025-03-04T08:00Z"), 4)
    expected = near(levels_of(reference(bars, 24), bars, 24))

    assert run("volume_profile", bars).hlines == expected
    assert run("volume_profile", bars, split_up_down=True).hlines == expected
    half = near(levels_of(reference(bars, 24), bars, 24, 0.5))
    assert run("volume_profile", bars, value_area=50.0).hlines == half


@pytest.mark.parametrize(
    ("session", "timeframe", "step"), [("daily", Timeframe.D1, Timeframe.M30), ("hourly", Timeframe.H1, Timeframe.M1)]
)
class TestOneBarIsASession:
    def test_without_finer_bars_there_is_no_level(self, session: str, timeframe: Timeframe, step: Timeframe) -> None:
        fine = walk(at("2025-03-03T00:00Z") + np.arange(480) * step.seconds, 4, timeframe=step)
        bars = resample(fine, timeframe, int(fine.time[-1]) + step.seconds)

        assert run("session_vp", bars, session=session) == Channels()
        assert run("naked_poc", bars, session=session) == Channels()

    def test_levels_come_from_finer_bars(self, session: str, timeframe: Timeframe, step: Timeframe) -> None:
        fine = walk(at("2025-03-03T00:00Z") + np.arange(480) * step.seconds, 4, timeframe=step)
        bars = resample(fine, timeframe, int(fine.time[-1]) + step.seconds)
        expected = []
        for index, start in enumerate(bars.time.tolist()):
            part = fine.between(start, start + timeframe.seconds)
            expected += [(index, index, level) for level in levels_of(reference(part, 24), part, 24)]

        found = get("session_vp").run(bars, None, None, fine, session=session)

        assert [(each.x1, each.x2) for each in found.divlines] == [(x1, x2) for x1, x2, _ in expected]
        assert [each.y1 for each in found.divlines] == near([level for _, _, level in expected])
        assert found.hlines == tuple(each.y1 for each in found.divlines[-3:])
        controls = [each.y1 for each in found.divlines[::3]]
        untouched = [
            price
            for index, price in enumerate(controls[:-1])
            if not any(bars.low[i] <= price <= bars.high[i] for i in range(index + 1, len(bars)))
        ]
        assert get("naked_poc").run(bars, None, None, fine, session=session).hlines == near(untouched)


class TestTimeAtPrice:
    @pytest.mark.parametrize("bins", [1, 7, 32])
    def test_counts_the_half_hours_that_came_by(self, bars: Bars, bins: int) -> None:
        bottom, height = bars.low.min(), (bars.high.max() - bars.low.min()) / bins
        seen: list[set[int]] = [set() for _ in range(bins)]
        for time, low, high in zip(bars.time.tolist(), bars.low.tolist(), bars.high.tolist(), strict=True):
            rows = range(int((low - bottom) / height), min(bins - 1, int((high - bottom) / height)) + 1)
            for row in rows:
                seen[min(row, bins - 1)].add(time // 1800)
        expected = [len(periods) for periods in seen]

        found = run("tpo", bars, bins=bins, session="all").hbars

        assert [bar.width for bar in found] == near([0.3 * v / max(expected) for v in expected])
        assert {bar.offset for bar in found} == {0.0}

    def test_its_levels_are_those_of_the_counts(self, bars: Bars) -> None:
        found = run("tpo", bars, session="all")

        assert found.hlines == near(levels_of([bar.width for bar in found.hbars], bars, 32))

    @pytest.mark.parametrize(("session", "step"), [("daily", 86400), ("weekly", 7 * 86400)])
    @pytest.mark.parametrize("side", ["left", "right"])
    def test_every_session_has_a_profile_with_its_levels(self, bars: Bars, session: str, step: int, side: str) -> None:
        runs = slices(bars, (bars.time - at("1970-01-05T00:00Z")) // step)

        found = run("tpo", bars, session=session, side=side)

        assert len(found.hbars) == 32 * len(runs)
        for number, (first, last) in enumerate(runs):
            alone = run("tpo", bars.take(slice(first, last + 1)), session="all", side=side)
            rows = found.hbars[32 * number : 32 * number + 32]
            share = (last - first + 1) / len(bars) * 0.7 / 0.3
            assert [bar.width for bar in rows] == near([share * bar.width for bar in alone.hbars])
            edge = first / len(bars) if side == "left" else 1 - (last + 1) / len(bars)
            assert [bar.offset for bar in rows] == near([edge] * 32)
            assert {bar.left for bar in rows} == {side == "left"}
            levels = found.divlines[3 * number : 3 * number + 3]
            assert [each.y1 for each in levels] == near(alone.hlines)
            assert {(each.x1, each.x2) for each in levels} == {(first, last)}
        assert found.hlines == near(alone.hlines)

    @pytest.mark.parametrize("timeframe", [Timeframe.H4, Timeframe.D1])
    @pytest.mark.parametrize("session", ["daily", "weekly", "all"])
    def test_periods_of_longer_bars_come_from_finer_ones(self, bars: Bars, timeframe: Timeframe, session: str) -> None:
        end = int(bars.time[-1]) + 60
        halves, longer = (resample(bars, each, end) for each in (Timeframe.M30, timeframe))
        halves = halves.take(halves.time < longer.time[-1] + timeframe.seconds)
        need = get("tpo").finer
        assert need is not None
        finer = need(timeframe)
        assert finer is not None
        assert finer.timeframes[0] is Timeframe.M30
        assert need(Timeframe.M30) is None

        found = get("tpo").run(longer, None, None, halves, session=session)

        expected = run("tpo", halves, session=session)
        assert [bar.y for bar in found.hbars] == near([bar.y for bar in expected.hbars])
        assert found.hlines == near(expected.hlines)
        assert [each.y1 for each in found.divlines] == near([each.y1 for each in expected.divlines])
        # Each profile has the same shape, whatever its width.
        for number in range(0, len(expected.hbars), 32):
            mine, theirs = ([bar.width for bar in each.hbars[number : number + 32]] for each in (found, expected))
            assert [width / max(mine) for width in mine] == near([width / max(theirs) for width in theirs])

    def test_a_bar_that_is_a_session_needs_finer_ones(self, bars: Bars) -> None:
        daily = resample(bars, Timeframe.D1, int(bars.time[-1]) + 60)

        assert run("tpo", daily) == Channels()
        assert run("tpo", daily, session="all").hbars

    def test_periods_outside_regular_hours_do_not_count(self) -> None:
        bars = stock_bars()
        regular = bars.take(trading_day(STOCK, bars.time) >= 0)

        assert run("tpo", bars, session="all") == run("tpo", regular, session="all")
        assert [bar.y for bar in run("tpo", bars).hbars] == [bar.y for bar in run("tpo", regular).hbars]

    def test_volume_plays_no_part(self, bars: Bars) -> None:
        other = make(CRYPTO, Timeframe.M1, *bars.columns()[:5], bars.volume[::-1])

        assert run("tpo", other) == run("tpo", bars)


def test_the_defaults_are_the_contracts() -> None:
    assert get("vpvr").settings() == {
        "bins": 24,
        "side": "right",
        "range_bars": 0,
        "split_up_down": False,
        "opacity": 0.4,
        "value_area": 70.0,
    }
    assert get("svp").settings() == {"bins": 24, "session": "daily", "show_value_area": True}
    assert get("vp_nodes").settings() == {
        "bins": 48,
        "neighborhood": 2,
        "min_prominence": 0.1,
        "top_n": 5,
        "show_hvn": True,
        "show_lvn": True,
    }
    assert get("npoc").settings() == {"bins": 24, "session": "daily", "max_sessions": 20}
    assert get("market_profile").settings() == {"bins": 32, "side": "right", "session": "daily"}
