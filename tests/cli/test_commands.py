"""`up`, `collect` and `doctor` as a person meets them."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from openbell.charts.choices import SCALES, STYLES, THEME_NAMES
from openbell.market.sessions import SESSIONS
from tests.client import OPENBELL, PATIENCE, call, environment, run
from tests.prefork import Process


def lines_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """Output lines up to one that holds `wanted`."""
    assert process.stdout
    seen = []
    for line in process.stdout:
        seen.append(line)
        if wanted in line:
            return seen
    raise AssertionError(f"{wanted!r} never came: {seen}")


def start(home: Path, *command: str, **settings: str) -> subprocess.Popen[str]:
    return Process(
        [*OPENBELL, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home, **settings),
    )


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> str:
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    return errors


def test_up_collects_and_says_how_to_connect(tmp_path: Path) -> None:
    process = start(tmp_path, "up")
    text = "".join(lines_until(process, "collecting"))
    assert "SIMULATED" in text
    assert "openbell mcp chart-signals" in text
    assert (tmp_path / "watchlist.txt").read_text().endswith("\n@default\n")
    assert "collector running as" in run(tmp_path, "doctor").stdout
    assert "stored" in stop(process)
    assert "no collector is running" in run(tmp_path, "doctor").stdout


def test_up_watches_what_it_is_told_to(tmp_path: Path) -> None:
    done = run(tmp_path, "up", "--watch", "btcusdt,AAPL,WRONG!")
    assert (done.returncode, "WRONG!" in done.stderr, (tmp_path / "watchlist.txt").exists()) == (1, True, False)
    assert "read-only" in run(tmp_path, "up", "--watch", "AAPL", "--read-only").stderr
    for symbols, watched in (("btcusdt,AAPL", "BTC/USDT\nAAPL\n"), ("MSFT, aapl", "BTC/USDT\nAAPL\nMSFT\n")):
        process = start(tmp_path, "up", "--watch", symbols)
        lines_until(process, "collecting")
        stop(process)
        assert (tmp_path / "watchlist.txt").read_text() == watched
    assert "the feed sim does not deliver it" in run(tmp_path, "up", "--watch", "ZZZZ").stderr


def test_up_shows_a_live_table_on_a_terminal(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    process = Process(
        [*OPENBELL, "up"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment(tmp_path) | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "50"},
    )
    os.close(terminal)
    screen = b""
    deadline = time.monotonic() + PATIENCE
    try:
        while not re.search(rb"BTC/USD.*\d\d\.\d", screen):
            assert time.monotonic() < deadline, screen[-3000:]
            if select.select([controller], [], [], 0.5)[0]:
                screen += os.read(controller, 65536)
        assert b"SIMULATED MARKET" in screen
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            assert time.monotonic() < deadline
            if select.select([controller], [], [], 0.1)[0]:
                try:
                    screen += os.read(controller, 65536)
                except OSError:
                    break
        assert process.wait(PATIENCE) == 0
        assert b"Traceback" not in screen
    finally:
        process.kill()
        process.wait()
        os.close(controller)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_collect_reports_each_batch_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, "collect", AS_OF="2026-01-07T15:00:00Z", REPLAY_SPEED="600")
    assert process.stdout
    reports = [json.loads(process.stdout.readline()) for _ in range(3)]
    assert all(set(report) == {"stored", "through"} for report in reports)
    assert sum(report["stored"] for report in reports) > 0
    assert [report["through"] for report in reports] == sorted(report["through"] for report in reports)
    stop(process, number)


@pytest.mark.parametrize(
    ("command", "feed", "wanted"), [("up", "none", "starting"), ("collect", "sim", '"stored"')], ids=["up", "collect"]
)
def test_a_read_only_collector_makes_nothing(tmp_path: Path, command: str, feed: str, wanted: str) -> None:
    clock = {"AS_OF": "2026-01-07T15:00:00Z", "REPLAY_SPEED": "600"}
    process = start(tmp_path / "home", command, READ_ONLY="1", FEED=feed, **clock)
    lines_until(process, wanted)
    stop(process)
    assert not (tmp_path / "home").exists()


def test_collectors_take_turns(tmp_path: Path) -> None:
    settings = {"AS_OF": "2026-01-07T15:00:00Z", "REPLAY_SPEED": "600"}
    first = start(tmp_path, "collect", **settings)
    assert first.stdout
    first.stdout.readline()
    second = start(tmp_path, "collect", **settings)
    assert second.stderr
    assert "standing by" in second.stderr.readline()
    first.kill()
    first.communicate()
    assert second.stdout
    assert json.loads(second.stdout.readline())["through"]
    second.kill()
    second.communicate()


def test_servers_answer_beside_a_collector(tmp_path: Path) -> None:
    process = start(tmp_path, "collect")
    try:
        for symbol in ("AAPL", "ETH/USD"):
            assert call(tmp_path, "get_signals", {"symbol": symbol, "timeframe": "1min"})["ready"] is True
    finally:
        stop(process)


def test_a_feed_without_a_stream_is_not_an_error(tmp_path: Path) -> None:
    process = start(tmp_path, "up", FEED="none")
    assert "nothing is live" in "".join(lines_until(process, "nothing to collect"))
    stop(process)


def test_doctor_in_an_empty_home(tmp_path: Path) -> None:
    home = tmp_path / "not yet"
    done = run(home, "doctor")
    assert done.returncode == 0
    assert "does not exist yet" in done.stdout
    assert "openbell up" in done.stdout
    assert not home.exists(), "looking changes nothing"


def test_doctor_names_what_is_wrong_and_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "watchlist.txt").write_text("AAPL\nwhat is this\n")
    done = run(tmp_path, "doctor")
    assert done.returncode == 1
    assert "line 2" in done.stdout
    assert f"edit {tmp_path / 'watchlist.txt'}" in done.stdout


def test_doctor_reports_files_that_were_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "stocks" / "1min"
    folder.mkdir(parents=True)
    (folder / "AAPL_2025-09.parquet").write_bytes(b"PAR1 this is no parquet file")
    call(tmp_path, "get_signals", {"symbol": "AAPL", "timeframe": "1min"}, FEED="none")
    done = run(tmp_path, "doctor", FEED="none")
    assert "set aside" in done.stdout
    assert "AAPL_2025-09.parquet.corrupt" in done.stdout
    info = call(tmp_path, "get_storage_info", FEED="none")
    assert "AAPL_2025-09.parquet.corrupt" in info["set_aside"][0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"FEED": "nonsense"}, "OPENBELL_FEED"),
        ({"AS_OF": "yesterday"}, "OPENBELL_AS_OF"),
        ({"REPLAY_SPEED": "10"}, "OPENBELL_AS_OF"),
        ({"SIM_SEED": "x"}, "OPENBELL_SIM_SEED"),
        ({"READ_ONLY": "perhaps"}, "OPENBELL_READ_ONLY"),
        ({"LOG_LEVEL": "shout"}, "OPENBELL_LOG_LEVEL"),
    ],
)
def test_bad_settings_are_one_clear_line(tmp_path: Path, settings: dict[str, str], words: str) -> None:
    done = run(tmp_path, "mcp", "chart-signals", **settings)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_unknown_server_names_those_there_are(tmp_path: Path) -> None:
    done = run(tmp_path, "mcp", "nope")
    assert done.returncode == 1
    assert "chart-signals" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ('{"symbol": "AAPL", "timeframe": "5min", "symbol": "MSFT"}', "symbol"),
        ('{"symbol": "AAPL", "more": [{"a": 1, "a": 1}]}', "a"),
        (r'{"symbol": "AAPL", "s\u0079mbol": "MSFT"}', "symbol"),
    ],
)
def test_call_refuses_arguments_that_repeat_a_key(tmp_path: Path, arguments: str, key: str) -> None:
    done = run(tmp_path, "call", "chart-signals", "get_signals", arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'openbell: the arguments have the key "{key}" 2 times in one object; give it once\n'
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    done = run(tmp_path / "home", "up")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(tmp_path / "home") in done.stderr


def test_the_help_of_chart_lists_every_choice(tmp_path: Path) -> None:
    shown = " ".join(run(tmp_path, "chart", "--help").stdout.split())
    for choices in (STYLES, THEME_NAMES, SCALES, SESSIONS):
        assert f"One of: {' '.join(choices)}." in shown
