"""Writers of native series killed at any moment: acknowledged bars are stored once, and the next start works."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from openbell.market.bars import Bars, merge
from openbell.market.errors import StoreError
from openbell.stores.parquet import bar_files
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.periods import slug
from openbell.stores.port import Span
from tests.counts import runs
from tests.stores.child import Child
from tests.stores.faults import struck
from tests.stores.model import Model, Reader, assert_same
from tests.stores.native_writer import SERIES, parts_of
from tests.stores.samples import EVER, FILE, LIVE, bars
from tests.stores.scenarios import IN_JANUARY, QUARTERS, SCENARIOS, prepare

NATIVE_KILLS = runs(6, soak=200)
SEED = int(os.environ.get("OPENBELL_SEED", "20191220"))


def unfinished(folder: Path) -> set[Path]:
    return set(folder.glob("*/*/*.tmp"))


def test_a_killed_writer_of_native_series_loses_nothing_that_it_acknowledged(disk_path: Path) -> None:
    folder = disk_path / "data"
    chance = random.Random(SEED)
    model, watching = Model(), ParquetStore(folder)
    readers = [Reader(series) for series in SERIES]
    done = 0
    for number in range(NATIVE_KILLS):
        where = f"seed {SEED}, kill {number}"
        with Child("tests.stores.native_writer", folder, SEED, done) as writer:
            said = [writer.line() for _ in range(chance.randrange(1, 6))]
            if chance.random() < 0.7:
                before = unfinished(folder)  # of writers that were killed before
                writer.until(lambda: bool(unfinished(folder) - before), "a file is being written")  # noqa: B023 - called here
            said += writer.kill()
        assert [int(line) for line in said] == list(range(done, done + len(said))), where
        for each in range(done, done + len(said)):
            for part in parts_of(SEED, each):
                model.put(part)
        interrupted = {part.series: part for part in parts_of(SEED, done + len(said))}
        done += len(said) + 1
        with_store = ParquetStore(folder)
        for reader in readers:
            found, acknowledged = with_store.read(reader.series, 0, EVER), model.bars(reader.series)
            assert_same(reader.refresh(watching), found, f"{where}: kept in memory")
            assert np.isin(acknowledged.time, found.time).all(), where
            # Every bar is the acknowledged one or that of the write that was interrupted.
            model.put(found)
            kept = found.take(np.isin(found.time, acknowledged.time))
            new = interrupted.get(reader.series)
            for at, (time, close) in enumerate(zip(kept.time.tolist(), kept.close.tolist(), strict=True)):
                expected = {acknowledged.close[at], *(new.close[new.time == time].tolist() if new is not None else ())}
                assert close in expected, where
            extra = found.time[~np.isin(found.time, acknowledged.time)]
            assert np.isin(extra, new.time if new is not None else []).all(), where
        assert with_store.audit.problems() == [], where
        with_store.close()
    watching.compact(0)
    assert not unfinished(folder)
    watching.close()


@pytest.mark.parametrize("name", ["new periods", "first periods", "days"])
def test_later_writes_change_no_other_bar_of_an_interrupted_one(memory_path: Path, name: str) -> None:
    """Whatever a killed process has stored is read at once, and stays as it is."""
    with Child("tests.stores.faults", memory_path, name) as walk:
        died = []
        while (line := walk.line()) != "done":
            died.append(memory_path / line)
    whole = next(iter(SCENARIOS[name].after.values()))
    halfway = set()
    for folder in died[:-1]:
        where = f"{name}: {(folder / 'died').read_text()}, step {folder.name}"
        store = ParquetStore(folder)
        found = store.read(whole.series, 0, EVER)
        halfway.add(len(found))
        # A bar in the middle first, whose period others may share, then one in the first and one in the last period.
        for at in (len(whole) // 2, 1, len(whole) - 2):
            late = bars(whole.series, whole.time[at : at + 1], 9)
            store.write([late], LIVE)
            found = merge(found, late)
            _assert_stored(store, found, f"{where}, bar {at}")
        store.close()
    assert len(halfway) > 2 or name == "days"


def _assert_stored(store: ParquetStore, expected: Bars, where: str) -> None:
    series = expected.series
    assert_same(store.read(series, 0, EVER), expected, where)
    assert store.count(series, series.timeframe, EVER) == len(expected), where
    assert_same(store.newest(series.timeframe, EVER)[series.instrument], expected.tail(1), where)
    assert store.audit.problems() == [], where


DECEMBER = QUARTERS.take(slice(0, 900))


def _leave_december(store: ParquetStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a file of a new period, and fail before it is recorded."""

    def fail(_files: object) -> None:
        raise StoreError("killed")

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="killed"):
        patch.setattr(bar_files, "sync_folders", fail)
        store.write([DECEMBER], LIVE)


def test_a_write_keeps_the_files_of_one_that_fails_between_its_two_transactions(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(memory_path)
    store, other = ParquetStore(memory_path), ParquetStore(memory_path)
    february = QUARTERS.take(slice(-100, None))
    store.close()  # so that the next connection counts its steps
    with struck(0, lambda _: _leave_december(other, monkeypatch), frozenset({"after COMMIT"})) as steps:
        store.write([february], LIVE)
    assert steps.struck
    expected = merge(DECEMBER, IN_JANUARY, february)
    for some in (store, other):
        _assert_stored(some, expected, "")
        some.close()


def test_a_damaged_file_takes_no_bars_of_an_interrupted_write_with_it(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(memory_path)
    store = ParquetStore(memory_path)
    february = QUARTERS.take(slice(-100, None))
    store.write([february], LIVE)
    reader = Reader(QUARTERS.series)
    assert_same(reader.refresh(store), merge(IN_JANUARY, february))
    _leave_december(store, monkeypatch)
    (january,) = memory_path.glob("stocks/15m/AAPL_2020-01.*.parquet")
    january.write_bytes(b"damaged")
    for _ in range(2):
        assert_same(store.read(QUARTERS.series, 0, EVER), merge(DECEMBER, february))
        assert_same(reader.refresh(store), merge(DECEMBER, february))
    store.write([IN_JANUARY], LIVE)
    assert_same(reader.refresh(store), merge(DECEMBER, IN_JANUARY, february))
    store.close()


def test_bars_of_an_interrupted_write_are_set_aside_with_those_of_their_source(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(memory_path)
    store = ParquetStore(memory_path)
    _leave_december(store, monkeypatch)
    store.set_aside(QUARTERS.instrument, LIVE, "adjusted in another way")
    store.write([IN_JANUARY], LIVE)
    assert_same(store.read(QUARTERS.series, 0, EVER), IN_JANUARY)
    store.close()


def test_only_the_bars_of_an_interrupted_write_that_an_import_has_too_are_replaced(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(memory_path)
    store = ParquetStore(memory_path)
    _leave_december(store, monkeypatch)
    imported = bars(QUARTERS.series, IN_JANUARY.time, 5)
    store.write([imported], FILE, replace=True)
    assert_same(store.read(QUARTERS.series, 0, EVER), merge(DECEMBER, imported))
    store.write([QUARTERS], FILE, replace=True)
    _assert_stored(store, QUARTERS, "")
    assert store.sources.of(QUARTERS.series, Span(0, EVER)) == {FILE}
    assert {path.name.split(".")[1] for path in memory_path.glob("stocks/15m/AAPL_*")} == {slug(FILE)}
    store.close()
