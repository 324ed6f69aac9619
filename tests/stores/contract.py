"""The tests that every bar store must pass. Its test module subclasses `BarStoreContract` and defines `open_store`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openbell.market.bars import Bars, empty_of, make, merge, resample
from openbell.market.errors import BadBars, LeaseHeld, LeaseLost, SourceConflict
from openbell.market.timeframes import SHORT, Timeframe
from openbell.stores.port import BarStore, Span
from tests.counts import runs
from tests.stores.model import Model, Reader, assert_same
from tests.stores.samples import (
    DAY,
    EVER,
    FILE,
    LIVE,
    MANY,
    MINUTE,
    NOVEMBER,
    OCTOBER,
    SEPTEMBER,
    at,
    bars,
    bits,
    minutes_of,
    run,
    sparse,
)
from tests.stores.store_suite import StoreSuite

SYMBOLS = ["AAPL", "BRK.B", "BTC/USD", "EUR/USD"]
COUNTS = [1, 7, MANY]
MORE = runs(6, soak=100)

minutes = st.integers(0, 4000).map(lambda minute: OCTOBER + (minute - 2000) * MINUTE)
"""Times around the end of a month."""


class BarStoreContract(StoreSuite):
    """Each test checks one guarantee of `stores.port.BarStore`."""

    # Reading and writing

    @pytest.mark.parametrize("symbol", SYMBOLS)
    @pytest.mark.parametrize("count", COUNTS)
    def test_what_is_written_is_read_back(self, store: BarStore, symbol: str, count: int) -> None:
        offered = run(symbol, SEPTEMBER, count)
        store.write([offered], LIVE)
        assert_same(store.read(minutes_of(symbol), SEPTEMBER, EVER), offered)
        assert_same(store.tail(minutes_of(symbol), count, EVER), offered)

    @pytest.mark.parametrize("symbol", SYMBOLS)
    def test_an_empty_store_has_nothing(self, store: BarStore, symbol: str) -> None:
        series = minutes_of(symbol)
        assert_same(store.read(series, 0, EVER), empty_of(series))
        assert_same(store.tail(series, 5, EVER), empty_of(series))
        assert store.versions.changed_since(series, store.versions.of(series)) is None
        assert store.gaps(series, Span(60, 120)) == [Span(60, 120)]
        assert (store.stored(), store.audit.problems(), store.compact(EVER)) == ([], [], 0)

    @settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None, max_examples=8)
    @given(
        moved=st.integers(0, 3000),
        queries=st.lists(st.tuples(minutes, minutes, st.integers(0, 4000)), min_size=10, max_size=20),
    )
    def test_any_read_across_the_end_of_a_month_is_exact(self, moved: int, queries: list[tuple[int, int, int]]) -> None:
        with TemporaryDirectory() as folder, closing(self.open_store(Path(folder))) as store:
            whole = bars("BTC/USD", np.unique(OCTOBER + MINUTE * (np.arange(3900) * 37 % 4000 - 2000)))
            store.write([whole.take(slice(0, 2500))], LIVE)
            for first in range(2500, 3900, 700):
                store.write([whole.take(slice(first, first + 700))], LIVE)
            store.compact(OCTOBER + (moved - 500) * MINUTE)
            for start, end, count in queries:
                asked = f"read {start}–{end}, tail {count}"
                assert_same(store.read(whole.series, start, end), whole.between(start, max(start, end)), asked)
                assert_same(store.tail(whole.series, count, end), whole.between(0, end).tail(count), asked)

    def test_a_read_includes_its_start_and_excludes_its_end(self, store: BarStore) -> None:
        offered = run("AAPL", OCTOBER - 2 * MINUTE, 4)
        store.write([offered], LIVE)
        got = store.read(minutes_of("AAPL"), OCTOBER - MINUTE, OCTOBER + MINUTE)
        assert got.time.tolist() == [OCTOBER - MINUTE, OCTOBER]
        assert store.tail(minutes_of("AAPL"), 1, OCTOBER).time.tolist() == [OCTOBER - MINUTE]
        assert len(store.read(minutes_of("AAPL"), OCTOBER, OCTOBER)) == 0
        assert len(store.read(minutes_of("AAPL"), EVER, 0)) == 0

    @pytest.mark.parametrize("first", COUNTS)
    @pytest.mark.parametrize("second", COUNTS)
    def test_a_later_write_wins(self, store: BarStore, first: int, second: int) -> None:
        old, new = run("AAPL", OCTOBER - 5 * MINUTE, first, 1), run("AAPL", OCTOBER - 2 * MINUTE, second, 2)
        store.write([old], LIVE)
        store.write([new], LIVE)
        assert_same(store.read(old.series, 0, EVER), merge(old, new))
        store.compact(EVER)
        assert_same(store.read(old.series, 0, EVER), merge(old, new))

    @pytest.mark.parametrize("first", COUNTS)
    @pytest.mark.parametrize("second", COUNTS)
    def test_a_later_part_of_one_write_wins(self, store: BarStore, first: int, second: int) -> None:
        old, new = run("AAPL", SEPTEMBER, first, 1), run("AAPL", SEPTEMBER, second, 2)
        store.write([old, new], LIVE)
        assert_same(store.read(old.series, 0, EVER), merge(old, new))

    @pytest.mark.parametrize("count", COUNTS)
    def test_writing_again_changes_nothing(self, store: BarStore, count: int) -> None:
        offered = run("AAPL", OCTOBER - 3 * MINUTE, count)
        for _ in range(3):
            store.write([offered], LIVE, covers=Span(SEPTEMBER, NOVEMBER))
            assert_same(store.read(offered.series, 0, EVER), offered)
            assert store.gaps(offered.series, Span(SEPTEMBER, NOVEMBER)) == []
        store.compact(EVER)
        store.write([offered], LIVE)
        assert_same(store.read(offered.series, 0, EVER), offered)

    @pytest.mark.parametrize("count", [3, MANY])
    def test_values_are_stored_to_the_last_bit(self, store: BarStore, count: int) -> None:
        tiny, huge, odd = 5e-324, 1.7976931348623157e308, 0.1 + 0.2
        low = np.resize([tiny, 1e-12, 2.2250738585072014e-308], count)
        high = np.resize([huge, odd, 4503599627370497.5], count)
        volume = np.resize([-0.0, 1 / 3, huge], count)
        time = SEPTEMBER + MINUTE * np.arange(count)
        offered = make(minutes_of("SHIB/USD").instrument, Timeframe.M1, time, low, high, low, high, volume)
        store.write([offered], LIVE)
        assert bits(store.read(offered.series, 0, EVER)) == bits(offered)
        store.compact(EVER)
        assert bits(store.read(offered.series, 0, EVER)) == bits(offered)

    def test_many_instruments_in_one_write_stay_apart(self, store: BarStore) -> None:
        parts = [
            run(symbol, OCTOBER - 50 * MINUTE, count, 3)
            for symbol, count in zip(SYMBOLS, (1, 99, MANY, 2), strict=True)
        ]
        store.write(parts, LIVE, covers=Span(SEPTEMBER, OCTOBER))
        for part in parts:
            assert_same(store.read(part.series, 0, EVER), part)
            assert store.gaps(part.series, Span(SEPTEMBER, NOVEMBER)) == [Span(OCTOBER, NOVEMBER)]
        assert store.stored() == sorted(map(minutes_of, SYMBOLS))

    def test_changing_bars_after_a_write_does_not_change_the_store(self, store: BarStore) -> None:
        offered = run("AAPL", SEPTEMBER, MANY)
        store.write([offered], LIVE)
        first = store.read(offered.series, 0, EVER).copy()
        first.close[:] = 0
        offered.open[:] = 0
        assert_same(store.read(offered.series, 0, EVER), run("AAPL", SEPTEMBER, MANY))

    # Resampled bars

    @pytest.mark.parametrize("symbol", ["BTC/USD", "AAPL"])
    def test_resampled_bars_equal_the_minutes_resampled(self, store: BarStore, symbol: str) -> None:
        """Pages of any size equal parts of the whole, at any end time, across the end of a month."""
        series = minutes_of(symbol)
        minutes = sparse(symbol, OCTOBER - 3 * DAY, OCTOBER + 2 * DAY + 5 * MINUTE)
        store.write([minutes], LIVE)
        store.write([run(symbol, OCTOBER + DAY + 7 * MINUTE, 3, 5)], LIVE)
        stored = store.read(series, 0, EVER)
        ends = (OCTOBER + 2 * DAY + 4 * MINUTE, OCTOBER + 20 * MINUTE, OCTOBER - DAY, SEPTEMBER)
        for timeframe, end in product((*SHORT.values(), Timeframe.H8, Timeframe.D3), ends):
            whole = resample(stored.between(0, end), timeframe, end)
            assert store.count(series, timeframe, end) == len(whole), (timeframe, end)
            assert bits(store.resampled(series, timeframe, EVER, end)) == bits(whole), (timeframe, end)
            for count, skip in ((1, 0), (3, 1), (7, 4), (5, len(whole) - 2), (5, len(whole)), (2, len(whole) + 9)):
                expected = whole.take(slice(max(0, len(whole) - skip - count), max(0, len(whole) - max(0, skip))))
                found = store.resampled(series, timeframe, count, end, max(0, skip))
                if skip >= 0:
                    assert bits(found) == bits(expected), (timeframe, end, count, skip)

    @pytest.mark.parametrize(
        ("symbol", "start", "minutes", "step"),
        [
            ("BTC/USD", "2025-06-28T00:00Z", 38 * 1440, 1),  # July has more minutes than are read at once
            ("AAPL", "2022-12-20T00:00Z", 800 * 1440, 397),
        ],
    )
    def test_months_and_years_are_made_of_minutes(
        self, store: BarStore, symbol: str, start: str, minutes: int, step: int
    ) -> None:
        first = at(start)
        minutes_stored = bars(symbol, first + MINUTE * np.arange(0, minutes, step))
        store.write([minutes_stored], LIVE)
        end = first + minutes * MINUTE
        for timeframe in (each for each in Timeframe if each.of_days):
            whole = resample(minutes_stored, timeframe, end)
            assert bits(store.resampled(minutes_stored.series, timeframe, 500, end)) == bits(whole)
            assert store.count(minutes_stored.series, timeframe, end) == len(whole)
            until = end - 20 * DAY
            before = resample(minutes_stored.between(0, until), timeframe, until)
            assert bits(store.resampled(minutes_stored.series, timeframe, 2, until)) == bits(before.tail(2))

    def test_resampled_bars_follow_corrections(self, store: BarStore) -> None:
        series = minutes_of("BTC/USD")
        store.write([run("BTC/USD", OCTOBER - DAY, MANY)], LIVE)
        for version, start in enumerate((OCTOBER - DAY + 60 * MINUTE, OCTOBER - 2 * DAY, OCTOBER - DAY), 2):
            for timeframe in (Timeframe.H1, Timeframe.H8, Timeframe.D1, Timeframe.MONTH):
                store.resampled(series, timeframe, 100, EVER)
            store.write([run("BTC/USD", start, 5, version)], LIVE)
            if version == 3:
                store.compact(EVER)
            for timeframe in (Timeframe.H1, Timeframe.H8, Timeframe.D1, Timeframe.MONTH):
                whole = resample(store.read(series, 0, EVER), timeframe, EVER)
                assert bits(store.resampled(series, timeframe, 100, EVER)) == bits(whole)
                assert store.count(series, timeframe, EVER) == len(whole)

    # Refusals

    @pytest.mark.parametrize("count", [3, MANY])
    @pytest.mark.parametrize(
        "spoil", ["unsorted", "double", "high below low", "nan", "negative price", "not a minute", "off its grid"]
    )
    def test_a_write_with_an_impossible_bar_is_refused_as_a_whole(
        self, store: BarStore, spoil: str, count: int
    ) -> None:
        stored, good = run("AAPL", SEPTEMBER, 9, 1), run("MSFT", SEPTEMBER, 5)
        store.write([stored], LIVE)
        with pytest.raises(BadBars, match="AAPL"):
            store.write([good, spoilt(run("AAPL", SEPTEMBER, count, 2), spoil)], LIVE, covers=Span(0, EVER))
        assert_same(store.read(stored.series, 0, EVER), stored)
        assert store.gaps(stored.series, Span(0, 60)) == [Span(0, 60)]
        assert store.stored() == [stored.series]

    @pytest.mark.parametrize("first", COUNTS)
    @pytest.mark.parametrize("second", COUNTS)
    def test_one_minute_never_has_two_sources(self, store: BarStore, first: int, second: int) -> None:
        stored = run("AAPL", SEPTEMBER, first)
        store.write([stored], LIVE)
        offered = run("AAPL", int(stored.time[-1]), second, 2)
        with pytest.raises(SourceConflict, match=r"AAPL 2025-09 .*alpaca") as caught:
            store.write([offered], FILE, covers=Span(SEPTEMBER, OCTOBER))
        assert (caught.value.details["symbol"], caught.value.details["month"]) == ("AAPL", "2025-09")
        assert store.sources.conflicts(offered, FILE) == [f"2025-09 ({LIVE})"]
        assert_same(store.read(stored.series, 0, EVER), stored)
        assert store.gaps(stored.series, Span(SEPTEMBER, OCTOBER)) == [Span(SEPTEMBER, OCTOBER)]

    @pytest.mark.parametrize("first", COUNTS)
    @pytest.mark.parametrize("second", COUNTS)
    def test_a_second_source_goes_on_in_the_month_of_the_first(self, folder: Path, first: int, second: int) -> None:
        """As when minutes of the running month were imported, and a feed delivers the next ones."""
        with closing(self.open_store(folder)) as store:
            imported = run("AAPL", SEPTEMBER, first)
            store.write([imported], FILE, covers=Span(SEPTEMBER, int(imported.time[-1]) + MINUTE))
            reader = Reader(imported.series)
            reader.refresh(store)
            live = run("AAPL", int(imported.time[-1]) + 3 * MINUTE, second, 2)
            for part in (live, run("AAPL", int(live.time[-1]) + MINUTE, 1, 2), run("AAPL", int(live.time[0]), 1, 3)):
                assert store.sources.conflicts(part, LIVE) == []
                store.write([part], LIVE)
            corrected = run("AAPL", SEPTEMBER, 1, 4)
            store.write([corrected], FILE)
            after = run("AAPL", int(live.time[-1]) + MINUTE, 1, 2)
            expected = merge(imported, corrected, live, after, run("AAPL", int(live.time[0]), 1, 3))
            for _ in range(2):
                assert_same(store.read(imported.series, 0, EVER), expected)
                assert_same(reader.refresh(store), expected)
                assert_same(store.tail(imported.series, second + 2, EVER), expected.tail(second + 2))
                for timeframe in (Timeframe.M1, Timeframe.M5, Timeframe.H1):
                    made = resample(expected, timeframe, EVER)
                    assert store.count(imported.series, timeframe, EVER) == len(made)
                    assert_same(store.resampled(imported.series, timeframe, 50, EVER), made.tail(50))
                store.compact(EVER)
            between = int(imported.time[-1]) + MINUTE
            assert store.sources.of(imported.series, Span(SEPTEMBER, between)) == {FILE}
            assert store.sources.of(imported.series, Span(between, OCTOBER)) == {LIVE}
            assert store.sources.of(imported.series, Span(SEPTEMBER, OCTOBER)) == {FILE, LIVE}
            with pytest.raises(SourceConflict):
                store.write([run("AAPL", SEPTEMBER, 1, 5)], LIVE)
        with closing(self.open_store(folder)) as store:
            assert_same(store.read(imported.series, 0, EVER), expected)

    def test_an_adjustment_makes_another_source(self, store: BarStore) -> None:
        store.write([run("AAPL", SEPTEMBER, 3)], LIVE)
        with pytest.raises(SourceConflict):
            store.write([run("AAPL", SEPTEMBER, 3)], replace(LIVE, adjustment="split"))

    @pytest.mark.parametrize("count", COUNTS)
    def test_months_and_instruments_have_sources_of_their_own(self, store: BarStore, count: int) -> None:
        store.write([run("AAPL", SEPTEMBER, count)], LIVE)
        store.write([run("AAPL", OCTOBER, count)], FILE)
        store.write([run("MSFT", SEPTEMBER, count)], FILE)
        assert len(store.read(minutes_of("AAPL"), 0, EVER)) == 2 * count
        assert len(store.read(minutes_of("MSFT"), 0, EVER)) == count

    def test_a_small_write_that_conflicts_in_one_month_writes_none(self, store: BarStore) -> None:
        store.write([run("AAPL", OCTOBER, 3)], LIVE)
        with pytest.raises(SourceConflict):
            store.write([run("MSFT", SEPTEMBER, 3), run("AAPL", OCTOBER - 2 * MINUTE, 4)], FILE)
        assert_same(store.read(minutes_of("AAPL"), 0, EVER), run("AAPL", OCTOBER, 3))
        assert store.stored() == [minutes_of("AAPL")]
        store.write([run("AAPL", SEPTEMBER, 1)], replace(FILE, feed="other"))

    def test_a_refused_write_leaves_no_trace_in_later_ones(self, store: BarStore) -> None:
        store.write([run("AAPL", SEPTEMBER, 2)], LIVE)
        new, other = run("MSFT", SEPTEMBER, 2), run("TSLA", SEPTEMBER, 3)
        with pytest.raises(SourceConflict):
            store.write([new, new, run("AAPL", SEPTEMBER, 1)], FILE)
        store.write([other], LIVE)
        store.write([new], LIVE)
        assert_same(store.read(other.series, 0, EVER), other)
        assert_same(store.read(new.series, 0, EVER), new)

    # Coverage

    def test_an_empty_part_covers_its_span(self, store: BarStore) -> None:
        series = minutes_of("AAPL")
        store.write([empty_of(series)], LIVE, covers=Span(SEPTEMBER, OCTOBER))
        assert store.gaps(series, Span(SEPTEMBER - 60, OCTOBER + 60)) == [
            Span(SEPTEMBER - 60, SEPTEMBER),
            Span(OCTOBER, OCTOBER + 60),
        ]
        assert store.stored() == []
        assert len(store.read(series, 0, EVER)) == 0
        store.write([empty_of(series)], LIVE)
        store.write([], LIVE, covers=Span(0, EVER))
        store.write([run("AAPL", SEPTEMBER, 1)], FILE)

    @settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None, max_examples=40)
    @given(
        spans=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12),
        asked=st.tuples(st.integers(0, 40), st.integers(0, 40)),
        together=st.booleans(),
    )
    def test_gaps_are_exactly_what_no_span_covers(
        self, spans: list[tuple[int, int]], asked: tuple[int, int], together: bool
    ) -> None:
        """A span that ends before it begins covers nothing."""
        with TemporaryDirectory() as folder, closing(self.open_store(Path(folder))) as store:
            parts = [empty_of(minutes_of(symbol)) for symbol in (SYMBOLS if together else SYMBOLS[:1])]
            for start, end in spans:
                store.write(parts, LIVE, covers=Span(SEPTEMBER + start * MINUTE, SEPTEMBER + end * MINUTE))
            covered = {minute for start, end in spans for minute in range(start, end)}
            open_minutes = [minute for minute in range(*asked) if minute not in covered]
            question = Span(SEPTEMBER + asked[0] * MINUTE, SEPTEMBER + asked[1] * MINUTE)
            for part in parts:
                assert store.gaps(part.series, question) == _spans(open_minutes)

    # Premature coverage

    @pytest.mark.parametrize("count", [60, MANY])
    def test_premature_coverage_is_found_and_mended(self, store: BarStore, count: int) -> None:
        now = int(time.time() // 60 * 60)
        early, good = run("BTC/USD", now - 30 * MINUTE, count), run("AAPL", SEPTEMBER, 5)
        store.write([good], LIVE, covers=Span(SEPTEMBER, OCTOBER))
        assert store.audit.premature() == []
        store.write([early], LIVE, covers=Span(now - 30 * MINUTE, now + 2 * DAY))
        version = store.versions.of(early.series)
        larger = store.resampled(early.series, Timeframe.M5, 10_000, EVER)

        (found,) = store.audit.premature()

        written = int(found.written // 60 * 60)
        assert now <= written <= time.time()
        assert (found.series, found.span) == (early.series, Span(written, now + 2 * DAY))
        assert store.audit.mend() == [found]
        assert (store.audit.mend(), store.audit.premature(), store.audit.problems()) == ([], [], [])
        left = early.between(0, written)
        assert_same(store.read(early.series, 0, EVER), left)
        assert store.versions.changed_since(early.series, version) is not None
        after = store.resampled(early.series, Timeframe.M5, 10_000, EVER)
        assert after.same_as(resample(left, Timeframe.M5, EVER))
        assert len(after) < len(larger)
        asked = Span(now - 30 * MINUTE, now + 2 * DAY)
        assert store.gaps(early.series, asked) == [Span(written, now + 2 * DAY)]
        assert_same(store.read(good.series, 0, EVER), good)
        assert store.gaps(good.series, Span(SEPTEMBER, OCTOBER)) == []
        again = run("BTC/USD", now - 5 * MINUTE, 5, 2)
        store.write([again], LIVE, covers=Span(now - 5 * MINUTE, now))
        assert_same(store.read(early.series, 0, EVER), merge(left, again))

    @pytest.mark.parametrize("count", [3, MANY])
    def test_mending_removes_a_series_that_has_only_unfinished_bars(self, store: BarStore, count: int) -> None:
        start = int(time.time() // DAY + 40) * DAY
        store.write([run("BTC/USD", start, count)], LIVE, covers=Span(start, start + count * MINUTE))
        assert len(store.audit.mend()) == 1
        assert store.stored() == []
        assert store.audit.problems() == []
        store.write([run("BTC/USD", start, count, 2)], FILE)

    def test_later_coverage_does_not_hide_premature_coverage(
        self, store: BarStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series, then = minutes_of("BTC/USD"), SEPTEMBER + 100 * MINUTE + 7

        def cover(at: int, start: int, end: int, *offered: Bars) -> None:
            monkeypatch.setattr(time, "time", lambda: float(at))
            span = Span(SEPTEMBER + start * MINUTE, SEPTEMBER + end * MINUTE)
            store.write([*offered, empty_of(series)], LIVE, covers=span)
            monkeypatch.undo()

        early = run("BTC/USD", SEPTEMBER, 200)
        cover(then, 0, 200, early)
        cover(OCTOBER, 150, 160)
        cover(OCTOBER, 190, 400)
        cover(OCTOBER, 50, 60)

        (found,) = store.audit.premature()

        assert found.span == Span(SEPTEMBER + 100 * MINUTE, SEPTEMBER + 200 * MINUTE)
        store.audit.mend()
        gaps = [(SEPTEMBER + a * MINUTE, SEPTEMBER + b * MINUTE) for a, b in ((100, 150), (160, 190))]
        assert store.gaps(series, Span(SEPTEMBER, SEPTEMBER + 400 * MINUTE)) == [Span(*gap) for gap in gaps]
        kept = [t for t in early.time.tolist() if not any(a <= t < b for a, b in gaps)]
        assert store.read(series, 0, EVER).time.tolist() == kept, "bars that were covered later are final"

    def test_coverage_written_with_a_wrong_clock_is_fetched_again(
        self, store: BarStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = int(time.time() // 60 * 60)
        monkeypatch.setattr(time, "time", lambda: now + 2.0 * DAY)
        offered = run("BTC/USD", now - DAY, 2 * 1440)
        span = Span(now - DAY, now + DAY)
        store.write([offered], LIVE, covers=span)
        assert store.audit.premature() == []
        monkeypatch.undo()
        assert [found.span for found in store.audit.premature()] == [span]
        store.audit.mend()
        assert store.gaps(offered.series, span) == [span]
        stored = store.read(offered.series, 0, EVER)
        assert now - DAY <= stored.time[-1] < time.time(), (
            "bars that may have closed are kept until they are fetched again"
        )
        assert stored.time[-1] >= now - MINUTE

    # Changes

    @settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None, max_examples=MORE)
    @given(data=st.data())
    def test_a_reader_that_reads_only_changes_sees_everything(self, data: st.DataObject) -> None:
        with TemporaryDirectory() as folder:
            self.follow(Path(folder), data.draw(st.lists(step(MANY), min_size=2, max_size=14)))

    def follow(self, folder: Path, steps: Sequence[Step]) -> None:
        """Apply the steps. After each the store must equal the model, and a reader that refreshes must too."""
        store = self.open_store(folder)
        model = Model()
        readers = [Reader(minutes_of(symbol)) for symbol in SYMBOLS[:2] for _ in range(2)]
        for number, (kind, symbol, start, count) in enumerate(steps):
            series = minutes_of(symbol)
            if kind == "write":
                offered = run(symbol, start, count, number)
                store.write([offered], LIVE)
                model.put(offered)
            elif kind == "compact":
                store.compact(start)
            elif kind == "reopen":
                store.close()
                store = self.open_store(folder)
            elif kind == "cover":
                store.write([empty_of(series)], LIVE, covers=Span(start, start + count * MINUTE))
            elif kind == "refresh":
                for reader in readers[count % 2 :: 2]:
                    assert_same(reader.refresh(store), model.bars(reader.series), f"step {number}")
        for reader in readers:
            assert_same(store.read(reader.series, 0, EVER), model.bars(reader.series), "in the end")
            assert_same(reader.refresh(store), model.bars(reader.series), "in the end")
            assert store.versions.changed_since(reader.series, reader.version) is None
            assert store.versions.changed({reader.series: reader.version}) == set()
        store.close()

    @settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None, max_examples=15)
    @given(data=st.data())
    def test_new_bars_equal_a_read_or_are_left_out(self, data: st.DataObject) -> None:
        """After any writes since the versions, the bars that are returned are correct and complete."""
        symbols = ["AAPL", "BTC/USD", "EUR/USD"]
        with TemporaryDirectory() as name, closing(self.open_store(Path(name) / "data")) as store:
            for symbol in symbols:
                store.write([run(symbol, OCTOBER - 20 * MINUTE, 20)], LIVE, covers=Span(OCTOBER - 20 * MINUTE, OCTOBER))
            versions = {minutes_of(symbol): store.versions.of(minutes_of(symbol)) for symbol in symbols}
            for number in range(data.draw(st.integers(0, 5), "writes")):
                symbol = data.draw(st.sampled_from(symbols), "symbol")
                start = OCTOBER + data.draw(st.integers(-10, 60), "start") * MINUTE
                count = data.draw(st.sampled_from([1, 3, MANY]), "count")
                covers = Span(start, start + count * MINUTE) if data.draw(st.booleans(), "covers") else None
                store.write([run(symbol, start, count, number)], LIVE, covers=covers)
                if data.draw(st.booleans(), "compact"):
                    store.compact(start)
            span = Span(OCTOBER, OCTOBER + data.draw(st.integers(1, 90), "length") * MINUTE)
            for waived in (False, True):
                for series, found in store.versions.new_bars(versions, span, covered=not waived).items():
                    assert_same(found, store.read(series, span.start, span.end))
                    assert waived or not store.gaps(series, span)

    def test_new_bars_of_many_instruments_after_one_write_are_complete(self, store: BarStore) -> None:
        symbols = [minutes_of(symbol) for symbol in SYMBOLS]
        store.write([run(each, SEPTEMBER, 5) for each in symbols], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 300))
        versions = {each: store.versions.of(each) for each in symbols}
        fresh = [run(each, SEPTEMBER + 300, 1) for each in symbols]
        store.write(fresh, LIVE, covers=Span(SEPTEMBER + 300, SEPTEMBER + 360))
        found = store.versions.new_bars(versions, Span(SEPTEMBER + 300, SEPTEMBER + 360))
        assert set(found) == set(symbols)
        for part in fresh:
            assert_same(found[part.series], part)
        assert store.versions.new_bars(versions, Span(SEPTEMBER + 300, SEPTEMBER + 420)) == {}

    def test_nothing_has_changed_until_something_is_written(self, store: BarStore) -> None:
        series = minutes_of("AAPL")
        store.write([run("AAPL", SEPTEMBER, 10)], LIVE)
        version = store.versions.of(series)
        assert store.versions.changed_since(series, version) is None
        store.write([run("MSFT", SEPTEMBER, 10)], LIVE)
        store.write([empty_of(series)], LIVE, covers=Span(0, EVER))
        assert store.versions.changed_since(series, version) is None
        store.write([run("AAPL", SEPTEMBER + 5 * MINUTE, 1, 2)], LIVE)
        changed = store.versions.changed_since(series, version)
        assert changed is not None
        assert changed <= SEPTEMBER + 5 * MINUTE

    def test_of_many_the_changed_ones_are_found(self, store: BarStore) -> None:
        symbols = [minutes_of(symbol) for symbol in ("AAPL", "BTC/USD", "EUR/USD", "MSFT", "QQQ", "SPY")]
        store.write([run(each, SEPTEMBER, 5) for each in symbols[:-1]], LIVE)
        versions = {each: store.versions.of(each) for each in symbols}
        assert store.versions.changed(versions) == set()
        store.write([run("AAPL", SEPTEMBER, 1, 2), run("SPY", SEPTEMBER, 1)], LIVE)
        store.write([run("QQQ", SEPTEMBER, MANY)], LIVE)
        assert store.versions.changed(versions) == {minutes_of("AAPL"), minutes_of("QQQ"), minutes_of("SPY")}
        for few in ({"AAPL", "MSFT"}, {"MSFT"}, set()):
            some = {each: version for each, version in versions.items() if each.name in few}
            assert store.versions.changed(some) == {each for each in some if each.name == "AAPL"}

    # Durability

    def test_everything_is_there_after_reopening(self, folder: Path) -> None:
        store = self.open_store(folder)
        small, large = run("BRK.B", SEPTEMBER, 5), run("BTC/USD", SEPTEMBER, MANY)
        store.write([small, large], LIVE, covers=Span(SEPTEMBER, OCTOBER))
        version, lease = store.versions.of(small.series), store.leases.acquire("collector", "me", 60)
        store.close()
        again = self.open_store(folder)
        assert_same(again.read(small.series, 0, EVER), small)
        assert_same(again.read(large.series, 0, EVER), large)
        assert again.gaps(small.series, Span(SEPTEMBER, NOVEMBER)) == [Span(OCTOBER, NOVEMBER)]
        assert again.versions.changed_since(small.series, version) is None
        assert again.stored() == [small.series, large.series]
        assert again.leases.holder("collector") == "me"
        with pytest.raises(SourceConflict):
            again.write([small], FILE)
        again.write([run("BRK.B", SEPTEMBER, 5, 2)], LIVE, lease=lease)
        again.close()

    def test_two_open_stores_see_each_others_writes_at_once(self, folder: Path) -> None:
        one, other = self.open_store(folder), self.open_store(folder)
        reader = Reader(minutes_of("AAPL"))
        assert len(reader.refresh(other)) == 0
        for count, version in ((3, 1), (MANY, 2), (5, 3)):
            one.write([run("AAPL", SEPTEMBER, count, version)], LIVE)
            assert_same(reader.refresh(other), one.read(minutes_of("AAPL"), 0, EVER))
            other.compact(EVER)
            assert_same(reader.refresh(one), other.read(minutes_of("AAPL"), 0, EVER))
        one.close()
        other.close()

    def test_compaction_moves_every_bar_once_and_changes_nothing(self, store: BarStore) -> None:
        offered = run("AAPL", OCTOBER - 20 * MINUTE, 40)
        store.write([offered], LIVE)
        moved = [store.compact(before) for before in (OCTOBER - 10 * MINUTE, OCTOBER + 5 * MINUTE, EVER, EVER)]
        assert sum(moved) in {0, 40}  # 0 if the store has no buffer
        assert moved[3] == 0
        assert_same(store.read(offered.series, 0, EVER), offered)

    def test_size_counts_what_is_on_disk(self, store: BarStore) -> None:
        before = store.size()
        store.write([run("AAPL", SEPTEMBER, MANY)], LIVE)
        assert store.size() > before + MANY

    def test_it_has_a_name(self, store: BarStore) -> None:
        assert store.name

    # Leases

    def test_a_lease_has_one_holder(self, store: BarStore) -> None:
        assert store.leases.holder("collector") is None
        first = store.leases.acquire("collector", "one", 60)
        with pytest.raises(LeaseHeld, match="one"):
            store.leases.acquire("collector", "two", 60)
        assert store.leases.holder("collector") == "one"
        assert store.leases.acquire("engine", "two", 60).name == "engine"
        store.leases.renew(first, 60)
        store.leases.release(first)
        assert store.leases.holder("collector") is None
        assert store.leases.acquire("collector", "two", 60).token > first.token

    @pytest.mark.parametrize("count", COUNTS)
    def test_without_its_lease_a_writer_writes_nothing(self, store: BarStore, count: int) -> None:
        stored, late = run("AAPL", SEPTEMBER, 4, 1), run("AAPL", SEPTEMBER, count, 2)
        lost = store.leases.acquire("collector", "one", 60)
        store.write([stored], LIVE, lease=lost)
        store.leases.release(lost)
        kept = store.leases.acquire("collector", "two", 60)
        version = store.versions.of(stored.series)
        for parts in ([late], [late, run("MSFT", SEPTEMBER, count)], [empty_of(stored.series)]):
            with pytest.raises(LeaseLost):
                store.write(parts, LIVE, covers=Span(SEPTEMBER, OCTOBER), lease=lost)
        with pytest.raises(LeaseLost):
            store.leases.renew(lost, 60)
        store.leases.release(lost)
        assert store.leases.holder("collector") == "two"
        assert_same(store.read(stored.series, 0, EVER), stored)
        assert store.versions.changed_since(stored.series, version) is None
        assert store.gaps(stored.series, Span(SEPTEMBER, OCTOBER)) == [Span(SEPTEMBER, OCTOBER)]
        assert store.stored() == [stored.series]
        store.write([late], LIVE, lease=kept)
        assert_same(store.read(stored.series, 0, EVER), merge(stored, late))


Step = tuple[str, str, int, int]
"""Kind, symbol, time, and number of minutes."""


def step(many: int) -> st.SearchStrategy[Step]:
    """One operation on a store; `many` bars make a large write."""
    symbols = st.sampled_from(SYMBOLS[:2])
    few = st.integers(1, 5)
    return st.one_of(
        st.tuples(st.just("write"), symbols, minutes, few),
        st.tuples(st.just("write"), symbols, minutes, few),
        st.tuples(st.just("write"), symbols, minutes, st.integers(many, many + 3)),
        st.tuples(st.just("compact"), symbols, minutes, few),
        st.tuples(st.just("refresh"), symbols, minutes, few),
        st.tuples(st.just("refresh"), symbols, minutes, few),
        st.tuples(st.sampled_from(["reopen", "cover"]), symbols, minutes, few),
    )


def spoilt(good: Bars, how: str) -> Bars:
    """Bars with one fault."""
    bad = good.copy()
    if how == "unsorted":
        return bad.take(np.r_[1, 0, 2 : len(bad)])
    if how == "double":
        bad.time[1] = bad.time[0]
    elif how == "high below low":
        bad.high[1] = bad.low[1] / 2
    elif how == "nan":
        bad.volume[-1] = np.nan
    elif how == "negative price":
        bad.low[0] = -1
    elif how == "not a minute":
        bad.time[-1] += 30
    elif how == "off its grid":
        return replace(bad, timeframe=Timeframe.M5, time=bad.time // 300 * 300 + 60 + 300 * np.arange(len(bad)))
    return bad


def _spans(times: list[int]) -> list[Span]:
    """Minutes joined into spans that do not touch."""
    found: list[Span] = []
    for minute in times:
        start = SEPTEMBER + minute * MINUTE
        if found and found[-1].end == start:
            found[-1] = Span(found[-1].start, start + MINUTE)
        else:
            found.append(Span(start, start + MINUTE))
    return found
