"""Processes killed at any moment: acknowledged bars are stored once and correctly, and the next start works."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import sqlite3
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pytest

from openbell.feeds.sim.bars import minute_bars
from openbell.market.bars import Bars, merge
from openbell.market.clock import iso
from openbell.market.errors import StoreError
from openbell.market.series import Series
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.counts import SOAK, runs
from tests.stores.child import Child
from tests.stores.faults import ERRORS, struck
from tests.stores.model import Model, Reader, assert_same
from tests.stores.samples import DAY, END, EVER, MINUTE, START, at, minutes_of
from tests.stores.scenarios import AAPL, BESIDE, COVERED, DAYS, SCENARIOS, Scenario, prepare
from tests.stores.writer import REPLACED, SYMBOLS, Operation, operation

KILLS = runs(8, soak=220)
COLLECTOR_KILLS = runs(4, soak=200)
SEED = int(os.environ.get("OPENBELL_SEED", "20250901"))


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """On a disk, because these tests wait until a file is being written."""
    return disk_path


def leftovers(folder: Path) -> list[Path]:
    """Temporary files of killed writers."""
    return sorted(folder.glob("*/1min/*.tmp"))


# --- killed while writing -------------------------------------------------------------------------------------------


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    chance = random.Random(SEED)
    model = Model()
    watching = ParquetStore(folder)
    readers = [Reader(minutes_of(symbol)) for symbol in (*SYMBOLS, REPLACED)]
    done = 0
    for round_number in range(KILLS):
        where = f"seed {SEED}, kill {round_number}"
        with Child("tests.stores.writer", folder, SEED, done) as writer:
            said = [writer.line() for _ in range(chance.randrange(1, 15))]
            _wait_for_a_moment(
                writer, folder, chance.choice(["at once", "while a file is written", "after a file is written"])
            )
            said += writer.kill()
        assert [int(line) for line in said] == list(range(done, done + len(said))), where
        for number in range(done, done + len(said)):
            _apply(model, operation(SEED, number))
        interrupted = operation(SEED, done + len(said))
        done += len(said) + 1

        store = ParquetStore(folder)
        _check(store, model, interrupted, where)
        for reader in readers:
            assert_same(reader.refresh(watching), store.read(reader.series, 0, EVER), f"{where}: kept in memory")
        assert store.audit.problems() == [], where
        store.close()
    watching.compact(0)
    assert leftovers(folder) == []
    watching.close()


def _wait_for_a_moment(writer: Child, folder: Path, moment: str) -> None:
    if moment == "at once":
        return
    before = set(leftovers(folder))
    writer.until(lambda: bool(set(leftovers(folder)) - before), "a file is being written")
    if moment == "after a file is written":
        writer.until(lambda: not set(leftovers(folder)) - before, "the file is in its place")


def _apply(model: Model, done: Operation) -> None:
    for part in done.parts:
        assert model.write(part, done.source, replace=done.kind == "replace")


def _check(store: ParquetStore, model: Model, interrupted: Operation, where: str) -> None:
    """The stored bars are those that were acknowledged or, for the interrupted operation, those that it wrote.

    The model is updated with the stored bars, which must be kept from now on.
    """
    after = Model()
    after.rows = {series: dict(rows) for series, rows in model.rows.items()}
    after.sources = {series: dict(sources) for series, sources in model.sources.items()}
    _apply(after, interrupted)
    instruments = [minutes_of(symbol) for symbol in (*SYMBOLS, REPLACED)]
    found = {series: store.read(series, 0, EVER) for series in instruments}
    if interrupted.kind == "large":
        for series in instruments:
            _assert_between(found[series], model.bars(series), after.bars(series), where)
    else:
        happened = any(_same(found[part.series], after.bars(part.series)) for part in interrupted.parts)
        for series in instruments:
            assert_same(found[series], (after if happened else model).bars(series), where)
        if happened:
            model.sources = after.sources
    for series in instruments:
        assert_same(store.tail(series, 10_000, EVER), found[series], where)
        model.rows[series] = {}
        model.put(found[series])
    assert store.stored() == sorted(i for i in instruments if len(found[i])), where


def _same(a: Bars, b: Bars) -> bool:
    return len(a) == len(b) and a.same_as(b)


def _assert_between(got: Bars, before: Bars, after: Bars, where: str) -> None:
    """Each bar has its old or its new value; no bar is missing or has another value."""
    assert np.isin(before.time, got.time).all(), where
    assert np.isin(got.time, after.time).all(), where
    new = got.take(_rows_in(got, after) & ~_rows_in(got, before))
    assert_same(got, merge(before, new), where)


def _rows_in(some: Bars, others: Bars) -> npt.NDArray[np.bool_]:
    """A mask of the bars that are among the others with the same values."""
    known = set(zip(*(column.tolist() for column in others.columns()), strict=True))
    return np.array([row in known for row in zip(*(column.tolist() for column in some.columns()), strict=True)], bool)


# --- killed while collecting ------------------------------------------------------------------------------------------

WATCHED = ("SPY", "BBAI", "BTC/USD", "EUR/USD")
SOON = 12.0
"""Seconds in which a collector must start: less than the rest of its killed predecessor's lease."""


def _collector(home: Path, clock: int) -> Child:
    """`openbell collect` on a simulated market whose clock starts at a time."""
    env = {"HOME": str(home), "FEED": "sim", "AS_OF": iso(clock), "REPLAY_SPEED": "3000", "SIM_SEED": "7"}
    return Child("openbell.cli.entry", "collect", env={f"OPENBELL_{name}": value for name, value in env.items()})


def test_a_killed_collector_loses_and_doubles_nothing(tmp_path: Path) -> None:
    (tmp_path / "watchlist.txt").write_text("\n".join(WATCHED))
    folder = tmp_path / "simulated/data"
    chance = random.Random(SEED)
    begin = clock = through = at("2026-01-05T15:00:00Z")
    for _ in range(2):
        with _collector(tmp_path, begin) as collector:
            _wait_for_a_moment(collector, folder, "while a file is written")  # it fetches the history
    for number in range(COLLECTOR_KILLS):
        where = f"seed {SEED}, kill {number}, from {iso(clock)}"
        with _collector(tmp_path, clock) as collector:
            said = [collector.line(SOON)]
            said += [collector.line() for _ in range(chance.randrange(40))]
            said += collector.kill()
        through = max(through, *(at(json.loads(line)["through"]) for line in said))
        _check_collected(folder, begin, through, where)
        # The next one starts a little later, as after a restart; or earlier, with a clock that was set back; or at midnight,
        # when the day's bars are moved to their files.
        midnight = (through // DAY + 1) * DAY - 30 * MINUTE
        clock = chance.choice([through, through + 7 * MINUTE, through - 20 * MINUTE, midnight])


def _check_collected(folder: Path, begin: int, through: int, where: str) -> None:
    store = ParquetStore(folder)
    for symbol in WATCHED:
        series = minutes_of(symbol)
        got = store.read(series, 0, EVER)
        assert got.time[0] <= begin - DAY, where
        assert_same(
            got, minute_bars(series.instrument, 7, int(got.time[0]), max(through, int(got.time[-1]) + 1)), where
        )
        assert store.gaps(series, Span(begin - DAY, through)) == [], where
    assert store.audit.problems() == [], where
    store.close()


# --- at every step --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_store_recovers_after_dying_at_any_step(memory_path: Path, name: str) -> None:
    with Child("tests.stores.faults", memory_path, name) as walk:
        folders = []
        while (line := walk.line()) != "done":
            folders.append(memory_path / line)
        assert walk.wait() == 0
    *died, whole = folders
    assert died
    memory = _remember(memory_path / "base", SCENARIOS[name])
    for number, folder in enumerate(died):
        where = f"{name}: {(folder / 'died').read_text()}, step {folder.name}"
        store = ParquetStore(folder)
        _check_halfway(store, SCENARIOS[name], memory, where)
        if SOAK or number % 4 == 0:
            _check_repeated(store, folder, SCENARIOS[name], where)
        store.close()
    assert not (whole / "died").exists()
    store = ParquetStore(whole)
    _check_repeated(store, whole, SCENARIOS[name], f"{name}: undisturbed")
    store.close()


def _strike(step: str) -> NoReturn:
    if "BEGIN" in step or "COMMIT" in step:
        raise sqlite3.OperationalError("disk I/O error")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_store_recovers_after_an_error_at_any_step(memory_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]
    base = memory_path / "base"
    prepare(base)
    scenario.damage(base)
    memory = _remember(base, scenario)
    number, more = 0, True
    while more:
        folder = shutil.copytree(base, memory_path / str(number))
        store = ParquetStore(folder)
        with struck(number, _strike, ERRORS) as steps:
            try:
                store.close()  # so that the next connection counts its steps
                scenario.operate(store)
            except StoreError:
                assert steps.struck
        where = f"{name}: {steps.struck}, step {number}"
        _check_halfway(store, scenario, memory, where)
        if SOAK or number % 4 == 2:  # the others after the process has died there
            _check_repeated(store, folder, scenario, where)
        store.close()
        number, more = number + 1, bool(steps.struck)
    assert number > 3


Memory = dict[Series, Reader]


def _remember(base: Path, scenario: Scenario) -> Memory:
    """The bars that other processes had read and cached before."""
    copy = shutil.copytree(base, base.with_name("copy"))
    store = ParquetStore(copy)
    readers = {series: Reader(series) for series in scenario.before}
    for series, reader in readers.items():
        reader.version = store.versions.of(series)
        reader.kept = scenario.before[series]
    store.close()
    return readers


def _check_halfway(store: ParquetStore, scenario: Scenario, memory: Memory, where: str) -> None:
    after = {**scenario.before, **scenario.after}
    covered = scenario.covers is not None and store.gaps(AAPL, scenario.covers) == []
    for series, before in scenario.before.items():
        got = store.read(series, 0, EVER)
        if scenario.whole:
            right = [some for some in (before, after[series]) if _same(got, some)]
            assert right, f"{where}: {series} has {len(got)} bars"
        else:
            _assert_between(got, before, after[series], where)
        if covered:
            assert_same(got, after[series], f"{where}: covered, so it must be there")
        reader = Reader(series)
        reader.kept, reader.version = memory[series].kept, memory[series].version
        assert_same(reader.refresh(store), got, f"{where}: a reader that kept its bars")
    _check_coverage(store, scenario, where)


def _check_coverage(store: ParquetStore, scenario: Scenario, where: str) -> None:
    """Only the month that was lost is a gap, and it is reported; days are covered by the write that stored them."""
    if DAYS.series in scenario.after:
        old = _same(store.read(DAYS.series, 0, EVER), DAYS)
        assert store.gaps(DAYS.series, Span(START, END)) == ([] if old else scenario.uncovered), where
    gaps = store.gaps(AAPL, COVERED)
    if scenario.lost is None:
        assert gaps in ([], [scenario.replaced]), where
        assert store.audit.problems() == [], where
    else:
        beside = Span(int(BESIDE.time[0]), int(BESIDE.time[-1]) + 60)
        lost = [Span(scenario.lost.start, beside.start), Span(beside.end, scenario.lost.end)]
        assert gaps == lost, where
        assert any(Path(problem.path).exists() for problem in store.audit.problems()), where


def _check_repeated(store: ParquetStore, folder: Path, scenario: Scenario, where: str) -> None:
    """Repeating the operation gives the result of an uninterrupted one."""
    scenario.operate(store)
    after = {**scenario.before, **scenario.after}
    for again in (store, ParquetStore(folder)):
        for series, right in after.items():
            assert_same(again.read(series, 0, EVER), right, f"{where}: repeated")
        assert again.gaps(AAPL, scenario.covers or Span(0, 0)) == [], where
        again.compact(EVER)
        assert leftovers(folder) == [], where
        for series, right in after.items():
            assert_same(again.read(series, 0, EVER), right, f"{where}: repeated and compacted")
        again.close()
