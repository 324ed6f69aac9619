"""The tests of native series that every bar store must pass. Its test module subclasses `NativeContract`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openbell.market.bars import Bars, empty_of, merge, resample
from openbell.market.errors import LeaseLost, SourceConflict
from openbell.market.instruments import parse
from openbell.market.series import Series, bases
from openbell.market.timeframes import SHORT, Timeframe
from openbell.stores.port import BarStore, Span
from tests.stores.model import assert_same
from tests.stores.samples import END, EVER, FILE, LIVE, START, bars, run, whole
from tests.stores.store_suite import StoreSuite

NATIVE = [timeframe for timeframe in SHORT.values() if timeframe is not Timeframe.M1]
SYMBOLS = ["AAPL", "BTC/USD", "EUR/USD"]
OTHER = replace(FILE, feed="other")
DAY = 86400
KINDS = [Timeframe.M15, Timeframe.H4, Timeframe.D1]
"""One timeframe for each kind of period: months, years, and all bars in one."""


def halves(some: Bars) -> tuple[Bars, Bars]:
    middle = len(some) // 2
    return some.take(slice(0, middle)), some.take(slice(middle, None))


class NativeContract(StoreSuite):
    """Each test checks one guarantee of `stores.port.BarStore` for series that are not minutes."""

    timeframes: ClassVar[Sequence[Timeframe]] = NATIVE
    """The timeframes of the tests that are run for each one."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run the tests that name a native timeframe with each one; with short bars, which are many, for one symbol."""
        if "native" in metafunc.fixturenames:
            metafunc.parametrize("native", self.timeframes)
        elif "pair" in metafunc.fixturenames:
            pairs = ((symbol, each) for symbol in SYMBOLS for each in self.timeframes)
            metafunc.parametrize("pair", [pair for pair in pairs if pair[1].seconds >= 3600 or pair[0] == "AAPL"])

    def test_bars_of_one_source_are_set_aside_at_every_timeframe(self, store: BarStore) -> None:
        days, hours = whole("AAPL", Timeframe.D1), whole("AAPL", Timeframe.H1)
        first, last = days.take(slice(0, 20)), days.take(slice(20, None))
        middle = int(last.time[0])
        store.write([first], FILE, covers=Span(START, middle))
        store.write([last], LIVE, covers=Span(middle, END))
        store.write([hours, whole("MSFT", Timeframe.D1)], LIVE, covers=Span(START, END))
        imported, live = run("AAPL", START, 30), run("AAPL", START + 60 * 60, 40)
        store.write([imported], FILE, covers=Span(START, START + 30 * 60))
        store.write([live], LIVE, covers=Span(START + 30 * 60, END))
        version = store.versions.of(last.series)
        assert store.set_aside(last.instrument, LIVE, "its prices were adjusted again")
        assert {problem.reason for problem in store.audit.problems()} == {"its prices were adjusted again"}
        asides = [Path(problem.path) for problem in store.audit.problems()]
        assert all(path.exists() for path in asides)
        rows = sum(pq.read_table(path).num_rows for path in asides)
        assert rows == len(last) + len(hours) + len(live), "nothing is lost"
        assert_same(store.read(first.series, 0, EVER), first)
        assert_same(store.read(imported.series, 0, EVER), imported)
        assert len(store.read(hours.series, 0, EVER)) == 0
        assert len(store.read(whole("MSFT", Timeframe.D1).series, 0, EVER)) > 0
        assert store.gaps(first.series, Span(int(first.time[0]), END)) == [Span(int(first.time[-1]) + 86400, END)]
        assert store.gaps(hours.series, Span(START, END)) == [Span(START, END)]
        assert store.versions.changed_since(last.series, version) is not None
        assert store.newest(Timeframe.D1, EVER)[first.instrument].same_as(first.tail(1))
        store.write([last], replace(LIVE, feed="another"), covers=Span(middle, END))
        assert_same(store.read(first.series, 0, EVER), days)
        assert store.set_aside(last.instrument, LIVE, "there is nothing left of it")

    def test_what_is_written_is_read_back_beside_other_timeframes(self, folder: Path, native: Timeframe) -> None:
        for symbol in SYMBOLS:
            with closing(self.open_store(folder)) as store:
                offered = whole(symbol, native)
                first, second = halves(offered)
                store.write([second], LIVE, covers=Span(int(second.time[0]), END))
                store.write([first, bars(symbol, [START])], LIVE)
                for reader in (store, self.open_store(folder)):
                    assert_same(reader.read(offered.series, 0, EVER), offered)
                    assert_same(reader.tail(offered.series, 3, EVER), offered.tail(3))
                    assert_same(reader.tail(offered.series, len(offered) + 5, EVER), offered)
                    assert_same(reader.read(Series(offered.instrument), 0, EVER), bars(symbol, [START]))
                    assert reader.timeframes(offered.instrument) == [native]
                    assert reader.gaps(offered.series, Span(START, END)) == [Span(START, int(second.time[0]))]
                    assert reader.gaps(Series(offered.instrument), Span(START, END)) == [Span(START, END)]
                    if reader is not store:
                        reader.close()
        with closing(self.open_store(folder)) as store:
            expected = [Series(parse(symbol), each) for symbol in SYMBOLS for each in (Timeframe.M1, native)]
            assert store.stored() == sorted(expected)

    def test_an_empty_store_has_nothing(self, store: BarStore) -> None:
        for timeframe in NATIVE:
            series = Series(parse("AAPL"), timeframe)
            assert_same(store.read(series, 0, EVER), empty_of(series))
            assert_same(store.tail(series, 5, EVER), empty_of(series))
            assert store.versions.changed_since(series, store.versions.of(series)) is None
            assert store.timeframes(series.instrument) == []
            assert store.sources.of(series, Span(0, EVER)) == set()

    @settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None, max_examples=10)
    @given(
        timeframe=st.sampled_from(NATIVE),
        symbol=st.sampled_from(SYMBOLS),
        parts=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 3)), min_size=1, max_size=4),
        queries=st.lists(st.tuples(st.integers(-5, 105), st.integers(-5, 105), st.integers(0, 40)), max_size=8),
    )
    def test_later_writes_win_and_any_read_is_exact(
        self,
        timeframe: Timeframe,
        symbol: str,
        parts: list[tuple[int, int, int]],
        queries: list[tuple[int, int, int]],
    ) -> None:
        every = whole(symbol, timeframe)

        def place(percent: int) -> int:
            return START + (END - START) * percent // 100

        with TemporaryDirectory() as folder, closing(self.open_store(Path(folder))) as store:
            expected = empty_of(every.series)
            for a, b, version in parts:
                part = bars(every.series, every.between(place(min(a, b)), place(max(a, b))).time, version)
                before = store.versions.of(every.series)
                store.write([part], LIVE)
                assert bool(len(part)) == (store.versions.changed_since(every.series, before) is not None)
                assert (every.series in store.versions.changed({every.series: before})) == bool(len(part))
                expected = merge(expected, part)
            for a, b, count in queries:
                start, end = place(a), place(b)
                assert_same(store.read(every.series, start, end), expected.between(start, max(start, end)))
                assert_same(store.tail(every.series, count, end), expected.between(0, end).tail(count))

    def test_larger_bars_are_made_of_whole_ones(self, store: BarStore, pair: tuple[str, Timeframe]) -> None:
        symbol, timeframe = pair
        offered = whole(symbol, timeframe, end=END if timeframe.seconds >= Timeframe.H1.seconds else START + 15 * DAY)
        store.write([offered], LIVE)
        for larger in (*NATIVE, Timeframe.D3, Timeframe.MONTH):
            if timeframe not in bases(offered.instrument, larger):
                continue
            for end in (
                int(offered.time[-1]) + 8 * DAY,
                int(offered.time[len(offered) * 2 // 3]) + 60,
                int(offered.time[0]),
            ):
                expected = resample(offered.between(0, end), larger, end)
                assert_same(store.resampled(offered.series, larger, 7, end), expected.tail(7))
                skipped = expected.take(slice(0, max(0, len(expected) - 2)))
                assert_same(store.resampled(offered.series, larger, 5, end, skip=2), skipped.tail(5))
                assert store.count(offered.series, larger, end) == len(expected)

    @pytest.mark.parametrize("timeframe", [Timeframe.M5, Timeframe.H1, Timeframe.D1, Timeframe.W1])
    def test_two_sources_each_hold_a_part_of_a_series(self, store: BarStore, timeframe: Timeframe) -> None:
        first, second = halves(whole("AAPL", timeframe))
        store.write([first], FILE, covers=Span(START, int(second.time[0])))
        store.write([second], LIVE, covers=Span(int(second.time[0]), END))
        assert_same(store.read(first.series, 0, EVER), merge(first, second))
        assert_same(store.tail(first.series, 2, EVER), second.tail(2))
        assert store.gaps(first.series, Span(START, END)) == []

    @pytest.mark.parametrize("timeframe", [Timeframe.M5, Timeframe.H1, Timeframe.D1, Timeframe.W1])
    def test_no_bar_has_two_sources_and_no_series_two_adjustments(self, store: BarStore, timeframe: Timeframe) -> None:
        every = whole("AAPL", timeframe, end=START + 20 * 86400)
        first, second = halves(every)
        store.write([first], FILE, covers=Span(START, int(second.time[0])))
        adjusted = replace(LIVE, adjustment="split")
        for offered, source in ((every, LIVE), (first.tail(1), OTHER), (second, adjusted)):
            assert len(store.sources.conflicts(offered, source)) == 1
            with pytest.raises(SourceConflict, match=r"AAPL .* holds bars of imported/csv/raw"):
                store.write([offered], source, covers=Span(START, END))
            assert_same(store.read(every.series, 0, EVER), first)
        assert store.sources.conflicts(second, LIVE) == store.sources.conflicts(first, FILE) == []
        assert {each.adjustment for each in store.sources.of(every.series, Span(0, EVER))} == {"raw"}
        assert store.gaps(every.series, Span(START, END)) == [Span(int(second.time[0]), END)]

    def test_replace_drops_the_bars_that_conflict(self, store: BarStore) -> None:
        every = whole("AAPL", Timeframe.D1)
        first, second = halves(every)
        store.write([first], FILE, covers=Span(START, int(second.time[0])))
        newer = bars(every.series, merge(first.tail(3), second).time, 2)
        store.write([newer], LIVE, replace=True, covers=Span(int(newer.time[0]), END))
        assert_same(store.read(every.series, 0, EVER), merge(first, newer))
        assert store.gaps(every.series, Span(START, END)) == []
        adjusted = bars(every.series, second.time, 3)
        store.write([adjusted], replace(LIVE, adjustment="split"), replace=True)
        assert_same(store.read(every.series, 0, EVER), adjusted)
        assert {each.adjustment for each in store.sources.of(every.series, Span(0, EVER))} == {"split"}
        assert store.gaps(every.series, Span(START, END)) == [Span(START, END)]

    def test_a_lost_lease_writes_nothing(self, store: BarStore) -> None:
        lease = store.leases.acquire("collector", "a", 60)
        store.leases.release(lease)
        store.leases.acquire("collector", "b", 60)
        offered = whole("AAPL", Timeframe.D1)
        with pytest.raises(LeaseLost):
            store.write([offered], LIVE, lease=lease, covers=Span(START, END))
        assert_same(store.read(offered.series, 0, EVER), empty_of(offered.series))
        assert store.gaps(offered.series, Span(START, END)) == [Span(START, END)]

    def test_coverage_alone_is_a_change(self, store: BarStore) -> None:
        """What is covered decides what larger bars are made of."""
        series = Series(parse("AAPL"), Timeframe.D1)
        before = store.versions.of(series)
        store.write([empty_of(series)], LIVE, covers=Span(START, END))
        assert store.versions.changed({series: before}) == {series}
        assert store.gaps(series, Span(START, END)) == []

    def test_values_survive_a_rewrite_by_another_process(self, folder: Path) -> None:
        every = whole("BTC/USD", Timeframe.H1)
        first, second = halves(every)
        with closing(self.open_store(folder)) as one, closing(self.open_store(folder)) as other:
            one.write([first], LIVE)
            version = one.versions.of(every.series)
            other.write([second], LIVE)
            assert one.versions.changed_since(every.series, version) is not None
            assert_same(one.read(every.series, 0, EVER), every)
            assert np.array_equal(one.tail(every.series, 1, EVER).close, every.close[-1:])

    def test_the_latest_bar_of_every_instrument_is_read_at_once(self, store: BarStore) -> None:
        def newest(end: int = EVER) -> dict[str, int]:
            found = store.newest(Timeframe.D1, end)
            for instrument, latest in found.items():
                assert_same(latest, store.resampled(Series(instrument, Timeframe.D1), Timeframe.D1, 1, end))
            return {instrument.symbol: int(latest.time[0]) for instrument, latest in found.items()}

        assert newest() == {}
        apple, bitcoin = whole("AAPL", Timeframe.D1), whole("BTC/USD", Timeframe.D1)
        first, second = halves(apple)
        store.write([first, bitcoin, whole("AAPL", Timeframe.H1)], LIVE, covers=Span(START, END))
        assert newest() == {"AAPL": first.time[-1], "BTC/USD": bitcoin.time[-1]}
        store.write([second], LIVE)
        store.write([first.take(slice(0, 3))], LIVE)
        assert newest() == {"AAPL": second.time[-1], "BTC/USD": bitcoin.time[-1]}
        end = int(bitcoin.time[5])
        expected = {"AAPL": resample(apple, Timeframe.D1, end).time[-1], "BTC/USD": bitcoin.time[4]}
        assert newest(end) == expected
        store.write([bars(apple.series, second.time, 5)], LIVE)
        assert newest()["AAPL"] == second.time[-1], "the bar itself is compared in newest()"
        store.write([bars(apple.series, first.time, 6)], replace(LIVE, adjustment="split"), replace=True)
        assert newest()["AAPL"] == first.time[-1]
