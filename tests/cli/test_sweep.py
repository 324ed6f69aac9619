"""The command sweep: Ctrl-C ends it and its processes, and what it cannot do is said in one line before the work."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.cli.in_process import command
from tests.client import OPENBELL, PATIENCE, environment

AS_OF = ("--as-of", "2026-03-02T15:00:00Z")


def test_ctrl_c_ends_the_command_and_its_processes(tmp_path: Path) -> None:
    words = ["sweep", "VOLUME_PROFILE", "BTC/USD", "-t", "1h", "--from", "2025", "--jobs", "2", *AS_OF]
    with subprocess.Popen(
        [*OPENBELL, *words, "-o", str(tmp_path / "out.csv")],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            family, deadline = psutil.Process(process.pid), time.monotonic() + PATIENCE
            while len(workers := family.children(recursive=True)) < 4:  # two servers and two workers
                assert time.monotonic() < deadline, "no process starts"
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it, to all of them
            _, errors = process.communicate(timeout=PATIENCE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 130
    # Before it, Python itself may report an interrupt that arrived in the middle of an import.
    assert errors.endswith("openbell: interrupted: nothing was written\n"), errors
    assert "sweep" not in errors.removesuffix("openbell: interrupted: nothing was written\n")
    assert not (tmp_path / "out.csv").exists()
    _, alive = psutil.wait_procs(workers, PATIENCE)
    assert alive == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--by", "sharp"), "did you mean 'sharpe'"),
        (("--set", "fastPeriod"), "write NAME=VALUES"),
        (("--set", "fastPeriod=6..x"), "write whole numbers"),
        (("--set", "fastPeriod=2"), "must be between 6 and 19"),
        (("--set", "fast=7"), "has no parameter 'fast'"),
        (("--most", "0"), "between 1 and 100,000"),
        (("--jobs", "0"), "jobs must be between 1 and 256"),
        (("-o", "out.txt"), "must end in .csv"),
        (("-o", "no/such/folder/out.csv"), "does not exist"),
        (("-t", "7m"), "Invalid timeframe"),
    ],
)
def test_what_it_cannot_do_is_one_line(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    code, out, errors = command(tmp_path, "sweep", "MACD_CROSSOVER", "BTC/USD", *words, *AS_OF)
    assert (code, out, errors.count("\n")) == (1, "", 1)
    assert why in errors


def test_a_sample_is_named_as_one(tmp_path: Path) -> None:
    words = ("sweep", "MACD_CROSSOVER", "BTC/USD", "--most", "5", "--by", "calmar", *AS_OF)
    code, out, _ = command(tmp_path, *words)
    assert code == 0
    assert "5 of 3,234 combinations were tried. The best 5 by calmar:" in out
    assert "Holding BTC/USD returned" in out
    assert "probability of overfitting" in out
