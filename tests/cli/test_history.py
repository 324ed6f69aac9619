"""`openbell backfill` and `openbell export` through the real command line."""

from __future__ import annotations

import csv
import re
import signal
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from openbell.market.bars import Bars, closed_at, resample
from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.client import OPENBELL, PATIENCE, environment, run
from tests.prefork import Process
from tests.stores.samples import bars
from tests.waiting import wait_for

AAPL = parse("AAPL")
IMPORTED = Source(Origin.IMPORTED, "import")


def stored(home: Path, series: Series, folder: str = "simulated/data") -> Bars:
    with closing(ParquetStore(home / folder)) as store:
        return store.read(series, 0, 2**40)


def test_backfill_stores_the_timeframe_of_the_feed_and_fetches_nothing_twice(tmp_path: Path) -> None:
    words = ("backfill", "AAPL", "BTC/USD", "-t", "4h", "--from", "2025-06", "--to", "2025-08-01")
    first, again = run(tmp_path, *words, LOG_LEVEL="info"), run(tmp_path, *words, LOG_LEVEL="info")
    assert first.returncode == again.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert "AAPL 1h: " in first.stdout
    assert "which 4h bars are made of" in first.stdout
    for symbol in ("AAPL", "BTC/USD"):
        hours = stored(tmp_path, Series(parse(symbol), Timeframe.H1))
        assert (hours.time[0] >= parse_time("2025-06-01"), hours.time[-1] < parse_time("2025-08-01")) == (True, True)
        assert len(stored(tmp_path, Series(parse(symbol)))) == 0


def test_an_interrupted_backfill_keeps_what_it_has_and_continues(tmp_path: Path) -> None:
    words = ["backfill", "BTC/USD", "-t", "1m", "--from", "2026-01"]
    minutes = Series(parse("BTC/USD"))
    with Process([*OPENBELL, *words], env=environment(tmp_path), text=True, stderr=-1, stdout=-1) as process:
        wait_for(
            lambda: process.poll() is not None or bool(list(tmp_path.rglob("BTC_USD_*.parquet"))), "the first file"
        )
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    if process.returncode:  # it may have been done before
        assert process.returncode == 130
        assert "run the same command again" in errors
    kept = stored(tmp_path, minutes)
    assert len(kept)
    done = run(tmp_path, *words, "--to", "2026-11-01")
    assert done.returncode == 0, done.stderr
    whole = stored(tmp_path, minutes)
    assert whole.between(kept.time[0], kept.time[-1] + 60).same_as(kept)
    assert len(whole.between(parse_time("2026-01-01"), parse_time("2026-11-01"))) == 304 * 1440


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("backfill", "AAPL"), "--from"),
        (("backfill", "AAPL", "--from", "soon"), "--from 'soon' is no time"),
        (("backfill", "AAPL", "--from", "2030"), "is not before --to"),
        (("backfill", "AAPL", "--from", "2020", "-t", "3d"), "Invalid timeframe '3d'"),
        (("backfill", "NOPE", "--from", "2020"), "the feed sim does not have it"),
        (("backfill", "a b", "--from", "2020"), "Invalid symbol"),
        (("export", "AAPL", "-o", "out.txt"), "must end in .csv or .parquet"),
        (("export", "AAPL", "-o", "out.csv"), "no closed 1d bars of AAPL"),
        (("export", "AAPL", "-o", "/nowhere/at/all.csv", "--from", "2026-11-01"), "cannot write /nowhere/at/all.csv"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = run(tmp_path, *words)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_read_only_stores_nothing(tmp_path: Path) -> None:
    done = run(tmp_path / "home", "backfill", "AAPL", "--from", "2026", READ_ONLY="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("timeframe", [Timeframe.M5, Timeframe.H1, Timeframe.D1, Timeframe.W1])
def test_a_file_holds_exactly_the_bars(tmp_path: Path, timeframe: Timeframe) -> None:
    name = {Timeframe.M5: "5m", Timeframe.H1: "1h", Timeframe.D1: "1d", Timeframe.W1: "1w"}[timeframe]
    times = buckets(AAPL, timeframe, int(parse_time("2024-03-01")), int(parse_time("2024-04-15")))[0]
    offered = bars(Series(AAPL, timeframe), times)
    with closing(ParquetStore(tmp_path / "home" / "data")) as store:
        store.write([offered], IMPORTED, covers=Span(int(times[0]), closed_at(offered)))
    for suffix in ("csv", "parquet"):
        out = tmp_path / f"out.{suffix}"
        done = run(tmp_path / "home", "export", "AAPL", "-t", name, "-o", str(out), FEED="none")
        assert done.returncode == 0, done.stderr
        assert f"{len(offered):,} bars of {offered.series}" in done.stdout
        rows = read(out)
        assert rows == list(zip(*(column.tolist() for column in offered.columns()), strict=True))
        assert [path.name for path in tmp_path.glob(".*")] == []


def test_an_export_of_a_larger_timeframe_is_made_of_the_stored_one(tmp_path: Path) -> None:
    days = bars(Series(AAPL, Timeframe.D1), buckets(AAPL, Timeframe.D1, 1_700_000_000, 1_720_000_000)[0])
    with closing(ParquetStore(tmp_path / "home" / "data")) as store:
        store.write([days], IMPORTED, covers=Span(int(days.time[0]), closed_at(days)))
    out = tmp_path / "weeks.csv"
    run(tmp_path / "home", "export", "AAPL", "-t", "1w", "-o", str(out), FEED="none")
    weeks = resample(days, Timeframe.W1, 2**40)
    assert [row[0] for row in read(out)] == weeks.time.tolist()[1:-1], "weeks of which all days are there"


def test_an_export_has_no_bar_made_of_part_of_its_minutes(tmp_path: Path) -> None:
    """A question about the price stores two days of minutes, which begin in the middle of a day and of an hour."""
    clock = ("--as-of", "2026-01-09T18:20:00Z")
    assert run(tmp_path, "call", "market-data", "get_current_price", '{"symbol": "BTC/USD"}', *clock).returncode == 0
    with closing(ParquetStore(tmp_path / "simulated" / "data")) as store:
        first = int(store.read(Series(parse("BTC/USD")), 0, 2**40).time[0])
    for timeframe, seconds in (("1h", 3600), ("4h", 4 * 3600), ("12h", 12 * 3600)):
        out = tmp_path / f"{timeframe}.csv"
        assert run(tmp_path, "export", "BTC/USD", "-t", timeframe, "-o", str(out), *clock).returncode == 0
        rows = [line for line in out.read_text().splitlines() if line[0].isdigit()]
        assert parse_time(rows[0].partition(",")[0]) == -(-first // seconds) * seconds, "the first whole bar"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_simulated_bars_are_marked_and_never_imported_as_real(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    done = run(
        tmp_path / "home", "export", "BTC/USD", "-t", "1d", "--from", "2026-01", "--to", "2026-02", "-o", str(out)
    )
    assert "31 simulated bars" in done.stdout
    refused = run(tmp_path / "home", "import", str(out), "--symbol", "BTC/USD")
    assert refused.returncode == 1
    assert "holds simulated bars" in refused.stderr
    assert not (tmp_path / "home" / "data").exists()


@pytest.mark.parametrize("recorded", ["raw", "split", "all"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_export_keeps_what_its_prices_are_adjusted_for(tmp_path: Path, recorded: str, suffix: str) -> None:
    days = bars(Series(AAPL, Timeframe.D1), buckets(AAPL, Timeframe.D1, 1_700_000_000, 1_710_000_000)[0])
    with closing(ParquetStore(tmp_path / "one" / "data")) as store:
        source = Source(Origin.LIVE, "vendor", recorded)
        store.write([days], source, covers=Span(int(days.time[0]), closed_at(days)))
    first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
    done = run(tmp_path / "one", "export", "AAPL", "-o", str(first), FEED="none")
    hint = re.search(r"--adjustment \w+$", done.stderr)
    assert (hint is not None) == (suffix == "csv" and recorded != "raw")
    options = hint[0].split() if hint else []
    assert run(tmp_path / "two", "import", str(first), "--symbol", "AAPL", *options, FEED="none").returncode == 0
    with closing(ParquetStore(tmp_path / "two" / "data")) as store:
        assert store.sources.of(days.series, Span(0, 2**40)) == {Source(Origin.IMPORTED, "import", recorded)}
    assert run(tmp_path / "two", "export", "AAPL", "-o", str(second), FEED="none").returncode == 0
    assert first.read_bytes() == second.read_bytes()


def test_an_export_of_months_that_are_adjusted_in_different_ways_says_so(tmp_path: Path) -> None:
    minutes, month = Series(AAPL), int(parse_time("2024-03-01T14:30:00Z"))
    with closing(ParquetStore(tmp_path / "data")) as store:
        for start, adjustment in ((month, "raw"), (month + 40 * 86400, "split")):
            some = bars(minutes, np.arange(start, start + 600, 60))
            store.write([some], replace(IMPORTED, adjustment=adjustment), covers=Span(start, start + 600))
    done = run(tmp_path, "export", "AAPL", "-t", "1m", "-o", str(tmp_path / "out.parquet"), FEED="none")
    assert (done.returncode, "adjusted in different ways (raw, split)" in done.stderr) == (0, True), done.stderr
    assert b"openbell.adjustment" not in pq.read_schema(tmp_path / "out.parquet").metadata


@pytest.mark.parametrize("timeframe", [Timeframe.M1, Timeframe.M15, Timeframe.H4, Timeframe.D1, Timeframe.W1])
@pytest.mark.parametrize("symbol", ["AAPL", "BTC/USD"])
def test_what_is_exported_imports_again_to_the_same_bytes(tmp_path: Path, symbol: str, timeframe: Timeframe) -> None:
    series = Series(parse(symbol), timeframe)
    start = int(parse_time("2024-03-04"))
    times = buckets(series.instrument, timeframe, start, start + 60 * timeframe.seconds)[0]
    offered = bars(series, times)
    with closing(ParquetStore(tmp_path / "one" / "data")) as store:
        store.write([offered], IMPORTED, covers=Span(int(times[0]), closed_at(offered)))
    name = name_of(timeframe, SHORT)
    for suffix in ("csv", "parquet"):
        first, second, home = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}", tmp_path / suffix
        assert run(tmp_path / "one", "export", symbol, "-t", name, "-o", str(first), FEED="none").returncode == 0
        done = run(home, "import", str(first), "--symbol", symbol, FEED="none")
        assert done.returncode == 0, done.stderr
        assert run(home, "export", symbol, "-t", name, "-o", str(second), FEED="none").returncode == 0
        assert stored(home, series, "data").same_as(offered)
        assert first.read_bytes() == second.read_bytes()


def read(path: Path) -> list[tuple[float, ...]]:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        times = [int(value.timestamp()) for value in table["timestamp"].to_pylist()]
        return list(zip(times, *(table[name].to_pylist() for name in table.column_names[1:]), strict=True))
    with path.open() as file:
        return [(int(parse_time(time)), *map(float, rest)) for time, *rest in list(csv.reader(file))[1:]]


def test_an_imported_day_need_not_wait_until_the_feed_has_published_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Yahoo's day of a coin counts as published a day later; nothing is reached here."""
    monkeypatch.setenv("YAHOO_PROXY_URL", "http://127.0.0.1:9/")
    last = int(time.time()) // 86400 * 86400 - 86400
    days = [np.datetime_as_string(np.datetime64(last - 86400 * back, "s"), "D") for back in reversed(range(40))]
    path = tmp_path / "days.csv"
    rows = [f"{day},{100 + at},{102 + at},{99 + at},{101 + at},5" for at, day in enumerate(days)]
    path.write_text("\n".join(["time,open,high,low,close,volume", *rows, ""]))
    home = tmp_path / "home"
    assert run(home, "import", str(path), "--symbol", "BTC/USD", FEED="none").returncode == 0
    for feed in ("none", "yahoo"):
        done = run(home, "export", "BTC/USD", "-t", "1d", "-o", str(tmp_path / f"{feed}.csv"), FEED=feed)
        assert done.returncode == 0, done.stderr
        assert "40 bars of BTC/USD 1d" in done.stdout, (feed, done.stdout)
