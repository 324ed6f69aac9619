"""Bars as columns: operations compared with a dictionary of rows, and the faults of impossible bars."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.bars import COLUMNS, Bars, empty, faults, make, merge, sort
from openbell.market.timeframes import Timeframe
from tests.market.walks import CRYPTO, DAY, MINUTE, STOCK, at, walk

START = at("2025-03-04T00:00Z")
Row = tuple[float, ...]

offsets = st.lists(st.integers(0, 60), max_size=25)
runs = st.builds(
    lambda minutes, seed: walk([START + m * MINUTE for m in sorted(set(minutes))], seed), offsets, st.integers(0, 2**32)
)


def rows(bars: Bars) -> dict[int, Row]:
    """Returns the model: for each open time its row of numbers."""
    table = np.column_stack(bars.columns()[1:]).tolist() if len(bars) else []
    return {time: tuple(row) for time, row in zip(bars.time.tolist(), table, strict=True)}


def assert_is(bars: Bars, model: dict[int, Row]) -> None:
    assert bars.time.tolist() == sorted(model)
    assert rows(bars) == model
    assert bars.time.dtype == np.int64
    assert all(column.dtype == np.float64 for column in bars.columns()[1:])


def test_the_text_of_bars_does_not_grow_with_their_number() -> None:
    assert repr(walk([START, START + MINUTE], 1)) == "<2 bars of BTC/USD M1>"


class TestAlgebra:
    @given(st.lists(runs, min_size=1, max_size=5))
    @settings(deadline=None, max_examples=150)
    def test_merge_replaces_bars_by_those_of_later_parts(self, parts: list[Bars]) -> None:
        model: dict[int, Row] = {}
        for part in parts:
            model.update(rows(part))

        assert_is(merge(*parts), model)

    @given(runs, runs, runs)
    @settings(deadline=None, max_examples=60)
    def test_merge_is_associative_and_idempotent(self, a: Bars, b: Bars, c: Bars) -> None:
        assert rows(merge(merge(a, b), c)) == rows(merge(a, merge(b, c))) == rows(merge(a, b, c))
        assert merge(a, a).same_as(a)

    @given(st.lists(st.integers(0, 20), max_size=40), st.integers(0, 2**32))
    @settings(deadline=None, max_examples=100)
    def test_sort_keeps_the_last_of_bars_with_the_same_time(self, minutes: list[int], seed: int) -> None:
        loose = walk([START + m * MINUTE for m in minutes], seed)

        assert_is(sort(loose), rows(loose))

    @given(runs, st.integers(0, 70))
    @settings(deadline=None, max_examples=100)
    def test_tail_returns_the_latest_bars(self, bars: Bars, count: int) -> None:
        model = rows(bars)

        assert_is(bars.tail(count), {time: model[time] for time in sorted(model)[max(0, len(model) - count) :]})

    @given(runs, st.floats(-120, 3900), st.floats(-120, 3900))
    @settings(deadline=None, max_examples=150)
    def test_between_is_half_open(self, bars: Bars, start: float, end: float) -> None:
        low, high = START + start, START + end

        assert_is(bars.between(low, high), {time: row for time, row in rows(bars).items() if low <= time < high})

    @given(runs, st.integers(0, 60), st.integers(0, 60))
    @settings(deadline=None, max_examples=60)
    def test_merging_adjacent_parts_restores_the_bars(self, bars: Bars, first: int, second: int) -> None:
        cuts = sorted((START + first * MINUTE, START + second * MINUTE))
        edges = [0, *cuts, START + DAY]

        parts = [bars.between(low, high) for low, high in pairwise(edges)]

        assert merge(*parts).same_as(bars)

    def test_between_is_exact_at_both_ends(self) -> None:
        bars = walk(START + np.arange(5) * MINUTE)

        assert bars.between(START + 60, START + 180).time.tolist() == [START + 60, START + 120]
        assert len(bars.between(START + 60, START + 60)) == 0
        assert len(bars.between(START + 180, START + 60)) == 0

    def test_merge_does_not_change_its_parts(self) -> None:
        a, b = walk(START + np.arange(5) * MINUTE, 1), walk(START + np.arange(3, 8) * MINUTE, 2)
        before = rows(a), rows(b)

        merge(a, b)

        assert (rows(a), rows(b)) == before

    def test_merge_of_empty_bars_is_empty(self) -> None:
        assert len(merge(empty(STOCK), empty(STOCK))) == 0
        assert merge(empty(STOCK)).instrument is STOCK


class TestColumns:
    def test_make_takes_lists_in_the_order_of_columns(self) -> None:
        bars = make(CRYPTO, Timeframe.M5, [START], [1], [4], [0.5], [2], [10])

        assert COLUMNS == ("time", "open", "high", "low", "close", "volume")
        assert [column.tolist() for column in bars.columns()] == [[START], [1.0], [4.0], [0.5], [2.0], [10.0]]
        assert (bars.instrument, bars.timeframe, len(bars)) == (CRYPTO, Timeframe.M5, 1)

    def test_empty_has_six_empty_columns(self) -> None:
        bars = empty(STOCK, Timeframe.H1)

        assert len(bars) == 0
        assert bars.timeframe is Timeframe.H1
        assert bars.time.dtype == np.int64

    def test_copy_owns_its_arrays(self) -> None:
        bars = walk(START + np.arange(100) * MINUTE)

        copied = bars.tail(3).copy()

        assert copied.same_as(bars.tail(3))
        assert all(column.base is None for column in copied.columns())

    def test_take_by_mask_and_index(self) -> None:
        bars = walk(START + np.arange(5) * MINUTE)

        assert bars.take(np.array([True, False, False, True, False])).same_as(bars.take(np.array([0, 3])))

    def test_same_as_sees_every_difference(self) -> None:
        bars = walk(START + np.arange(5) * MINUTE)

        assert bars.same_as(bars.copy())
        assert not bars.same_as(bars.tail(4))
        assert not bars.same_as(walk(START + np.arange(5) * MINUTE, instrument=STOCK))
        assert not bars.same_as(walk(START + np.arange(5) * MINUTE, timeframe=Timeframe.M5))
        for at_column in range(6):
            columns = [column.copy() for column in bars.columns()]
            columns[at_column][2] += 1
            assert not bars.same_as(make(CRYPTO, Timeframe.M1, *columns))


NAN, INF = float("nan"), float("inf")
GOOD: dict[str, float] = {"time": START, "open": 10.0, "high": 12.0, "low": 9.0, "close": 11.0, "volume": 5.0}
BAD: list[tuple[str, dict[str, float]]] = [
    ("not finite", {"open": NAN}),
    ("not finite", {"high": INF}),
    ("not finite", {"low": -INF}),
    ("not finite", {"close": NAN}),
    ("not finite", {"volume": NAN}),
    ("not finite", {"volume": INF}),
    ("price not positive", {"low": 0.0}),
    ("price not positive", {"open": -1.0}),
    ("price not positive", {"high": 0.0}),
    ("price not positive", {"close": -0.0}),
    ("volume negative", {"volume": -0.1}),
    ("high below low", {"high": 8.0, "open": 8.5, "close": 8.5}),
    ("open outside high and low", {"open": 12.1}),
    ("open outside high and low", {"open": 8.9}),
    ("close outside high and low", {"close": 12.1}),
    ("close outside high and low", {"close": 8.9}),
    ("time not on the minute", {"time": START + 1}),
    ("time before 1971", {"time": at("1970-06-01T00:00Z")}),
    ("time before 1971", {"time": -60}),
    ("from the future", {"time": START + DAY}),
]


def bars_with(*changes: dict[str, float], timeframe: Timeframe = Timeframe.M1) -> Bars:
    filled = [{**GOOD, **change} for change in changes]
    return make(CRYPTO, timeframe, *([row[name] for row in filled] for name in COLUMNS))


class TestFaults:
    NOW = START + 3600.0

    @pytest.mark.parametrize(("reason", "change"), BAD)
    def test_each_reason_is_named_and_points_at_its_bar(self, reason: str, change: dict[str, float]) -> None:
        found = faults(bars_with({}, change, {"volume": 0.0}), self.NOW)

        assert [(name, mask.tolist()) for name, mask in found] == [(reason, [False, True, False])]

    def test_every_bar_of_many_has_one_reason(self) -> None:
        found = faults(bars_with(*(change for _, change in BAD)), self.NOW)

        assert [name for name, _ in found] == list(dict.fromkeys(reason for reason, _ in BAD))
        assert np.sum([mask for _, mask in found], axis=0).tolist() == [1] * len(BAD)
        for name, mask in found:
            assert [reason == name for reason, _ in BAD] == mask.tolist()

    def test_a_bar_with_several_faults_is_counted_under_the_first(self) -> None:
        wrong = bars_with({"open": NAN, "volume": -1.0, "time": START + DAY + 1}, {"low": -1.0, "volume": -1.0})

        assert [name for name, _ in faults(wrong, self.NOW)] == ["not finite", "price not positive"]

    @given(runs)
    @settings(deadline=None, max_examples=50)
    def test_possible_bars_have_no_faults(self, bars: Bars) -> None:
        assert faults(bars, START + DAY) == []

    def test_a_bar_whose_four_prices_are_equal_is_fine(self) -> None:
        assert faults(bars_with({"open": 9.0, "high": 9.0, "low": 9.0, "close": 9.0, "volume": 0.0}), self.NOW) == []

    @pytest.mark.parametrize("timeframe", [Timeframe.M1, Timeframe.M5, Timeframe.H4])
    def test_a_bar_that_ends_after_now_is_from_the_future(self, timeframe: Timeframe) -> None:
        bars = bars_with({}, timeframe=timeframe)
        closes = START + timeframe.seconds

        def reasons(now: float, leeway: float = 0.0) -> list[str]:
            return [name for name, _ in faults(bars, now, leeway)]

        assert reasons(closes) == []
        assert reasons(closes - 0.5) == ["from the future"]
        assert reasons(closes - 0.5, leeway=0.5) == []
        assert reasons(closes - 2, leeway=1) == ["from the future"]

    @pytest.mark.parametrize(
        ("timeframe", "shift"), [(Timeframe.M5, 60), (Timeframe.M5, 299), (Timeframe.H1, 1800), (Timeframe.H4, 3600)]
    )
    def test_larger_bars_must_begin_on_their_own_buckets(self, timeframe: Timeframe, shift: int) -> None:
        bars = bars_with({"time": START + shift}, timeframe=timeframe)

        assert [name for name, _ in faults(bars, START + DAY)] == ["time not on the minute"]

    def test_empty_bars_have_no_faults(self) -> None:
        assert faults(empty(CRYPTO), self.NOW) == []

    @given(
        st.lists(
            st.fixed_dictionaries(
                {name: st.one_of(st.floats(allow_nan=True), st.floats(0.5, 2.0)) for name in COLUMNS[1:]}
                | {
                    "time": st.one_of(
                        st.integers(0, 60).map(lambda m: START + m * MINUTE), st.integers(-(10**10), 10**11)
                    )
                }
            ),
            max_size=8,
        )
    )
    @settings(deadline=None, max_examples=150)
    def test_finds_exactly_the_impossible_bars(self, table: list[dict[str, float]]) -> None:
        bars = make(CRYPTO, Timeframe.M1, *([row[name] for row in table] for name in COLUMNS))

        found = faults(bars, self.NOW)

        caught = np.sum([mask for _, mask in found], axis=0) if found else np.zeros(len(table))
        assert caught.tolist() == [0 if is_possible(row, self.NOW) else 1 for row in table]


def is_possible(row: dict[str, float], now: float) -> bool:
    low, high = row["low"], row["high"]
    rules: tuple[Callable[[], bool], ...] = (
        lambda: all(abs(row[name]) < INF for name in COLUMNS[1:]),
        lambda: 1e-15 <= low <= row["open"] <= high <= 1e15,
        lambda: low <= row["close"] <= high,
        lambda: 0 <= row["volume"] <= 1e18,
        lambda: row["time"] % MINUTE == 0,
        lambda: at("1971-01-01T00:00Z") <= row["time"] <= now - MINUTE,
    )
    return all(rule() for rule in rules)
