"""`openbell import` through the real command line: what it stores, what it refuses, what it leaves alone."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import openbell
from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.clock import iso, parse_time
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.buffered import BULK
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.client import run
from tests.prefork import Process
from tests.stores.samples import bars as bars_of
from tests.waiting import wait_for

AAPL = parse("AAPL")
HEADER = "timestamp,open,high,low,close,volume"
GOOD = "2025-09-19T13:31:00Z,10,12,9,11,100"
IMPORTED = Source(Origin.IMPORTED, "import")
LIVE = Source(Origin.LIVE, "alpaca")
FOREVER = 2**40
NOVEMBER = int(parse_time("2025-11-03"))
JOINED = "openbell: added to the watchlist: AAPL (openbell watch remove takes a symbol off it)\n"
SKIPS = "--skip-bad leaves out these rows and imports the others"
MINUTES = ("--timeframe", "1min")
"""For minutes with gaps that are all equal."""


@dataclass
class Desk:
    """A home, and the command run in it."""

    home: Path
    files: Path

    def environment(self, **settings: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBELL_") and k != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "OPENBELL_HOME": str(self.home), "OPENBELL_FEED": "none", **settings}

    def command(self, file: str | Path, *options: str, symbol: str = "AAPL") -> list[str]:
        return [str(Path(sys.executable).with_name("openbell")), "import", str(file), "--symbol", symbol, *options]

    def load(
        self, file: str | Path, *options: str, symbol: str = "AAPL", **settings: str
    ) -> subprocess.CompletedProcess[str]:
        given = {name.removeprefix("OPENBELL_"): value for name, value in settings.items()}
        return run(self.home, *self.command(file, *options, symbol=symbol)[1:], **{"FEED": "none", **given})

    def csv(self, *rows: str, name: str = "bars.csv") -> Path:
        path = self.files / name
        path.write_text("\n".join([HEADER, *rows]) + "\n")
        return path

    def csv_of(self, bars: Bars, name: str = "bars.csv") -> Path:
        rows = zip(*(column.tolist() for column in bars.columns()), strict=True)
        return self.csv(*(",".join([iso(row[0]), *map(repr, row[1:])]) for row in rows), name=name)

    @contextmanager
    def store(self) -> Iterator[ParquetStore]:
        with closing(ParquetStore(self.home / "data")) as store:
            yield store

    def stored(self, symbol: str = "AAPL") -> Bars:
        with self.store() as store:
            return store.read(Series(parse(symbol)), 0, FOREVER)

    def fingerprint(self) -> dict[str, str]:
        files = (path for path in self.home.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "files").mkdir()
    return Desk(tmp_path / "home", tmp_path / "files")


def some_bars(start: str, count: int, seed: int = 1, step: int = 1) -> Bars:
    random = np.random.default_rng(seed)
    times = int(parse_time(start)) + 60 * step * np.arange(count)
    low, a, b, high = np.sort(random.lognormal(5, 0.01, (4, count)), axis=0)
    return barlib.make(AAPL, Timeframe.M1, times, a, high, low, b, random.integers(0, 10**6, count))


def refusal(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 1, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("openbell: ")
    return result.stderr


# What is stored


def test_a_csv_file_is_stored_and_the_result_is_one_line(desk: Desk) -> None:
    bars = some_bars("2025-09-01T13:30:00Z", 1500)

    result = desk.load(desk.csv_of(bars))

    assert result.returncode == 0
    assert result.stdout == (
        "imported 1,500 bars of AAPL, 1m, 2025-09-01T13:30:00+00:00 to 2025-09-02T14:29:00+00:00, "
        f"into {desk.home / 'data'} (plain, raw)\n"
    )
    assert result.stderr == JOINED
    assert desk.stored().same_as(bars)
    with desk.store() as store:
        first, last = int(bars.time[0]), int(bars.time[-1])
        assert store.gaps(Series(AAPL), Span(first - 60, last + 120)) == [
            Span(first - 60, first),
            Span(last + 60, last + 120),
        ]


def test_a_parquet_file_of_several_months_is_stored_with_its_provenance(desk: Desk) -> None:
    bars = some_bars("2025-01-30T00:00:00Z", 3 * BULK, step=20)
    path = desk.files / "history.parquet"
    times = pa.array(bars.time.astype("datetime64[s]"), pa.timestamp("s", "America/New_York"))
    pq.write_table(pa.table([times, *bars.columns()[1:]], HEADER.split(",")), path)

    result = desk.load(path, "--timeframe", "1min", symbol="nasdaq:aapl")

    assert result.returncode == 0, result.stderr
    assert desk.stored().same_as(bars)
    with desk.store() as store:
        assert store.gaps(Series(AAPL), Span(int(bars.time[0]), int(bars.time[-1]) + 60)) == []
        assert store.sources.conflicts(bars, IMPORTED) == []
        assert store.sources.conflicts(bars, LIVE) == [f"2025-0{n} (imported/import/raw)" for n in (1, 2, 3, 4)]
        assert store.sources.of(Series(AAPL), Span(int(bars.time[0]), int(bars.time[-1]))) == {IMPORTED}


def test_simulation_never_gets_imported_bars_and_the_person_is_told(desk: Desk) -> None:
    result = desk.load(desk.csv(GOOD), symbol="binance:btcusdt", OPENBELL_FEED="sim")

    assert result.returncode == 0
    assert result.stdout.startswith("imported 1 bar of BTC/USDT, ")
    assert "for BTC/USDT set another one, such as: export OPENBELL_FEED=none" in result.stderr
    assert not (desk.home / "simulated").exists()
    assert not (desk.home / "watchlist.txt").exists(), "a simulated desk cannot price imported symbols"
    assert len(desk.stored("BTC/USDT")) == 1


def test_importing_a_file_again_changes_nothing(desk: Desk) -> None:
    to_month_file, to_buffer = some_bars("2025-04-01", BULK, step=13), some_bars("2025-05-01", 300)
    bars = barlib.merge(to_month_file, to_buffer)
    file = desk.csv_of(bars)

    first, second = desk.load(file, *MINUTES), desk.load(file, *MINUTES)

    assert first.stdout == second.stdout != ""
    assert desk.stored().same_as(bars)


def test_a_later_file_wins_where_both_have_a_minute_and_keeps_the_rest(desk: Desk) -> None:
    starts = ("2025-08-31T20:00:00Z", "2025-09-01T00:00:00Z", "2025-09-01T03:00:00Z")
    parts = [some_bars(start, 400, seed) for seed, start in enumerate(starts)]

    for part, options in zip(parts, [[], [], ["--replace"]], strict=True):
        assert desk.load(desk.csv_of(part), *options).returncode == 0

    assert desk.stored().same_as(barlib.merge(*parts))


def test_the_clock_of_the_desk_does_not_judge_the_file(desk: Desk) -> None:
    past = desk.load(desk.csv(GOOD), OPENBELL_AS_OF="2024-01-01T00:00:00Z")
    tomorrow = iso(time.time() // 60 * 60 + 86400)
    future = desk.load(desk.csv(f"{tomorrow},10,12,9,11,100"), OPENBELL_AS_OF="2024-01-01T00:00:00Z")

    assert past.returncode == 0
    assert "line 2: from the future" in refusal(future)


# What is refused


def test_every_bad_row_is_named_and_nothing_is_stored(desk: Desk) -> None:
    later = iso(time.time() // 60 * 60 + 3600)
    rows = {
        "2025-09-19T13:31:00Z,ten,12,9,11,100": "unreadable number in open: 'ten'",
        "2025-09-19T13:32:00Z,10,,9,11,100": "missing value in high",
        "2025-09-19T13:33:00Z,10,inf,9,11,100": "not finite",
        "2025-09-19T13:34:00Z,10,12,0,11,100": "price not positive",
        "2025-09-19T13:35:00Z,10,12,9,11,-1": "volume negative",
        "2025-09-19T13:36:00Z,10,9,12,11,100": "high below low",
        "2025-09-19T13:37:00Z,13,12,9,11,100": "open outside high and low",
        "2025-09-19T13:38:00Z,10,12,9,8,100": "close outside high and low",
        "2025-09-19T13:39:30Z,10,12,9,11,100": "time not on the minute",
        "1970-09-19T13:40:00Z,10,12,9,11,100": "time before 1971",
        f"{later},10,12,9,11,100": "from the future",
        "19 Sept 2025,10,12,9,11,100": "unreadable time '19 Sept 2025'",
        "2025-09-19T13:31:00Z,10,12,9,11,99": "another bar of 2025-09-19T13:31:00+00:00 than line 2",
    }
    texts, reasons = list(rows), list(rows.values())

    first = refusal(desk.load(desk.csv(GOOD, *texts)))
    second = refusal(desk.load(desk.csv(GOOD, *texts[:1], *texts[-3:])))

    assert first.splitlines() == [
        f"openbell: {desk.files / 'bars.csv'}: 13 bad rows, so none was taken",
        *(f"  line {number}: {reason}" for number, reason in enumerate(reasons[:10], 3)),
        next(line for line in first.splitlines() if line.startswith("  and 3 more; in all 1 × ")),
        SKIPS,
    ]
    assert second.splitlines()[1:] == [
        *(f"  line {number}: {reason}" for number, reason in enumerate([*reasons[:1], *reasons[-3:]], 3)),
        SKIPS,
    ]
    assert not desk.home.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (HEADER.encode() + b"\n", "the file names its columns but holds no bars"),
        (b"timestamp,open,high,low\n", "missing column close, volume"),
        (b"time," + HEADER.encode() + b"\n", "repeated column 'time', 'timestamp'"),
        (HEADER.encode() + b"\n\x81\n", "is neither UTF-8 nor Windows text"),
    ],
)
def test_a_file_that_is_no_bars_is_refused_in_one_line(desk: Desk, content: bytes, said: str) -> None:
    path = desk.files / "bars.csv"
    path.write_bytes(content)

    error = refusal(desk.load(path))

    assert error.startswith(f"openbell: {path}: {said}")
    assert error.count("\n") == 1
    assert not desk.home.exists()


def test_a_folder_and_a_missing_file_are_refused_in_one_line(desk: Desk) -> None:
    folder, missing = refusal(desk.load(desk.files)), refusal(desk.load(desk.files / "none.csv"))

    assert folder == f"openbell: {desk.files}: is a folder, not a file\n"
    assert missing == f"openbell: {desk.files / 'none.csv'}: no such file\n"
    assert not desk.home.exists()


def rows_at(*times: str) -> list[str]:
    return [f"{time},10,12,9,11,100" for time in times]


DAYS = [f"2025-09-{day:02}" for day in (15, 16, 17, 18, 19, 22, 23)]


def test_a_daily_file_is_never_taken_as_minutes(desk: Desk) -> None:
    path = desk.files / "daily.csv"
    path.write_text("\n".join(["Date,Open,High,Low,Close,Volume", *rows_at(*DAYS)]) + "\n")

    checked = desk.load(path, "--check")
    named = refusal(desk.load(path, "--timeframe", "1min"))

    assert checked.stdout.splitlines() == [
        f"{path}: plain, 1 series",
        "  7 bars of AAPL, 1d, 2025-09-15T13:30:00+00:00 to 2025-09-23T13:30:00+00:00, dates, raw",
    ]
    assert "has dates without a time of day, so it does not hold 1m bars" in named
    assert not desk.home.exists()


def test_hourly_bars_from_the_opening_bell_are_refused_and_sparse_minutes_are_stored_when_they_are_called_so(
    desk: Desk,
) -> None:
    file = desk.csv(*rows_at(*(f"2025-09-19T{hour:02}:30:00Z" for hour in range(13, 20))))

    error = refusal(desk.load(file))
    assert "holds 1h bars that begin at 13:30 UTC, but 1h bars begin at multiples of 1h from midnight UTC here" in error
    assert "import minutes (1m) or 30m bars" in error
    assert error.count("\n") == 1
    assert not desk.home.exists()
    assert desk.load(file, "--timeframe", "1min").returncode == 0
    assert len(desk.stored()) == 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--timeframe", "45m"], "Invalid timeframe '45m'"),
        (["--timeframe", "1M"], "Invalid timeframe '1M'"),
        (["--tz", "America/Gotham"], "'America/Gotham' is not a time zone"),
        (["--tz", "../etc/passwd"], "is not a time zone"),
        (["--date-format", "%d"], "needs a year (%Y), a month (%m or %b) and a day (%d)"),
        (["--date-format", "%Y %m %d %Q"], "%Q cannot be used"),
        (["--adjusted"], "has no column of adjusted closes (Adj Close), which --adjusted needs"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(desk: Desk, options: list[str], said: str) -> None:
    assert said in refusal(desk.load(desk.csv(GOOD), *options))
    assert not desk.home.exists()


def test_prices_and_volumes_beyond_sense_are_refused(desk: Desk) -> None:
    rows = (GOOD, "2025-09-19T13:31:00Z,1e308,1e308,1e308,1e308,1", "2025-09-19T13:32:00Z,1,1,1,1,1e300")

    error = refusal(desk.load(desk.csv(*rows, "2025-09-19T13:33:00Z,1e-300,1,1e-300,1,1")))

    assert error.splitlines()[1:] == [
        "  line 3: price above 1e15",
        "  line 4: volume above 1e18",
        "  line 5: price below 1e-15",
        SKIPS,
    ]
    assert not desk.home.exists()


@pytest.mark.parametrize("symbol", ["../x", "; rm -rf ~", "\x1b[31mAAPL"])
def test_what_is_no_symbol_is_refused(desk: Desk, symbol: str) -> None:
    error = refusal(desk.load(desk.csv(GOOD), symbol=symbol))

    assert "Invalid symbol" in error
    assert "\x1b" not in error
    assert not desk.home.exists()


def test_read_only_refuses_the_import(desk: Desk) -> None:
    assert "OPENBELL_READ_ONLY" in refusal(desk.load(desk.csv(GOOD), OPENBELL_READ_ONLY="true"))
    assert not desk.home.exists()


def test_a_home_that_cannot_be_written_is_said_plainly(desk: Desk) -> None:
    desk.home.write_text("a file where the home should be")

    assert str(desk.home) in refusal(desk.load(desk.csv(GOOD)))


def test_a_refused_file_leaves_the_store_as_it_was(desk: Desk) -> None:
    bars = some_bars("2025-09-01", BULK, step=7)
    with desk.store() as store:
        store.write([bars], LIVE)
    before = desk.fingerprint()

    refusal(desk.load(desk.csv(GOOD, "2025-09-19T13:31:00Z,10,12,9,11,-1"), "--replace"))

    assert desk.fingerprint() == before
    assert desk.stored().same_as(bars)


# What is shown


def test_check_shows_each_series_and_its_notes_and_stores_nothing(desk: Desk) -> None:
    rows = [f"MSFT,{day},10,12,9,11,100,5.5" for day in DAYS] + [f"AAPL,{day},10,12,9,11,100,5.5" for day in DAYS[1:]]
    rows.append("AAPL,2025-09-24,,,,,,")
    path = desk.files / "two.csv"
    path.write_text("\n".join(["Ticker,Date,Open,High,Low,Close,Volume,Adj Close", *rows]) + "\n")
    command = [word for word in desk.command(path, "--check") if word not in {"--symbol", "AAPL"}]

    result = run(desk.home, *command[1:], FEED="none", READ_ONLY="true")

    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"{path}: yahoo, 2 series",
        "  7 bars of MSFT, 1d, 2025-09-15T13:30:00+00:00 to 2025-09-23T13:30:00+00:00, dates, split",
        "  6 bars of AAPL, 1d, 2025-09-16T13:30:00+00:00 to 2025-09-23T13:30:00+00:00, dates, split",
        "  note: AAPL: 1 row has no prices and was left out",
    ]
    assert not desk.home.exists()


def test_check_shows_the_good_files_and_names_the_bad_ones(desk: Desk) -> None:
    good, bad = desk.csv(GOOD), desk.csv("2025-09-19T13:30:00Z,10,12,9,11,-1", name="negative.csv")

    result = desk.load(good, str(bad), "--check")

    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        f"{good}: plain, 1 series",
        "  1 bar of AAPL, 1m, 2025-09-19T13:31:00+00:00 to 2025-09-19T13:31:00+00:00, zone in the file, raw",
    ]
    assert f"{bad}: 1 bad row, so none was taken\n  line 2: volume negative" in result.stderr
    assert not desk.home.exists()


def test_notes_go_to_standard_error(desk: Desk) -> None:
    file = desk.csv("2025-09-19T13:31:00,10,12,9,11,100")

    result = desk.load(file)

    assert result.returncode == 0
    assert result.stdout.count("\n") == 1
    zone = f"openbell: {file}: times without a zone were taken as UTC (--tz names another zone)\n"
    assert result.stderr == zone + JOINED


def test_bad_rows_are_skipped_on_request_and_listed(desk: Desk) -> None:
    """A file of days with a holiday and a weekend, as a spreadsheet fills them in."""
    file = desk.files / "days.csv"
    days = ("2024-07-02", "2024-07-03", "2024-07-04", "2024-07-05", "2024-07-06", "2024-07-08")
    file.write_text("\n".join(["Date,Open,High,Low,Close,Volume", *(f"{day},10,12,9,11,100" for day in days), ""]))

    refused, done = desk.load(file), desk.load(file, "--skip-bad")

    assert "  line 4: no session of US stocks on 2024-07-04, a Thursday" in refusal(refused)
    assert SKIPS in refused.stderr
    assert done.returncode == 0
    assert done.stdout.startswith("imported 4 bars of AAPL, 1d, 2024-07-02")
    assert done.stderr.removesuffix(JOINED).splitlines() == [
        f"openbell: {file}: 2 bad rows skipped:",
        "  line 4: no session of US stocks on 2024-07-04, a Thursday",
        "  line 6: no session of US stocks on 2024-07-06, a Saturday",
    ]


def test_json_lines_through_a_pipe_are_stored(desk: Desk) -> None:
    pipe = desk.files / "pipe"
    os.mkfifo(pipe)
    names = HEADER.split(",")
    rows = [f"2025-09-19T13:3{n}:00Z,10,12,9,11,{n}".split(",") for n in range(5)]
    text = "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    with ThreadPoolExecutor() as pool:
        written = pool.submit(pipe.write_text, text)
        done = desk.load(pipe)
        written.result()
    assert done.stdout.startswith("imported 5 bars of AAPL, 1m, 2025-09-19T13:30:00"), done.stderr
    assert desk.stored().volume.tolist() == [0, 1, 2, 3, 4]


# Several files


def test_a_quoted_glob_is_expanded_and_every_file_is_stored(desk: Desk) -> None:
    parts = [some_bars(f"2025-0{month}-03T13:30:00Z", 30, seed=month) for month in (3, 1, 2)]
    for number, part in enumerate(parts):
        desk.csv_of(part, name=f"part-{number}.csv")

    result = desk.load(desk.files / "part-*.csv")

    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        "imported 90 bars of AAPL, 1m, 2025-01-03T13:30:00+00:00 to 2025-03-03T13:59:00+00:00, from 3 files, "
        f"into {desk.home / 'data'} (plain, raw)\n"
    )
    assert desk.stored().same_as(barlib.merge(parts[1], parts[2], parts[0]))
    assert "no file has a name of this form" in refusal(desk.load(desk.files / "other-*.csv"))


def test_all_files_are_checked_before_the_first_is_stored(desk: Desk) -> None:
    good = desk.csv(GOOD)
    bad = desk.csv("2025-09-19T13:30:00Z,10,12,9,11,-1", name="negative.csv")
    missing = desk.files / "none.csv"

    error = refusal(desk.load(good, str(bad), str(missing)))

    assert error.splitlines() == [
        "openbell: 2 of 3 files refused, so nothing was imported",
        f"{bad}: 1 bad row, so none was taken",
        "  line 2: volume negative",
        f"{missing}: no such file",
        SKIPS,
    ]
    assert not desk.home.exists()


def test_an_adjusted_import_is_another_source(desk: Desk) -> None:
    path = desk.files / "minutes.csv"
    path.write_text("Datetime,Open,High,Low,Close,Adj Close,Volume\n2025-09-19 13:31:00+00:00,10,12,9,11,5.5,100\n")

    adjusted = desk.load(path, "--adjusted")
    split = refusal(desk.load(path))

    assert adjusted.stdout.endswith(" (yahoo, all)\n")
    assert [float(column[0]) for column in desk.stored().columns()[1:5]] == [5.0, 6.0, 4.5, 5.5]
    assert "2025-09 (imported/import/all)" in split
    assert "--replace" in split


def days_file(desk: Desk, name: str, first: int, last: int) -> Path:
    """A file of Yahoo with days of November 2025."""
    rows = [f"2025-11-{day:02},10,12,9,11,10.5,100" for day in range(first, last + 1)]
    (desk.files / name).write_text("\n".join(["Date,Open,High,Low,Close,Adj Close,Volume", *rows, ""]))
    return desk.files / name


def test_the_adjustment_can_be_stated_and_check_shows_it(desk: Desk) -> None:
    path = days_file(desk, "days.csv", 3, 7)

    for stated, shown in ([], "split"), (["--adjustment", "raw"], "raw"), (["--adjusted"], "all"):
        assert desk.load(path, "--check", *stated).stdout.endswith(f" dates, {shown}\n")
    both = refusal(desk.load(path, "--adjusted", "--adjustment", "split"))
    assert "--adjusted and --adjustment exclude each other" in both
    assert desk.load(path, "--adjustment", "sideways").returncode == 2


@pytest.mark.parametrize(
    ("recorded", "option"), [("raw", ["--adjustment", "raw"]), ("all", ["--adjusted"])], ids=["raw", "adjusted"]
)
def test_days_are_added_to_those_that_are_adjusted_alike(desk: Desk, recorded: str, option: list[str]) -> None:
    days = Series(AAPL, Timeframe.D1)
    first, opens = days_file(desk, "first.csv", 3, 7), buckets(AAPL, Timeframe.D1, NOVEMBER, NOVEMBER + 14 * 86400)[0]
    with desk.store() as store:
        before = bars_of(days, opens[:5])
        source = Source(Origin.IMPORTED, "import", recorded)
        store.write([before], source, covers=Span(int(opens[0]), barlib.closed_at(before)))

    error = refusal(desk.load(days_file(desk, "more.csv", 10, 14)))
    result = desk.load(desk.files / "more.csv", *option)

    assert f"all (imported/import/{recorded})" in error
    assert result.returncode == 0, result.stderr
    with desk.store() as store:
        found = store.read(days, 0, FOREVER)
        assert found.time.tolist() == opens.tolist()
        assert found.take(slice(0, 5)).same_as(before)
    assert desk.load(first, *option, "--replace").returncode == 0
    with desk.store() as store:
        assert len(store.read(days, 0, FOREVER)) == 10


def test_an_interrupt_between_files_says_which_are_stored(desk: Desk) -> None:
    parts = [some_bars("2020-01-01", 6 * BULK, seed=seed, step=22) for seed in range(6)]
    names = [desk.csv_of(part, name=f"{seed}.csv") for seed, part in enumerate(parts)]
    command = [*desk.command(names[0], *MINUTES), *map(str, names[1:])]
    process = Process(command, env=desk.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    buffer = desk.home / "data" / "buffer.sqlite"
    wait_for(lambda: buffer.exists() and len(desk.stored()) == len(parts[0]), "the first file to be stored")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)

    assert process.returncode in {0, 130}  # 0 where the end came before the signal
    if process.returncode == 130:
        assert re.search(r"interrupted; stored: [0-5] of 6 files", errors), errors
        assert "run the same command again" in errors


# Bars of another source


@pytest.mark.parametrize("count", [300, BULK + 100], ids=["in the buffer", "in a month file"])
def test_bars_of_another_source_need_replace_and_no_month_is_written_by_half(desk: Desk, count: int) -> None:
    live_february, live_march = some_bars("2025-02-10", count, seed=2), some_bars("2025-03-05", 300, seed=3)
    with desk.store() as store:
        for part in (live_february, live_march):
            store.write([part], LIVE, covers=Span(int(part.time[0]), int(part.time[-1]) + 60))
    bars = some_bars("2025-01-20", BULK * 2, step=9)  # ends in February
    file = desk.csv_of(bars)

    error = refusal(desk.load(file, *MINUTES))

    assert "2025-02 (live/alpaca/raw)" in error
    assert "2025-01" not in error
    assert "--replace" in error
    assert desk.stored().same_as(barlib.merge(live_february, live_march))
    with desk.store() as store:
        assert store.sources.conflicts(some_bars("2025-01-01", 1), LIVE) == []

    result = desk.load(file, "--replace", *MINUTES)

    assert result.returncode == 0, result.stderr
    assert desk.stored().same_as(barlib.merge(bars, live_march))
    with desk.store() as store:
        assert store.sources.conflicts(bars, IMPORTED) == []
        assert store.sources.of(Series(AAPL), Span(int(bars.time[0]), int(bars.time[-1]) + 60)) == {IMPORTED}
        assert store.gaps(Series(AAPL), Span(int(bars.time[0]), int(bars.time[-1]) + 60)) == []


# Large files


def test_an_interrupted_import_has_whole_months_and_can_be_done_again(desk: Desk) -> None:
    bars = some_bars("2020-01-01", 24 * BULK, step=22)  # two years, every month above the buffer's size
    file = desk.csv_of(bars)
    first_month = desk.home / "data" / "stocks" / "1min" / "AAPL_2020-01.parquet"
    process = Process(
        desk.command(file, *MINUTES), env=desk.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not first_month.exists():
        pass
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)

    assert process.returncode in {0, 130}  # 0 where the end came before the signal
    stored = desk.stored()
    assert stored.same_as(bars.take(slice(0, len(stored))))
    assert len(stored) > 0
    assert len(stored) == len(bars) or is_month_end(int(stored.time[-1]))
    assert desk.load(file, *MINUTES).returncode == 0
    assert desk.stored().same_as(bars)


def is_month_end(epoch: int) -> bool:
    return iso(epoch)[:7] != iso(epoch + 22 * 60)[:7]


def test_progress_is_shown_on_a_terminal(desk: Desk) -> None:
    file = desk.csv_of(some_bars("2025-01-01", 400, step=599))
    master, terminal = pty.openpty()
    process = Process(
        desk.command(file, *MINUTES), env=desk.environment(TERM="xterm"), stdout=subprocess.PIPE, stderr=terminal
    )
    os.close(terminal)
    shown = b"".join(iter(lambda: read_terminal(master), b""))
    out, _ = process.communicate(timeout=60)
    os.close(master)

    assert b"reading bytes" in shown
    assert b"storing bars" in shown
    assert process.returncode == 0
    assert out.startswith(b"imported 400 bars of AAPL")


def read_terminal(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux says so when the other end has closed
        return b""


def test_help_shows_a_newcomer_an_example(desk: Desk) -> None:
    result = desk.load("x", "--help")

    assert result.returncode == 0
    assert "openbell import aapl.csv --symbol AAPL" in result.stdout
    assert re.search(r"^ +2025-09-19T13:30:00Z,237.10,237.55,236.90,237.42,182340$", result.stdout, re.MULTILINE)
    assert "--replace" in result.stdout


def test_the_example_of_the_documentation_runs_and_prints_what_is_shown(desk: Desk) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text()
    found = re.search(r"```sh\n(printf .*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert found is not None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    source = str(Path(openbell.__file__).parents[1])

    done = subprocess.run(
        ["sh", "-c", found[1]],
        check=False,
        cwd=desk.files,
        env=desk.environment(PATH=path, PYTHONPATH=source),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.stdout, done.stderr) == (found[2], "")


def test_replace_never_drops_bars_of_another_adjustment_that_the_file_lacks(desk: Desk) -> None:
    header = "Date,Open,High,Low,Close,Adj Close,Volume"
    rows = [f"2025-11-{day:02},10,12,9,11,10.5,100" for day in (3, 4, 5, 6, 7)]
    whole, last = desk.files / "whole.csv", desk.files / "last.csv"
    whole.write_text("\n".join([header, *rows]) + "\n")
    last.write_text("\n".join([header, *rows[-2:]]) + "\n")
    assert desk.load(whole).returncode == 0
    error = refusal(desk.load(last, "--adjusted", "--replace"))
    assert "3 bars of AAPL 1d that are not in the file" in error
    with closing(ParquetStore(desk.home / "data")) as store:
        assert len(store.read(Series(AAPL, Timeframe.D1), 0, FOREVER)) == 5
    assert desk.load(whole, "--adjusted", "--replace").returncode == 0
    with closing(ParquetStore(desk.home / "data")) as store:
        assert store.read(Series(AAPL, Timeframe.D1), 0, FOREVER).close.tolist() == [10.5] * 5
