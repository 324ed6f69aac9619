"""The Parquet store: the contract of every store, and the contract's paths."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.bars import merge, resample
from openbell.market.errors import SourceConflict, StoreError
from openbell.market.timeframes import Timeframe
from openbell.stores import buffered
from openbell.stores.buffered import BULK
from openbell.stores.parquet import bar_files
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.periods import month_of
from openbell.stores.port import BarStore, Span
from tests.stores.contract import SYMBOLS, BarStoreContract, Step, minutes, step
from tests.stores.model import Model, Reader, assert_same
from tests.stores.native_contract import NativeContract
from tests.stores.samples import (
    DAY,
    END,
    EVER,
    FILE,
    LIVE,
    MINUTE,
    NOVEMBER,
    OCTOBER,
    SEPTEMBER,
    START,
    bars,
    bits,
    minutes_of,
    run,
    whole,
)

PATHS = {
    "AAPL": "stocks/1min/AAPL_2025-09.parquet",
    "BRK.B": "stocks/1min/BRK.B_2025-09.parquet",
    "BTC/USD": "crypto/1min/BTC_USD_2025-09.parquet",
    "ETH/USDT": "crypto/1min/ETH_USDT_2025-09.parquet",
    "EUR/USD": "forex/1min/EUR_USD_2025-09.parquet",
}


def files(folder: Path) -> set[str]:
    """The month files and all other files beside them."""
    return {path.relative_to(folder).as_posix() for path in folder.glob("*/1min/*")}


class TestParquetStore(BarStoreContract):
    def open_store(self, folder: Path) -> ParquetStore:
        return ParquetStore(folder)

    @pytest.mark.parametrize("symbol", PATHS)
    @pytest.mark.parametrize("count", [1, BULK])
    def test_a_month_file_has_the_contracts_path(self, folder: Path, symbol: str, count: int) -> None:
        store = self.open_store(folder)
        store.write([run(symbol, SEPTEMBER, count)], LIVE)
        store.compact(EVER)
        store.close()
        assert files(folder) == {PATHS[symbol]}
        assert self.open_store(folder).stored() == [minutes_of(symbol)]

    def test_each_utc_month_has_its_file(self, folder: Path) -> None:
        store = self.open_store(folder)
        offered = run("BTC/USD", OCTOBER - MINUTE, 31 * 1440 + 2)
        store.write([offered], LIVE)
        assert files(folder) == {f"crypto/1min/BTC_USD_2025-{month}.parquet" for month in ("09", "10", "11")}
        assert_same(store.read(offered.series, 0, EVER), offered)
        assert len(store.read(offered.series, OCTOBER, NOVEMBER)) == 31 * 1440

    def test_any_read_of_a_file_with_many_row_groups_is_exact(self, folder: Path) -> None:
        store = self.open_store(folder)
        whole = run("BTC/USD", SEPTEMBER, 23_000)
        store.write([whole], LIVE)
        chance = random.Random(7)
        for number in range(150):
            edge = chance.choice([0, 5000, 10_000, 15_000, 20_000, 23_000]) + chance.choice([-1, 0, 1, -700, 700])
            end, count = SEPTEMBER + edge * MINUTE, chance.choice([0, 1, 600, 4999, 5001, 12_000, 30_000])
            start, where = end - chance.choice([0, 1, 5000, 11_000]) * MINUTE, f"query {number}: {count} before {edge}"
            assert_same(store.tail(whole.series, count, end), whole.between(0, end).tail(count), where)
            assert_same(store.read(whole.series, start, end), whole.between(start, end), where)
        store.close()

    def test_other_tools_can_read_a_file(self, folder: Path) -> None:
        offered = run("AAPL", SEPTEMBER, 6000)
        self.open_store(folder).write([offered], LIVE)
        table = pq.read_table(folder / PATHS["AAPL"])
        assert table.column_names == ["timestamp", "open", "high", "low", "close", "volume"]
        assert table.schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
        assert table["timestamp"][0].as_py().isoformat() == "2025-09-01T00:00:00+00:00"
        assert np.array_equal(table["timestamp"].to_numpy().astype("datetime64[s]").astype(int), offered.time)
        assert [table[name].to_numpy().tobytes() for name in table.column_names[1:]] == bits(offered)[1:]
        told = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        assert told["openbell.symbol"] == "AAPL"
        assert (told["openbell.origin"], told["openbell.feed"], told["openbell.adjustment"]) == (
            "live",
            "alpaca",
            "raw",
        )

    def test_small_writes_wait_in_the_buffer_and_large_ones_do_not(self, folder: Path) -> None:
        store = self.open_store(folder)
        store.write([run("AAPL", SEPTEMBER, BULK - 1)], LIVE)
        assert files(folder) == set()
        store.write([run("BTC/USD", SEPTEMBER, BULK)], LIVE)
        assert files(folder) == {PATHS["BTC/USD"]}
        assert store.compact(SEPTEMBER + 100 * MINUTE) == 100
        assert store.compact(EVER) == BULK - 101
        assert files(folder) == {PATHS["AAPL"], PATHS["BTC/USD"]}

    def test_writing_the_same_bars_again_is_not_a_change(self, folder: Path) -> None:
        """A restarted collector writes the last minutes again, which must not invalidate the readers' caches."""
        store = self.open_store(folder)
        offered = run("AAPL", SEPTEMBER, 50)
        store.write([offered], LIVE)
        version = store.versions.of(offered.series)
        store.write([offered], LIVE)
        assert store.versions.changed_since(offered.series, version) is None
        store.write([run("AAPL", SEPTEMBER + 30 * MINUTE, 40)], LIVE)
        assert store.versions.changed_since(offered.series, version) == SEPTEMBER + 50 * MINUTE
        store.close()

    def test_a_file_created_in_the_same_tick_is_seen(self, memory_path: Path) -> None:
        for number in range(150):
            series = minutes_of(f"{'ABCDEFGHIJ'[number // 15]}{'ABCDEFGHIJKLMNO'[number % 15]}")
            for count, start in enumerate((SEPTEMBER, OCTOBER, NOVEMBER), 1):
                file = bar_files.bar_file(memory_path, series, month_of(start))
                bar_files.write(file, run(series, start, 1), LIVE)
                assert len(bar_files.existing(memory_path, series)) == count

    def test_a_large_write_replaces_buffered_bars(self, folder: Path) -> None:
        store = self.open_store(folder)
        small, large = run("AAPL", OCTOBER - 100 * MINUTE, 5000, 2), run("AAPL", OCTOBER - 50 * MINUTE, BULK, 3)
        for first in range(0, 5000, 1000):
            store.write([small.take(slice(first, first + 1000))], LIVE)
        store.write([large], LIVE)
        assert_same(store.read(small.series, 0, EVER), merge(small, large))
        assert store.compact(EVER) == 5000 - BULK
        assert_same(store.read(small.series, 0, EVER), merge(small, large))

    def test_bar_files_name_their_source(self, folder: Path) -> None:
        store = self.open_store(folder)
        store.write([run("AAPL", SEPTEMBER, BULK)], LIVE)
        store.close()
        for path in folder.glob("buffer.sqlite*"):
            path.unlink()
        again = self.open_store(folder)
        for count in (1, BULK):
            with pytest.raises(SourceConflict, match="live/alpaca/raw"):
                again.write([run("AAPL", SEPTEMBER, count)], FILE)
        again.write([run("AAPL", SEPTEMBER, 1, 2)], LIVE)
        assert len(again.read(minutes_of("AAPL"), 0, EVER)) == BULK

    def test_temporary_files_of_killed_writers_are_ignored_and_removed(self, folder: Path) -> None:
        store = self.open_store(folder)
        offered = run("AAPL", SEPTEMBER, BULK)
        store.write([offered], LIVE)
        path = folder / PATHS["AAPL"]
        for left in (path.with_suffix(".4711.tmp"), path.with_name("MSFT_2025-09.12.tmp")):
            left.write_bytes(path.read_bytes()[:5000])
        assert_same(store.read(offered.series, 0, EVER), offered)
        assert store.stored() == [offered.series]
        store.compact(EVER)
        assert files(folder) == {PATHS["AAPL"]}

    def test_foreign_files_in_the_folder_are_left_alone(self, folder: Path) -> None:
        store = self.open_store(folder)
        store.write([run("AAPL", SEPTEMBER, BULK)], LIVE)
        place = folder / "stocks/1min"
        for name in ("notes.txt", "lower_2025-09.parquet.bak", "BTC_USD_2025-09.parquet", "_2025-09.parquet"):
            (place / name).write_text("mine")
        assert store.stored() == [minutes_of("AAPL")]
        store.compact(EVER)
        assert store.audit.problems() == []
        assert (place / "notes.txt").read_text() == "mine"

    def test_files_that_vanish_while_they_are_counted_do_not_count(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = self.open_store(folder)
        monkeypatch.setattr(Path, "rglob", lambda self, _pattern: [self / "buffer.sqlite", self / "gone.tmp"])
        assert store.size() == (folder / "buffer.sqlite").stat().st_size

    def test_many_threads_may_share_one_store(self, folder: Path) -> None:
        store = self.open_store(folder)

        def work(number: int) -> None:
            own = run(SYMBOLS[number % 4], OCTOBER + (number * 5000 - 9000) * MINUTE, BULK, number)
            for first in range(0, BULK, 400):
                store.write([own.take(slice(first, first + 400))], LIVE)
                store.compact(int(own.time[first]))
                got = store.read(own.series, int(own.time[0]), int(own.time[-1]) + 1)
                assert_same(got, own.take(slice(0, first + 400)))
            store.write([own], LIVE)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert store.stored() == sorted(map(minutes_of, SYMBOLS))
        assert sum(len(store.read(minutes_of(symbol), 0, EVER)) for symbol in SYMBOLS) == 8 * BULK
        store.close()

    def test_a_folder_that_cannot_be_created_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("a file")
        with pytest.raises(StoreError, match="cannot use"):
            self.open_store(tmp_path / "data")

    def test_conflicts_are_reported_before_anything_is_written(self, folder: Path) -> None:
        store = self.open_store(folder)
        store.write([run("AAPL", OCTOBER - 3 * MINUTE, 3)], LIVE)
        store.write([run("AAPL", OCTOBER, BULK)], LIVE)
        both = run("AAPL", OCTOBER - MINUTE, 2)
        assert [
            store.sources.of(minutes_of("AAPL"), Span(month, month + DAY)) for month in (SEPTEMBER, OCTOBER, NOVEMBER)
        ] == [{LIVE}, {LIVE}, set()]
        assert store.sources.conflicts(both, FILE) == ["2025-09 (live/alpaca/raw)", "2025-10 (live/alpaca/raw)"]
        assert store.sources.conflicts(both, LIVE) == store.sources.conflicts(run("MSFT", SEPTEMBER, 2), FILE) == []
        store.write([run("MSFT", SEPTEMBER, 2)], LIVE)
        (folder / "stocks/1min/AAPL_2025-10.parquet").write_bytes(b"damaged")
        store.close()
        for path in folder.glob("buffer.sqlite*"):
            path.unlink()
        again = self.open_store(folder)
        assert again.sources.conflicts(both, FILE) == []
        assert again.sources.of(minutes_of("AAPL"), Span(OCTOBER, NOVEMBER)) == set()

    # Replacing

    @pytest.mark.parametrize("count", [3, BULK])
    def test_replacing_drops_the_bars_of_other_sources_in_its_span_only(self, folder: Path, count: int) -> None:
        store = self.open_store(folder)
        september, october, first = (
            run("AAPL", SEPTEMBER, 50),
            run("AAPL", OCTOBER + DAY, BULK),
            run("AAPL", OCTOBER, 7),
        )
        store.write([september], LIVE, covers=Span(SEPTEMBER, NOVEMBER))
        store.write([october], LIVE)
        store.write([first], LIVE)
        new = run("AAPL", OCTOBER + DAY + 100 * MINUTE, count, 2)
        store.write([new], FILE, replace=True)
        around = [october.between(0, int(new.time[0])), october.between(int(new.time[-1]) + 1, EVER)]
        assert_same(store.read(new.series, 0, EVER), merge(september, first, *around, new))
        span = Span(int(new.time[0]), int(new.time[-1]) + 1)
        assert store.gaps(new.series, Span(SEPTEMBER, NOVEMBER)) == [span]
        assert store.sources.of(new.series, span) == {FILE}
        store.write([run("AAPL", int(new.time[0]), 2, 3)], FILE)
        for source, start in ((LIVE, int(new.time[0])), (FILE, OCTOBER)):
            with pytest.raises(SourceConflict):
                store.write([run("AAPL", start, 2, 3)], source)

    def test_a_month_that_is_replaced_as_a_whole_keeps_the_name_of_its_file(self, folder: Path) -> None:
        store = self.open_store(folder)
        store.write([run("AAPL", OCTOBER + DAY, 5)], LIVE)
        store.write([run("AAPL", OCTOBER + DAY + 9 * MINUTE, BULK)], LIVE)
        new = run("AAPL", OCTOBER, 2 * BULK, 2)
        store.write([new], FILE, replace=True)
        assert [path.name for path in folder.rglob("*.parquet")] == ["AAPL_2025-10.parquet"]
        assert_same(store.read(new.series, 0, EVER), new)
        store.write([run("AAPL", OCTOBER + 9 * DAY, 3)], LIVE)
        store.compact(EVER)
        assert {path.name for path in folder.rglob("*.parquet")} == {
            "AAPL_2025-10.parquet",
            "AAPL_2025-10.alpaca-raw.parquet",
        }

    def test_replacing_ones_own_month_merges(self, folder: Path) -> None:
        store = self.open_store(folder)
        old, new = run("AAPL", SEPTEMBER, 30), run("AAPL", SEPTEMBER + 20 * MINUTE, 30, 2)
        store.write([old], LIVE)
        store.write([new], LIVE, replace=True)
        assert_same(store.read(old.series, 0, EVER), merge(old, new))

    @settings(deadline=None, max_examples=80)
    @given(data=st.data())
    def test_readers_notice_every_change_and_replacement(self, data: st.DataObject) -> None:
        """As in the contract, with large writes of six bars and two sources, so that all cases overlap."""
        replacing = st.tuples(st.sampled_from(["replace", "foreign"]), st.just("AAPL"), minutes, st.integers(1, 9))
        steps = data.draw(st.lists(step(6) | replacing, min_size=3, max_size=25))
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
            patch.setattr(buffered, "BULK", 6)
            _follow(self.open_store(Path(folder)), steps)


def _follow(store: ParquetStore, steps: list[Step]) -> None:
    model = Model()
    readers = [Reader(minutes_of(symbol)) for symbol in ("AAPL", "BRK.B") for _ in range(2)]
    for number, (kind, symbol, start, count) in enumerate(steps):
        # One bar in two hours: parts often overlap, and often span two months.
        times = start // 7200 * 7200 + 7200 * np.arange(count)
        offered = bars(symbol, times, number)
        if kind == "compact":
            store.compact(start)
        elif kind == "refresh":
            for reader in readers[count % 2 :: 2]:
                assert_same(reader.refresh(store), model.bars(reader.series), f"step {number}")
        elif kind in {"write", "foreign", "replace"}:
            source, replace = LIVE if kind == "write" else FILE, kind == "replace"
            try:
                store.write([offered], source, replace=replace)
                stored = True
            except SourceConflict:
                stored = False
            assert model.write(offered, source, replace=replace, whole=count < 6) is stored, f"step {number}"
    for reader in readers:
        assert_same(store.read(reader.series, 0, EVER), model.bars(reader.series), "in the end")
        assert_same(reader.refresh(store), model.bars(reader.series), "in the end")
    store.close()


class TestNativeSeries(NativeContract):
    def open_store(self, folder: Path) -> BarStore:
        return ParquetStore(folder)

    def test_files_are_beside_the_minutes_and_found_without_the_buffer(self, folder: Path) -> None:
        offered = whole("BTC/USD", Timeframe.H4)
        with closing(ParquetStore(folder)) as store:
            store.write([offered], LIVE)
        found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))
        assert found == [f"crypto/4h/BTC_USD_{year}.alpaca-raw.parquet" for year in (2019, 2020)]
        for path in folder.glob("buffer.sqlite*"):
            path.unlink()
        with closing(ParquetStore(folder)) as store:
            assert store.timeframes(offered.instrument) == [Timeframe.H4]
            assert_same(store.read(offered.series, 0, EVER), offered)

    def test_a_damaged_file_is_set_aside_and_its_bars_are_a_gap(self, folder: Path) -> None:
        offered = whole("AAPL", Timeframe.D1)
        with closing(ParquetStore(folder)) as store:
            store.write([offered], LIVE, covers=Span(START, END))
        (path,) = folder.rglob("AAPL*.parquet")
        path.write_bytes(path.read_bytes()[:-9] + b"damaged!!")
        with closing(ParquetStore(folder)) as store:
            assert len(store.read(offered.series, 0, EVER)) == 0
            assert store.gaps(offered.series, Span(START, END)) == [Span(START, END)]
            assert [problem.reason for problem in store.audit.problems()] != []
            store.write([offered], LIVE, covers=Span(START, END))
            assert_same(store.read(offered.series, 0, EVER), offered)

    def test_a_removed_file_is_a_gap(self, folder: Path) -> None:
        offered = whole("AAPL", Timeframe.D1)
        with closing(ParquetStore(folder)) as store:
            store.write([offered], LIVE, covers=Span(START, END))
            (path,) = folder.rglob("AAPL*.parquet")
            path.unlink()
            assert store.gaps(offered.series, Span(START, END)) == [Span(START, END)]
            assert len(store.read(offered.series, 0, EVER)) == 0


def test_days_that_cross_the_end_of_a_month_are_counted_once(tmp_path: Path) -> None:
    """The day of 1 October begins in September, and files hold minutes of one UTC month each."""
    minutes = run(minutes_of("EUR/USD"), OCTOBER - 3 * DAY, 6 * 1440)
    with closing(ParquetStore(tmp_path)) as store:
        store.write([minutes], LIVE)
        for timeframe in (Timeframe.D1, Timeframe.D2, Timeframe.W1, Timeframe.MONTH):
            for end in range(OCTOBER - 2 * DAY, OCTOBER + 3 * DAY, 5 * 3600 + 7 * MINUTE):
                expected = resample(minutes, timeframe, end)
                assert store.count(minutes.series, timeframe, end) == len(expected)
                assert_same(store.resampled(minutes.series, timeframe, 10, end), expected)
