"""`openbell import` and `openbell backfill` killed at any moment, while another process reads the same series."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from openbell.market.bars import Bars, closed_at
from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series, series_of
from openbell.market.timeframes import SHORT, Timeframe, parse_timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.periods import by_period
from openbell.stores.port import Span
from tests.cli.versions import ALL, DAILY, HOURLY, MINUTES, TICKERS, expected, file_name, version_of, write_files
from tests.client import run
from tests.counts import runs
from tests.feeds.alpaca_server import AlpacaServer
from tests.feeds.prices import prices
from tests.stores.child import Child
from tests.stores.model import assert_same
from tests.stores.samples import EVER

IMPORT_KILLS = runs(4, soak=150)
BACKFILL_KILLS = runs(4, soak=120)
SEED = int(os.environ.get("OPENBELL_SEED", "20241202"))
LIVE = Source(Origin.LIVE, "alpaca:iex")
ACKNOWLEDGED = re.compile(r"imported ([\d,]+) bars of (\S+), (\S+), (\S+) to (\S+), into .*")


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """On a disk, because these tests wait until a file is being written."""
    return disk_path


def command(home: Path, *words: str, **settings: str) -> Child:
    given = {f"OPENBELL_{name}": value for name, value in {"HOME": str(home), **settings}.items() if name.isupper()}
    return Child("openbell.cli.entry", *words, env=given)


def unfinished(home: Path) -> set[Path]:
    return set(home.glob("data/*/*/*.tmp"))


def kill_at_a_moment(
    process: Child, home: Path, chance: random.Random, longest: float, meanwhile: Callable[[], bool] = lambda: False
) -> list[str]:
    """Kill a command at once, after some time, or soon after it has begun to write a file. Returns what it printed."""
    before, end = unfinished(home), time.monotonic() + chance.random() * longest
    if chance.random() < 0.6:
        process.run_until(lambda: bool(unfinished(home) - before) or meanwhile())
        end = time.monotonic() + chance.choice([0, 0, 0.002, 0.02, 0.1]) * chance.random()
    process.run_until(lambda: time.monotonic() >= end or meanwhile())
    return process.kill()


# Import

SERIES = {"files": [*DAILY, HOURLY, *MINUTES], "tickers": TICKERS, "replace": DAILY}


def words_of(kind: str, folder: Path) -> list[str]:
    """The command that imports the series of a kind."""
    if kind == "tickers":
        return ["import", str(folder / "polygon.txt")]
    replace = ["--replace"] if kind == "replace" else []
    return ["import", *(str(folder / file_name(series)) for series in SERIES[kind]), "--by-name", *replace]


@contextmanager
def stored(home: Path) -> Iterator[ParquetStore]:
    with closing(ParquetStore(home / "data")) as store:
        yield store
        assert store.audit.problems() == []


def check_acknowledged(store: ParquetStore, line: str, version: int, where: str) -> None:
    """What the command has printed as imported is stored."""
    found = ACKNOWLEDGED.fullmatch(line)
    assert found, line
    series = Series(parse(found[2]), parse_timeframe(found[3], SHORT))
    first, last = int(parse_time(found[4])), int(parse_time(found[5]))
    got = store.read(series, first, last + 1)
    assert len(got) == int(found[1].replace(",", "")), where
    assert_same(got, expected(series, version), where)
    assert store.gaps(series, Span(first, last + series.timeframe.seconds // 4)) == [], where


def content(home: Path) -> dict[str, object]:
    """The bytes of every file of bars, once no bar is in the buffer, and what the buffer knows of them."""
    with stored(home) as store:
        store.compact(EVER)
    files: dict[str, object] = {
        str(path.relative_to(home)): path.read_bytes() for path in home.glob("data/*/*/*") if path.is_file()
    }
    with closing(sqlite3.connect(home / "data" / "buffer.sqlite")) as db:
        for table, columns in {"coverage": "start, end", "months": "month, origin, feed, adjustment"}.items():
            query = f"SELECT symbol, {columns} FROM {table} JOIN series ON id = series ORDER BY 1, 2, 3"
            files[table] = db.execute(query).fetchall()
        files["removals"] = db.execute("SELECT * FROM removals").fetchall()
        latest = "SELECT symbol, time, data FROM newest n JOIN series s ON id = series AND s.epoch = n.epoch ORDER BY 1"
        files["newest"] = db.execute(latest).fetchall()
    return files


def assert_clean(home: Path, **settings: str) -> None:
    for words in (["doctor"], ["verify"]):
        done = run(home, *words, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "corrupt" not in done.stdout


class Imports:
    """A home whose files are imported again and again, each time in another version, by commands that are killed."""

    def __init__(self, folder: Path) -> None:
        self.home, self._files = folder / "home", folder / "files"
        self._chance = random.Random(SEED)
        self._kinds = cycle(["files", "replace", "tickers"])
        self._stored = dict.fromkeys(ALL, 0)
        self.version = 0
        self.kills = 0
        write_files(self._files / "0", 0)
        for kind in ("files", "tickers"):
            self.complete(kind)

    def words(self, kind: str) -> list[str]:
        return words_of(kind, self._files / str(self.version))

    def complete(self, kind: str, home: Path | None = None) -> None:
        """Import the files of this version undisturbed."""
        done = run(home or self.home, *self.words(kind), FEED="none")
        assert done.returncode == 0, done.stderr

    def next_version(self, kind: str) -> None:
        """Make files of a new version; those that replace bars of a feed find such bars."""
        self.version += 1
        if kind == "replace":
            with stored(self.home) as store:
                for series in DAILY:
                    days = expected(series, self.version)
                    store.write([days], LIVE, covers=Span(int(days.time[0]), closed_at(days)), replace=True)
            self._stored |= dict.fromkeys(DAILY, self.version)
            self.version += 1
        write_files(self._files / str(self.version), self.version)

    def kill(self, kind: str) -> None:
        """Kill the command once; every period has its old bars or its new ones, and those that it printed are new."""
        where, self.kills = f"seed {SEED}, kill {self.kills}, {kind}", self.kills + 1
        with command(self.home, *self.words(kind), FEED="none") as process:
            printed = kill_at_a_moment(process, self.home, self._chance, 0.3)
        with stored(self.home) as store:
            for line in printed:
                check_acknowledged(store, line, self.version, where)
            for series in SERIES[kind]:
                for part in dict(by_period(store.read(series, 0, EVER), LIVE)).values():
                    assert version_of(series, part, self._stored[series]) in {self._stored[series], self.version}, where

    def round(self) -> None:
        """Import a new version, killed once or several times and then completed by the same command."""
        kind = next(self._kinds)
        self.next_version(kind)
        for _ in range(2):
            self.kill(kind)
        self.complete(kind)
        with stored(self.home) as store:
            for series in SERIES[kind]:
                assert_same(store.read(series, 0, EVER), expected(series, self.version), f"seed {SEED}, {kind}")
        self._stored |= dict.fromkeys(SERIES[kind], self.version)


def test_a_killed_import_keeps_what_it_printed_and_the_same_command_completes_it(tmp_path: Path) -> None:
    imports = Imports(tmp_path)
    with (
        Child("tests.cli.versions", imports.home, "0") as watcher,
        Child("tests.cli.versions", imports.home, "1") as read_only,
    ):
        for each in (watcher, read_only):
            each.line()
        while imports.kills < IMPORT_KILLS:
            imports.round()
        for each in (watcher, read_only):
            assert_never_backwards(each)
    # The same files imported undisturbed into another home give the same bytes, coverage and sources.
    for kind in ("files", "tickers"):
        for home in (imports.home, tmp_path / "undisturbed"):
            imports.complete(kind, home)
    assert content(imports.home) == content(tmp_path / "undisturbed")
    assert_clean(imports.home, FEED="none")


def assert_never_backwards(watcher: Child) -> None:
    """The watcher has found no torn period, and each one changed from a version to a later one only."""
    lines = [line.split() for line in watcher.kill()]
    assert not watcher.log()
    assert sum(words[0] == "round" for words in lines) > 1
    latest: dict[tuple[str, ...], int] = {}
    for *place, version in (words for words in lines if words[0] != "round"):
        assert int(version) >= latest.get(tuple(place), 0), place
        latest[tuple(place)] = int(version)
    assert any(latest.values())


# Backfill

HISTORY = [Series(parse(symbol), Timeframe.M15) for symbol in ("AAPL", "BTC/USD")]
FROM, TO = "2025-11-03", "2026-05-04"
STORED = re.compile(r"(\S+ \S+): ([\d,]+) bars stored, (\S+) to (\S+)")


@cache
def history(series: Series) -> Bars:
    """The vendor's bars."""
    return prices(series, int(parse_time(FROM)), int(parse_time(TO)))


def backfill_words() -> list[str]:
    symbols = [str(series.instrument) for series in HISTORY]
    return ["backfill", *symbols, "-t", "15m", "--from", FROM, "--to", TO]


def test_a_killed_backfill_keeps_what_it_printed_and_the_same_command_completes_it(
    tmp_path: Path, alpaca: AlpacaServer
) -> None:
    home, chance = tmp_path / "home", random.Random(SEED)
    alpaca.page, alpaca.latency = 2500, 0.004

    def read_all() -> bool:
        """Read what is stored while the command writes: every bar is the vendor's."""
        with stored(home) as store:
            for series in HISTORY:
                found, every = store.read(series, 0, EVER), history(series)
                assert_same(found, every.take(np.isin(every.time, found.time)))
        return False

    for number in range(BACKFILL_KILLS):
        where = f"seed {SEED}, kill {number}"
        with command(home, *backfill_words(), FEED="alpaca") as process:
            printed = kill_at_a_moment(process, home, chance, 0.6, read_all)
        with stored(home) as store:
            for line in printed:
                said = STORED.match(line)
                assert said, line
                whole = store.read(series_of(said[1]), int(parse_time(said[3])), int(parse_time(said[4])) + 1)
                assert_same(whole, history(series_of(said[1])), where)
                assert len(whole) == int(said[2].replace(",", "")), where
        if printed and number % 3 == 2:  # begin again, so that kills meet every part of the command
            shutil.rmtree(home)
    read_all()
    other = tmp_path / "undisturbed"
    for each in (home, other):
        done = run(each, *backfill_words(), FEED="alpaca")
        assert done.returncode == 0, done.stderr
    assert content(home) == content(other)
    with stored(home) as store:
        for series in HISTORY:
            assert_same(store.read(series, 0, EVER), history(series))
            assert store.gaps(series, Span(int(parse_time(FROM)), int(parse_time(TO)))) == []
    assert_clean(home, FEED="alpaca")
