"""Homes that were damaged, moved, copied together or made unwritable: said clearly, nothing wrong served."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.client import OPENBELL, PATIENCE, call, environment, run
from tests.counts import runs
from tests.prefork import Process

STOPS = runs(4, soak=40)
AS_OF = "2026-01-07T15:00:00Z"
AAPL = {"symbol": "AAPL", "timeframe": "5min"}
MONTH = "simulated/data/stocks/1min/AAPL_2026-01.parquet"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that has answered once."""
    assert call(tmp_path, "get_signals", AAPL, AS_OF=AS_OF)["ready"] is True
    return tmp_path


def test_the_first_answer_after_damage_is_right(home: Path) -> None:
    good = call(home, "get_signals", AAPL, AS_OF=AS_OF)
    data = bytearray((home / MONTH).read_bytes())
    data[len(data) // 2] ^= 255
    (home / MONTH).write_bytes(data)
    assert call(home, "get_signals", AAPL, AS_OF=AS_OF) == good
    assert any("AAPL_2026-01" in entry for entry in call(home, "get_storage_info")["set_aside"])
    assert "set_aside" not in call(home, "get_storage_info", AS_OF=AS_OF), "that was later"


def test_a_file_that_was_taken_away_is_fetched_again(home: Path) -> None:
    good = call(home, "get_signals", AAPL, AS_OF=AS_OF)
    (home / MONTH).unlink()
    assert call(home, "get_signals", AAPL, AS_OF=AS_OF) == good
    assert "is gone" in run(home, "doctor", AS_OF=AS_OF).stdout


def test_strange_files_disturb_nobody(home: Path) -> None:
    folder = home / "simulated/data/stocks/1min"
    for name in (
        "AAPL_2026-13.parquet",
        "AAPL_0000-00.parquet",
        "AAPL.parquet",
        "_2026-01.parquet",
        "x.tmp",
        "..parquet",
    ):
        (folder / name).write_bytes(b"")
    (folder / "SPY_2026-01.parquet").mkdir()
    assert call(home, "get_signals", AAPL, AS_OF=AS_OF)["ready"] is True
    assert call(home, "get_signals", {"symbol": "SPY", "timeframe": "1min"}, AS_OF=AS_OF)["ready"] is True
    assert len(call(home, "get_watchlist", AS_OF=AS_OF)["watchlist"]["stocks"]) == 20


def test_simulated_bars_stay_simulated_wherever_they_are_put(home: Path) -> None:
    copied = home / "data/stocks/1min"
    copied.mkdir(parents=True)
    shutil.copy(home / MONTH, copied)
    answer = call(home, "get_signals", AAPL, AS_OF=AS_OF, FEED="none")
    assert answer["code"] == -32002
    refused = run(home, "import", str(home / MONTH), "--symbol", "AAPL")
    assert refused.returncode == 1
    assert "simulated" in refused.stderr
    shutil.rmtree(home / "data")
    (home / "data").symlink_to(home / "simulated/data")
    linked = call(home, "get_signals", AAPL, AS_OF=AS_OF, FEED="none")
    assert linked["code"] == -32004
    assert "simulated" in linked["message"]


def test_a_home_that_cannot_be_written_is_still_read(home: Path, disk_path: Path) -> None:
    # Not in pytest's own folder: another run of pytest that starts meanwhile takes the access of other users away again.
    copy = shutil.copytree(home, disk_path / "frozen")
    good = call(copy, "get_signals", AAPL, AS_OF=AS_OF)
    folders = [copy, *(path for path in copy.rglob("*") if path.is_dir())]
    for path in copy.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    copy.chmod(0o555)
    command = [*OPENBELL, "call", "chart-signals", "get_signals", json.dumps(AAPL)]
    if os.geteuid() == 0:
        # Root may write anywhere: be somebody else.
        for path in (copy, *copy.parents):
            if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001:
                path.chmod(path.stat().st_mode | 0o055)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    done = subprocess.run(
        command, env=environment(copy, AS_OF=AS_OF), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    for path in folders:
        path.chmod(0o755)
    assert done.stdout, f"needs an interpreter and a checkout that other users may read: {done.stderr}"
    assert json.loads(done.stdout) == good


def test_an_unfinished_watchlist_is_never_left_behind(tmp_path: Path) -> None:
    process = Process([*OPENBELL, "up"], env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    process.kill()
    process.communicate()
    assert "@default\n" in (tmp_path / "watchlist.txt").read_text()
    assert [path.name for path in tmp_path.glob(".watchlist*")] == []
    (tmp_path / "watchlist.txt").write_text("")
    assert run(tmp_path, "doctor").returncode == 1


@pytest.mark.parametrize("command", ["up", "collect"])
def test_stopping_in_the_middle_of_the_first_fetch_is_clean(tmp_path: Path, command: str) -> None:
    """Ctrl-C as soon as the first files appear: threads are at work then."""
    for number in range(STOPS):
        home = tmp_path / str(number)
        process = Process(
            [*OPENBELL, command], env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        data = home / "simulated" / "data"
        while not any(data.glob("*/1min/*.parquet")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors


@pytest.mark.parametrize("words", ["call chart-signals get_capabilities", "doctor", "--help", "indicators"])
def test_a_full_disk_behind_standard_output_is_one_line(tmp_path: Path, words: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*OPENBELL, *words.split()],
            env=environment(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "2>&-"])
def test_closed_streams_are_no_reason_to_crash(tmp_path: Path, closed: str) -> None:
    command = " ".join([*OPENBELL, "mcp", "chart-signals", closed, "" if "<" in closed else "</dev/null"])
    done = subprocess.run(
        ["sh", "-c", command], env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_what_was_stored_later_is_not_known_earlier(tmp_path: Path) -> None:
    rows = "".join(f"{1756684800 + 60 * n},1,1,1,1,1\n" for n in range(50))
    (tmp_path / "bars.csv").write_text("timestamp,open,high,low,close,volume\n" + rows)
    assert run(tmp_path, "import", str(tmp_path / "bars.csv"), "-s", "SOL/USD").returncode == 0
    asked = {"symbol": "SOL/USD", "timeframe": "1min"}
    assert call(tmp_path, "get_signals", asked, AS_OF="2020-01-01", FEED="none")["code"] == -32002
    assert call(tmp_path, "get_signals", asked, AS_OF="2025-10-01", FEED="none")["ready"] is True
