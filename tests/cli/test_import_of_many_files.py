"""`openbell import` of many files in one command: they are one history, and the output stays short."""

from __future__ import annotations

import json
import subprocess
import zipfile
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore, Span
from tests.client import run
from tests.stores.samples import at
from tests.stores.samples import bars as bars_of

IMPORTED, LIVE = Source(Origin.IMPORTED, "import"), Source(Origin.LIVE, "alpaca")
AAPL = Series(parse("AAPL"), Timeframe.D1)
DAYS = [int(each) for each in buckets(AAPL.instrument, Timeframe.D1, at("2025-01-02"), at("2025-08-07"))[0]]
"""148 sessions."""
YAHOO = "Date,Open,High,Low,Close,Adj Close,Volume"
EVER = 2**40


def store_of(home: Path) -> BarStore:
    return Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_FEED": "none"})).store


def row(time: int, symbol: str = "AAPL") -> str:
    """One day as Yahoo writes it: the close rises and falls by the day and the symbol."""
    close = 100 + (time // 86400 * 7 + sum(symbol.encode())) % 41
    date = bars_of(AAPL, [time]).time.astype("datetime64[s]")[0].astype("datetime64[D]")
    return f"{date},{close - 1},{close + 2},{close - 3},{close},{close},{1000 + time % 977}"


def file_of(path: Path, times: list[int], symbol: str = "AAPL") -> Path:
    path.write_text("\n".join([YAHOO, *(row(time, symbol) for time in times), ""]))
    return path


def load_files(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    done = run(home, "import", *map(str, words), FEED="none")
    assert done.returncode == 0, done.stderr
    return done


def candles(home: Path, symbol: str, timeframe: str) -> list[dict[str, object]]:
    """What an agent gets, as the command line prints it."""
    arguments = json.dumps({"symbol": symbol, "timeframe": timeframe, "limit": 300})
    done = run(home, "call", "market-data", "get_candles", arguments, FEED="none")
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)["data"]["items"]
    return found


def exported(home: Path, symbol: str, timeframe: str) -> str:
    file = home.with_suffix(".csv")
    done = run(home, "export", symbol, "-t", timeframe, "-o", str(file), FEED="none")
    assert done.returncode == 0, done.stderr
    return file.read_text()


def contents(home: Path) -> dict[str, object]:
    """All stored bars and what is covered."""
    with closing(store_of(home)) as store:
        return {
            each.name: (
                [column.tolist() for column in store.read(each, 0, EVER).columns()],
                store.gaps(each, Span(0, EVER)),
            )
            for each in store.stored()
        }


def test_two_files_of_one_series_in_one_command_equal_two_commands_in_either_order(tmp_path: Path) -> None:
    first, second = (file_of(tmp_path / f"{n}.csv", days) for n, days in enumerate([DAYS[:30], DAYS[30:63]]))
    load_files(tmp_path / "one", first, second, "--symbol", "AAPL")
    load_files(tmp_path / "turned", second, first, "--symbol", "AAPL")
    for each in (first, second):
        load_files(tmp_path / "two", each, "--symbol", "AAPL")
    wanted = contents(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "turned") == wanted
    assert candles(tmp_path / "one", "AAPL", "1d") == candles(tmp_path / "two", "AAPL", "1d")
    assert len(candles(tmp_path / "turned", "AAPL", "1d")) == 63


def test_files_that_replace_bars_of_a_feed_leave_those_between_the_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with closing(store_of(tmp_path / name)) as store:
            store.write([bars_of(AAPL, DAYS)], LIVE, covers=Span(DAYS[0], DAYS[-1] + 86400))
    first, second = (file_of(tmp_path / f"{n}.csv", days) for n, days in enumerate([DAYS[:10], DAYS[80:90]]))
    options = ("--symbol", "AAPL", "--replace", "--adjustment", "raw")
    load_files(tmp_path / "one", second, first, *options)
    for each in (first, second):
        load_files(tmp_path / "two", each, *options)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    with closing(store_of(tmp_path / "one")) as store:
        assert store.read(AAPL, 0, EVER).time.tolist() == DAYS
        assert store.gaps(AAPL, Span(DAYS[0], DAYS[-1])) == []


def test_files_that_together_hold_all_bars_replace_them_with_others_of_another_adjustment(tmp_path: Path) -> None:
    for name in ("split", "whole"):
        with closing(store_of(tmp_path / name)) as store:
            store.write([bars_of(AAPL, DAYS[:60])], LIVE, covers=Span(DAYS[0], DAYS[60]))
    parts = [file_of(tmp_path / f"{n}.csv", days) for n, days in enumerate([DAYS[20:45], DAYS[45:70], DAYS[:20]])]
    load_files(tmp_path / "whole", file_of(tmp_path / "whole.csv", DAYS[:70]), "--symbol", "AAPL", "--replace")
    load_files(tmp_path / "split", *parts, "--symbol", "AAPL", "--replace")
    assert contents(tmp_path / "split") == contents(tmp_path / "whole")
    assert len(candles(tmp_path / "split", "AAPL", "1d")) == 70

    words = ("--symbol", "AAPL", "--adjustment", "raw", "--replace")
    refused = run(tmp_path / "split", "import", *map(str, parts[:2]), *words, FEED="none")
    assert refused.returncode == 1
    assert "the store has 20 bars of AAPL 1d that are not in the file" in refused.stderr


def test_two_members_of_a_zip_file_are_one_history(tmp_path: Path) -> None:
    members = [file_of(tmp_path / f"{n}.csv", days) for n, days in enumerate([DAYS[30:63], DAYS[:30]])]
    packed, whole = tmp_path / "both.zip", file_of(tmp_path / "whole.csv", DAYS[:63])
    with zipfile.ZipFile(packed, "w") as archive:
        for each in members:
            archive.write(each, each.name)
    load_files(tmp_path / "packed", packed, "--symbol", "AAPL")
    load_files(tmp_path / "plain", whole, "--symbol", "AAPL")
    assert contents(tmp_path / "packed") == contents(tmp_path / "plain")


def test_148_files_of_one_day_each_of_20_symbols_equal_one_file_each(tmp_path: Path) -> None:
    symbols = [f"SYM{chr(65 + n)}" for n in range(20)]
    daily, whole = tmp_path / "daily", tmp_path / "whole"
    daily.mkdir()
    whole.mkdir()
    header = "Ticker,Date,Open,High,Low,Close,Volume"
    for number, time in enumerate(DAYS):
        cells = [(each, row(time, each).split(",")) for each in symbols]
        rows = [",".join([each, *parts[:5], parts[6]]) for each, parts in cells]
        (daily / f"{number:03}.csv").write_text("\n".join([header, *rows, ""]))
    for each in symbols:
        days = [row(time, each).split(",") for time in DAYS]
        (whole / f"{each}.csv").write_text(
            "\n".join([header, *(",".join([each, *cells[:5], cells[6]]) for cells in days), ""])
        )

    many = load_files(tmp_path / "many", daily / "*.csv")
    load_files(tmp_path / "few", whole / "*.csv")

    assert len(DAYS) == 148
    assert contents(tmp_path / "many") == contents(tmp_path / "few")
    assert candles(tmp_path / "many", "SYMC", "1d") == candles(tmp_path / "few", "SYMC", "1d")
    assert exported(tmp_path / "many", "SYMC", "1w") == exported(tmp_path / "few", "SYMC", "1w")
    lines = many.stdout.splitlines()
    assert len(lines) == len(symbols), "one line for each symbol"
    assert lines[0].startswith("imported 148 bars of SYMA, 1d, 2025-01-02")
    assert "from 148 files" in lines[0]
    assert len(many.stderr.splitlines()) <= 5, many.stderr


def test_hours_in_files_of_one_bar_each_equal_one_file_of_them_and_one_alone_is_refused(tmp_path: Path) -> None:
    rows = [f"2025-06-02T{hour:02}:00:00Z,10,{12 + hour % 3},9,{10 + hour % 2},{hour}" for hour in range(24)]
    parts = [tmp_path / f"{hour:02}.csv" for hour in range(24)]
    for path, row in [*zip(parts, rows, strict=True), (tmp_path / "whole.csv", "\n".join(rows))]:
        path.write_text(f"timestamp,open,high,low,close,volume\n{row}\n")
    whole = load_files(tmp_path / "whole", tmp_path / "whole.csv", "--symbol", "BTC/USD")
    many = load_files(tmp_path / "many", *reversed(parts), "--symbol", "BTC/USD")
    assert contents(tmp_path / "many") == contents(tmp_path / "whole")
    assert many.stdout.splitlines()[0].startswith("imported 24 bars of BTC/USD, 1h, ")
    assert "24 bars of BTC/USD, 1h, " in whole.stdout

    shown = run(tmp_path / "home", "import", *map(str, parts), "--symbol", "BTC/USD", "--check", FEED="none")
    assert shown.stdout.count("1 bar of BTC/USD, 1h, ") == 24
    alone = run(tmp_path / "home", "import", str(parts[0]), "--symbol", "BTC/USD", FEED="none")
    assert alone.returncode == 1
    assert "holds one bar, so the timeframe cannot be told: add --timeframe" in alone.stderr
    assert not (tmp_path / "home").exists()


def faulty(home: Path) -> list[Span]:
    """A home in which all days are stored, and only those of the last file are covered."""
    with closing(store_of(home)) as store:
        days = bars_of(AAPL, DAYS)
        last = Span(DAYS[100], DAYS[-1] + 86400)
        store.write([days], IMPORTED, covers=last)
        return store.gaps(AAPL, Span(DAYS[0], DAYS[-1]))


def test_doctor_finds_imported_bars_that_are_left_out_and_mends_them(tmp_path: Path) -> None:
    assert faulty(tmp_path) == [Span(DAYS[0], DAYS[100])]
    assert len(candles(tmp_path, "AAPL", "1d")) == 48

    found = run(tmp_path, "doctor", FEED="none")
    assert found.returncode == 1
    assert "imported bars of AAPL 1d between 2025-01-02 and 2025-05-29 are stored, but left out" in found.stdout
    assert "openbell doctor --mend" in found.stdout

    mended = run(tmp_path, "doctor", "--mend", FEED="none")
    assert "mended: imported bars of AAPL 1d" in mended.stdout
    assert "left out when bars are read" not in run(tmp_path, "doctor", FEED="none").stdout
    assert len(candles(tmp_path, "AAPL", "1d")) == 148


def test_doctor_mends_imported_bars_beside_those_of_a_feed_and_leaves_the_feed_s_alone(tmp_path: Path) -> None:
    with closing(store_of(tmp_path)) as store:
        store.write([bars_of(AAPL, DAYS[:60])], IMPORTED, covers=Span(DAYS[40], DAYS[60]))
        store.write([bars_of(AAPL, DAYS[60:])], LIVE, covers=Span(DAYS[60], DAYS[100]))  # the rest is asked for again
    run(tmp_path, "doctor", "--mend", FEED="none")
    with closing(store_of(tmp_path)) as store:
        assert store.gaps(AAPL, Span(DAYS[0], DAYS[-1])) == [Span(DAYS[100], DAYS[-1])]


def test_importing_the_files_again_mends_a_home_as_well(tmp_path: Path) -> None:
    faulty(tmp_path / "home")
    path = file_of(tmp_path / "again.csv", DAYS)
    load_files(tmp_path / "home", path, "--symbol", "AAPL", "--adjustment", "raw")
    with closing(store_of(tmp_path / "home")) as store:
        assert store.gaps(AAPL, Span(DAYS[0], DAYS[-1])) == []


def test_days_that_were_lost_stay_a_gap_when_others_are_imported(tmp_path: Path) -> None:
    """Bars before and after a loss do not show that nothing was traded in it."""
    home = tmp_path / "home"
    load_files(home, file_of(tmp_path / "a.csv", DAYS[:40]), "--symbol", "AAPL", "--adjustment", "raw")
    with closing(store_of(home)) as store:
        days = store.read(AAPL, 0, EVER)
    (path,) = (home / "data" / "stocks" / "1d").glob("AAPL_*.parquet")
    kept = pq.read_table(path)
    lacking = [n for n in range(len(days)) if n not in (20, 21)]
    pq.write_table(kept.take(lacking), path)
    load_files(home, file_of(tmp_path / "b.csv", DAYS[40:60]), "--symbol", "AAPL", "--adjustment", "raw")
    with closing(store_of(home)) as store:
        assert store.gaps(AAPL, Span(DAYS[0], DAYS[59]))
    assert "left out when bars are read" not in run(home, "doctor", FEED="none").stdout


def test_bars_that_several_files_have_are_counted_once_and_named_if_they_differ(tmp_path: Path) -> None:
    header = "timestamp,open,high,low,close,volume"
    rows = [f"2025-06-02T{hour:02}:00:00Z,10,14,9,{10 + hour % 2},{hour}" for hour in range(24)]
    other = [row.replace(",14,9,1", ",14,9,11.") if at < 3 else row for at, row in enumerate(rows)]
    for name, some in (("a", rows[:20]), ("b", rows[10:]), ("c", other[:5])):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *some, ""]))
    files = [tmp_path / f"{name}.csv" for name in "abc"]
    equal = load_files(tmp_path / "equal", *files[:2], "--symbol", "BTC/USD")
    assert equal.stdout.startswith("imported 24 bars of BTC/USD, 1h, ")
    assert "different closes" not in equal.stderr
    differing = load_files(tmp_path / "differing", *files, "--symbol", "BTC/USD")
    assert differing.stdout.startswith("imported 24 bars of BTC/USD, 1h, ")
    assert (
        "several of these files have 3 bars of BTC/USD 1h with different closes: the last file of the command counts"
        in (differing.stderr)
    )
