"""Writers of native series killed at any moment: acknowledged bars are stored once, and the next start works."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np

from openbell.stores.parquet import ParquetStore
from tests.counts import runs
from tests.stores.child import Child
from tests.stores.model import Model, Reader, assert_same
from tests.stores.native_writer import SERIES, parts_of
from tests.stores.samples import EVER

NATIVE_KILLS = runs(12, soak=200)
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
                writer.until(lambda: bool(unfinished(folder)), "a file is being written")
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
        assert with_store.problems() == [], where
        with_store.close()
    watching.compact(0)
    assert not unfinished(folder)
    watching.close()
