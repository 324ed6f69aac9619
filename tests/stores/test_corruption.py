"""Damaged files: a read returns correct bars or none, damaged files are set aside and reported, the rest still works."""

from __future__ import annotations

import errno
import logging
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from openbell.market.bars import Bars, empty_of, merge
from openbell.market.errors import LeaseLost, SourceConflict, StoreError
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.buffered import BULK
from openbell.stores.parquet import bar_files
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.stores.contract import spoilt
from tests.stores.model import Reader, assert_same
from tests.stores.samples import (
    DAY,
    EVER,
    FILE,
    LIVE,
    MINUTE,
    NOVEMBER,
    OCTOBER,
    SEPTEMBER,
    bars,
    minutes_of,
    run,
    whole,
)

AAPL, MSFT = minutes_of("AAPL"), minutes_of("MSFT")
WHOLE = Span(SEPTEMBER, NOVEMBER)
SEPTEMBER_BARS = run("AAPL", SEPTEMBER + DAY, 12_000)
OCTOBER_BARS = run("AAPL", OCTOBER, BULK)
OTHER_BARS = run("MSFT", SEPTEMBER, BULK)

Damage = Callable[[Path], None]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Silence the log: each file that is set aside is logged as an error, hundreds of times here."""
    caplog.set_level(logging.CRITICAL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(folder: Path) -> Iterator[ParquetStore]:
    """Two months of one symbol and one of another, all in files and covered."""
    store = ParquetStore(folder)
    store.write([SEPTEMBER_BARS, OTHER_BARS], LIVE, covers=WHOLE)
    store.write([OCTOBER_BARS], LIVE)
    yield store
    store.close()


@pytest.fixture
def path(folder: Path) -> Path:
    """The file that gets damaged."""
    return folder / "stocks/1min/AAPL_2025-09.parquet"


def assert_set_aside(store: ParquetStore, path: Path, *, left: Bars | None = None) -> None:
    """One month is removed, reported and a gap; everything else is unchanged, and the month can be written again."""
    left = empty_of(AAPL) if left is None else left
    assert_same(store.read(AAPL, 0, EVER), merge(left, OCTOBER_BARS))
    assert_same(store.tail(AAPL, 20_000, EVER), merge(left, OCTOBER_BARS))
    assert_same(store.read(MSFT, 0, EVER), OTHER_BARS)
    problem = store.audit.problems()[-1]
    assert Path(problem.path).name.startswith(f"{path.name}.corrupt-")
    assert Path(problem.path).exists()
    assert problem.reason
    assert not path.exists() or len(left)
    assert store.gaps(AAPL, WHOLE) == [Span(SEPTEMBER, OCTOBER)]
    assert store.gaps(MSFT, WHOLE) == []
    assert store.stored() == [AAPL, MSFT]
    refilled = merge(SEPTEMBER_BARS, left)
    store.write([refilled], LIVE, covers=Span(SEPTEMBER, OCTOBER))
    assert_same(store.read(AAPL, 0, EVER), merge(refilled, OCTOBER_BARS))
    assert store.gaps(AAPL, WHOLE) == []


def _cut(tenths: int) -> Damage:
    def damage(path: Path) -> None:
        os.truncate(path, path.stat().st_size * tenths // 10)

    return damage


def _shorten(count: int) -> Damage:
    return lambda path: os.truncate(path, path.stat().st_size - count)


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0" * 100)


def _garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(5000))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _full_folder(path: Path) -> None:
    _folder(path)
    (path / "something").write_text("inside")


def _other_symbol(path: Path) -> None:
    path.write_bytes(path.with_name("MSFT_2025-09.parquet").read_bytes())


def _other_month(path: Path) -> None:
    path.write_bytes(path.with_name("AAPL_2025-10.parquet").read_bytes())


def _without_metadata(path: Path) -> None:
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)


def _rewritten(path: Path) -> None:
    """The same rows with one price changed, by another tool that keeps all metadata."""
    table = pq.read_table(path)
    close = table["close"].to_numpy().copy()
    close[77] *= 1.0001
    pq.write_table(table.set_column(4, table.schema.field("close"), [close]), path)


def _bad_bars(how: str) -> Damage:
    def damage(path: Path) -> None:
        bad = spoilt(SEPTEMBER_BARS, how)
        bar_files.write(bar_files.BarFile("2025-09", path, AAPL), bad, LIVE)

    return damage


DAMAGES: dict[str, Damage] = {
    **{f"cut at {tenths}/10": _cut(tenths) for tenths in range(10)},
    **{f"{count} bytes short": _shorten(count) for count in (1, 4, 8, 9)},
    "longer": _append,
    "garbage": _garbage,
    "a folder": _folder,
    "a full folder": _full_folder,
    "another symbol's file": _other_symbol,
    "another month's file": _other_month,
    "without metadata": _without_metadata,
    "changed by another tool": _rewritten,
    **{f"bars {how}": _bad_bars(how) for how in ("unsorted", "double", "high below low", "nan", "negative price")},
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("opened", ["still open", "reopened"])
def test_a_damaged_file_is_set_aside_when_it_is_read(
    store: ParquetStore, folder: Path, path: Path, damage: str, opened: str
) -> None:
    DAMAGES[damage](path)
    if opened == "reopened":
        store.close()
        store = ParquetStore(folder)
    assert_set_aside(store, path)
    assert len(store.audit.problems()) == 1
    store.close()


FEW = ["cut at 0/10", "cut at 9/10", "a full folder", "another symbol's file", "without metadata", "bars nan"]


@pytest.mark.parametrize("damage", FEW)
@pytest.mark.parametrize("forgotten", [False, True], ids=["marked", "unmarked"])
@pytest.mark.parametrize("how", ["small", "large", "compact", "replace"])
def test_a_damaged_file_is_set_aside_when_it_is_written_to(
    store: ParquetStore, path: Path, damage: str, how: str, forgotten: bool
) -> None:
    if forgotten:
        with store._buffer.transaction() as db:
            db.execute("DELETE FROM months")
    new = run("AAPL", SEPTEMBER, BULK if how == "large" else 5, 2)
    if how == "compact":
        store.write([new], LIVE)
    DAMAGES[damage](path)
    if how == "compact":
        store.compact(EVER)
    else:
        store.write([new], LIVE, replace=how == "replace")
    assert_set_aside(store, path, left=new)


def test_changed_since_reports_a_month_that_was_set_aside(store: ParquetStore, path: Path) -> None:
    reader = Reader(AAPL)
    reader.refresh(store)
    _garbage(path)
    assert_same(store.read(AAPL, SEPTEMBER, OCTOBER), empty_of(AAPL))
    assert_same(reader.refresh(store), OCTOBER_BARS)


def test_buffered_bars_survive_damage_to_their_file(store: ParquetStore, path: Path) -> None:
    new = run("AAPL", SEPTEMBER, 9, 2)
    store.write([new], LIVE)
    _garbage(path)
    assert_same(store.read(AAPL, 0, EVER), merge(new, OCTOBER_BARS))
    with pytest.raises(SourceConflict):
        store.write([new], FILE)
    assert_set_aside(store, path, left=new)


def test_a_month_that_was_set_aside_may_have_another_source(store: ParquetStore, path: Path) -> None:
    _garbage(path)
    new = run("AAPL", SEPTEMBER, 9, 2)
    store.write([empty_of(AAPL)], LIVE)
    assert_same(store.read(AAPL, SEPTEMBER, OCTOBER), empty_of(AAPL))
    store.write([new], FILE)
    assert_same(store.read(AAPL, SEPTEMBER, OCTOBER), new)


def test_damage_is_recorded_even_if_the_write_that_found_it_fails(
    store: ParquetStore, folder: Path, path: Path
) -> None:
    with store._buffer.transaction() as db:
        db.execute("DELETE FROM months")
    _garbage(path)
    with pytest.raises(SourceConflict, match="2025-10"):
        store.write([run("AAPL", OCTOBER - 3 * MINUTE, 6)], FILE)
    assert_set_aside(store, path)


def test_only_the_damaged_month_is_uncovered(store: ParquetStore, path: Path) -> None:
    """However the spans were joined before."""
    days = random.Random(3)
    for _ in range(60):
        start = SEPTEMBER + days.randrange(-30, 90) * DAY
        store.write([empty_of(AAPL)], LIVE, covers=Span(start, start + days.randrange(1, 40) * DAY))
    before = store.gaps(AAPL, Span(0, EVER))
    _garbage(path)
    store.read(AAPL, 0, EVER)
    assert before == [Span(0, before[0].end), Span(before[-1].start, EVER)]
    assert store.gaps(AAPL, Span(0, EVER)) == [before[0], Span(SEPTEMBER, OCTOBER), before[-1]]


def _flips(data: bytes, count: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """Copies with one to four bytes changed: anywhere, in page headers, in the footer."""
    chance = random.Random(seed)
    footer = int.from_bytes(data[-8:-4], "little") + 8
    headers = [at for at in range(4, len(data) - footer) if data[at : at + 2] == b"\x15\x00"]  # a page header
    for number in range(count):
        changed = bytearray(data)
        for _ in range(chance.choice([1, 1, 1, 2, 4])):
            where = [
                chance.randrange(len(data)),
                len(data) - 1 - chance.randrange(footer),
                chance.choice(headers) + chance.randrange(60),
            ][number % 3]
            changed[where] ^= 1 << chance.randrange(8)
        if changed != data:
            yield number, bytes(changed)


@pytest.mark.parametrize("seed", [11, 12])
def test_flipped_bytes_never_become_bars(store: ParquetStore, path: Path, seed: int) -> None:
    data = path.read_bytes()
    everything = merge(SEPTEMBER_BARS, OCTOBER_BARS)
    chance = random.Random(seed)
    set_aside = 0
    for number, changed in _flips(data, 200, seed):
        path.write_bytes(changed)
        start, count = SEPTEMBER + chance.randrange(20 * 1440) * MINUTE, chance.choice([1, 300, 9000])
        asked = f"seed {seed}, flip {number}"
        for got, right in (
            (store.read(AAPL, start, start + count * MINUTE), SEPTEMBER_BARS.between(start, start + count * MINUTE)),
            (store.tail(AAPL, count, OCTOBER), SEPTEMBER_BARS.tail(count)),
            (store.read(AAPL, 0, EVER), everything),
        ):
            if path.exists():
                assert_same(got, right, asked)
            else:
                assert_same(got, right.between(OCTOBER, EVER), asked)
        if not path.exists():
            set_aside += 1
            aside = Path(store.audit.problems()[-1].path)
            assert aside.read_bytes() == changed, asked
            assert store.gaps(AAPL, WHOLE) == [Span(SEPTEMBER, OCTOBER)], asked
            aside.unlink()
        path.write_bytes(data)
    assert set_aside == len(store.audit.problems()) > 190
    assert_same(store.read(AAPL, 0, EVER), everything)


def test_a_flipped_name_of_the_source_is_damage_too(store: ParquetStore, path: Path) -> None:
    """The metadata are covered by the checksum, too."""
    data = path.read_bytes()
    where = [at for at in range(len(data)) if data.startswith(b"alpaca", at)]
    assert where
    for at in where:
        path.write_bytes(data[:at] + b"alpacb" + data[at + 6 :])
        assert_same(store.read(AAPL, SEPTEMBER, OCTOBER), empty_of(AAPL))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.ENOMEM])
def test_a_file_that_cannot_be_read_just_now_is_not_damaged(
    store: ParquetStore, path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def refuse(self: Path, mode: str = "r", **more: Any) -> Any:
        if mode == "rb":
            raise OSError(number, os.strerror(number), str(self))
        return real(self, mode, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        with pytest.raises(StoreError, match="cannot read"):
            store.read(AAPL, 0, EVER)
        with pytest.raises(StoreError, match="cannot read"):
            store.write([run("AAPL", SEPTEMBER, BULK, 2)], LIVE)
    assert store.audit.problems() == []
    assert_same(store.read(AAPL, 0, EVER), merge(SEPTEMBER_BARS, OCTOBER_BARS))
    assert store.gaps(AAPL, WHOLE) == []


def test_a_bad_sector_is_damage(store: ParquetStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def fail(self: Path, mode: str = "r", **more: Any) -> Any:
        if self == path and mode == "rb":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))
        return real(self, mode, **more)

    monkeypatch.setattr(Path, "open", fail)
    assert_same(store.read(AAPL, 0, EVER), OCTOBER_BARS)
    assert "Input/output error" in store.audit.problems()[-1].reason


# --- the buffer -----------------------------------------------------------------------------------------------------


def _database_cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _database_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"garbage!" * 4)


def _database_schema(path: Path) -> None:
    """The first page is that of a database, and the rest is noise."""
    data = bytearray(path.read_bytes())
    data[100:4000] = random.Random(5).randbytes(3900)
    path.write_bytes(data)


BUFFERS: dict[str, Damage] = {
    "garbage": _garbage,
    "shorter than a header": lambda path: os.truncate(path, 50),
    "cut in half": _database_cut,
    "wrong header": _database_header,
    "wrong schema": _database_schema,
}


@pytest.mark.parametrize("damage", BUFFERS)
def test_a_damaged_buffer_is_set_aside_and_the_files_stay(store: ParquetStore, folder: Path, damage: str) -> None:
    store.write([run("AAPL", OCTOBER, 900, 2)], LIVE)
    store.close()
    BUFFERS[damage](folder / "buffer.sqlite")
    (folder / "buffer.sqlite-wal").write_bytes(b"left over")
    again = ParquetStore(folder)
    problems = again.audit.problems()
    assert len(problems) == 1
    assert Path(problems[0].path).name.startswith("buffer.sqlite.corrupt-")
    assert Path(problems[0].path).exists()
    assert "database" in problems[0].reason
    assert_same(again.read(AAPL, 0, EVER), merge(SEPTEMBER_BARS, OCTOBER_BARS))
    assert again.gaps(AAPL, WHOLE) == [WHOLE]
    with pytest.raises(SourceConflict):
        again.write([run("AAPL", OCTOBER, 1)], FILE)
    again.write([run("AAPL", OCTOBER, 900, 2)], LIVE)
    again.close()
    assert len(ParquetStore(folder).audit.problems()) == 1


def test_an_empty_or_missing_buffer_is_created_again(store: ParquetStore, folder: Path) -> None:
    for damage in (lambda path: path.write_bytes(b""), Path.unlink):
        store.close()
        damage(folder / "buffer.sqlite")
        store = ParquetStore(folder)
        assert_same(store.read(AAPL, 0, EVER), merge(SEPTEMBER_BARS, OCTOBER_BARS))
        assert store.gaps(AAPL, WHOLE) == [WHOLE]
        store.write([run("AAPL", OCTOBER, 3, 2)], LIVE)
    store.close()


def test_native_bars_stay_after_the_first_write_to_a_new_buffer(store: ParquetStore, folder: Path) -> None:
    quarters = whole("AAPL", Timeframe.M15)
    late = bars(quarters.series, quarters.time[-5:], 2)
    store.write([quarters], FILE)
    store.close()
    (folder / "buffer.sqlite").unlink()
    again = ParquetStore(folder)
    assert_same(again.read(quarters.series, 0, EVER), quarters)
    with pytest.raises(SourceConflict):
        again.write([late], LIVE)
    again.write([late], FILE)
    assert_same(again.read(quarters.series, 0, EVER), merge(quarters, late))
    assert again.sources.of(quarters.series, Span(0, EVER)) == {FILE}
    again.close()


def test_a_folder_that_is_removed_while_a_store_is_open_is_created_again(store: ParquetStore, folder: Path) -> None:
    """A user can start over by deleting the data without stopping every server first."""
    reader, unknown = Reader(AAPL), Reader(minutes_of("TSLA"))
    for some in (reader, unknown):
        some.refresh(store)
    lease = store.leases.acquire("collector", "me", 60)
    shutil.rmtree(folder)
    assert_same(store.read(AAPL, 0, EVER), empty_of(AAPL))
    assert_same(reader.refresh(store), empty_of(AAPL))
    assert store.gaps(AAPL, WHOLE) == [WHOLE]
    assert store.stored() == []
    with pytest.raises(LeaseLost):
        store.leases.renew(lease, 60)
    for count in (3, BULK):
        for version in range(3):
            shutil.rmtree(folder)
            new = run("AAPL", SEPTEMBER, count, version)
            store.write([new], FILE, covers=WHOLE)
            assert_same(reader.refresh(store), new)
            assert_same(ParquetStore(folder).read(AAPL, 0, EVER), new)
    assert_same(unknown.refresh(store), empty_of(minutes_of("TSLA")))


def test_a_buffer_that_is_moved_away_takes_its_bars_out_of_an_open_store(folder: Path) -> None:
    store = ParquetStore(folder)
    reader = Reader(AAPL)
    store.write([run("AAPL", SEPTEMBER, 5)], LIVE)
    assert_same(reader.refresh(store), run("AAPL", SEPTEMBER, 5))
    for path in folder.glob("buffer.sqlite*"):
        path.rename(path.with_name(f"old {path.name}"))
    store.write([run("AAPL", SEPTEMBER + DAY, 2)], LIVE)
    assert_same(reader.refresh(store), run("AAPL", SEPTEMBER + DAY, 2))
    assert_same(ParquetStore(folder).read(AAPL, 0, EVER), run("AAPL", SEPTEMBER + DAY, 2))
    store.close()


def test_a_month_whose_file_was_removed_is_a_gap_again(store: ParquetStore, path: Path) -> None:
    reader = Reader(AAPL)
    reader.refresh(store)
    store.write([run("AAPL", NOVEMBER, 5)], LIVE, covers=Span(NOVEMBER, NOVEMBER + DAY))
    path.unlink()
    assert store.gaps(AAPL, Span(SEPTEMBER, NOVEMBER + DAY)) == [Span(SEPTEMBER, OCTOBER)]
    assert store.gaps(MSFT, WHOLE) == []
    assert [problem.path for problem in store.audit.problems()] == [str(path)]
    assert_same(reader.refresh(store), merge(OCTOBER_BARS, run("AAPL", NOVEMBER, 5)))
    store.write([SEPTEMBER_BARS], FILE, covers=Span(SEPTEMBER, OCTOBER))
    assert_same(reader.refresh(store), merge(SEPTEMBER_BARS, OCTOBER_BARS, run("AAPL", NOVEMBER, 5)))
    assert store.gaps(AAPL, WHOLE) == []
    assert len(store.audit.problems()) == 1


# --- bars of another origin -----------------------------------------------------------------------------------------

SIMULATED = Source(Origin.SIMULATED, "sim")
REAL = frozenset(Origin) - {Origin.SIMULATED}


def test_a_copied_home_does_not_make_simulated_bars_real(tmp_path: Path) -> None:
    simulated = ParquetStore(tmp_path / "simulated", frozenset({Origin.SIMULATED}))
    simulated.write([OCTOBER_BARS], SIMULATED, covers=WHOLE)
    simulated.write([run("AAPL", NOVEMBER, 5)], SIMULATED)
    simulated.close()
    shutil.copytree(tmp_path / "simulated", tmp_path / "data")
    real = ParquetStore(tmp_path / "data", REAL)
    assert_same(real.read(AAPL, 0, EVER), empty_of(AAPL))
    assert real.gaps(AAPL, WHOLE) == [WHOLE]
    assert [problem.reason for problem in real.audit.problems()] == [
        "holds simulated bars, which must not be stored here",
        "AAPL_2025-10.parquet: holds simulated bars, which must not be stored here",
    ]
    assert all(Path(problem.path).exists() for problem in real.audit.problems())
    real.write([OCTOBER_BARS], LIVE)
    assert_same(real.read(AAPL, 0, EVER), OCTOBER_BARS)
    real.close()
    assert len(ParquetStore(tmp_path / "data", REAL).audit.problems()) == 2


@pytest.mark.parametrize("count", [3, BULK])
def test_bars_of_a_foreign_origin_are_refused(tmp_path: Path, count: int) -> None:
    store = ParquetStore(tmp_path, REAL)
    with pytest.raises(StoreError, match="simulated bars cannot be stored"):
        store.write([run("AAPL", SEPTEMBER, count)], SIMULATED)
    assert store.stored() == []
    store.close()


@pytest.mark.parametrize("message", ["unable to open database file", "database is locked"])
def test_a_buffer_that_cannot_be_opened_is_not_read_without_its_log(
    store: ParquetStore, folder: Path, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latest writes of others are in the log, which a read-only connection would miss."""
    real, refusals = sqlite3.connect, [message]

    def connect(*values: Any, **named: Any) -> Any:
        if refusals:
            raise sqlite3.OperationalError(refusals.pop())
        return real(*values, **named)

    new = run("AAPL", OCTOBER, 5, 2)
    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(StoreError, match=message):
        ParquetStore(folder)
    again = ParquetStore(folder)
    store.write([new], LIVE)
    assert_same(again.read(AAPL, 0, EVER), merge(SEPTEMBER_BARS, OCTOBER_BARS, new))
    again.close()


def test_a_change_with_the_same_modification_time_is_noticed(store: ParquetStore, path: Path) -> None:
    """The checksum is cached, but the cache must not cover a file that has changed since."""
    old = path.stat()
    deadline = time.monotonic() + 20
    while time.time_ns() - old.st_ctime_ns < 200_000_000:
        assert time.monotonic() < deadline
        assert_same(store.read(AAPL, 0, EVER), merge(SEPTEMBER_BARS, OCTOBER_BARS))
    assert_same(store.read(AAPL, 0, EVER), merge(SEPTEMBER_BARS, OCTOBER_BARS))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert_set_aside(store, path)


def test_a_folder_at_the_buffers_path_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "buffer.sqlite").mkdir()
    with pytest.raises(StoreError, match=r"buffer\.sqlite"):
        ParquetStore(tmp_path)


def test_a_buffer_of_a_later_version_is_left_alone(store: ParquetStore, folder: Path) -> None:
    store.close()
    with sqlite3.connect(folder / "buffer.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="version 99"):
        ParquetStore(folder)
    assert not list(folder.glob("*.corrupt-*"))


def test_damage_deep_in_the_buffer_is_a_store_error(folder: Path) -> None:
    store = ParquetStore(folder)
    for day in range(20):
        store.write([run("AAPL", SEPTEMBER + day * DAY, 1400)], LIVE)
    store.close()
    path = folder / "buffer.sqlite"
    data = bytearray(path.read_bytes())
    for page in range(4096 * 14, len(data), 4096):
        data[page : page + 4096] = random.Random(page).randbytes(4096)
    path.write_bytes(data)
    again = ParquetStore(folder)
    for call in (
        lambda: again.read(AAPL, 0, EVER),
        lambda: again.compact(EVER),
        lambda: again.write([run("AAPL", SEPTEMBER, 1400, 2)], LIVE),
    ):
        with pytest.raises(StoreError, match="move this file away"):
            call()
    again.close()


def test_no_two_columns_of_a_sample_bar_are_equal() -> None:
    """So a store that swapped columns would fail these tests."""
    columns = SEPTEMBER_BARS.columns()[1:]
    assert not any(np.array_equal(a, b) for n, a in enumerate(columns) for b in columns[:n])
