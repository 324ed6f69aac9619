"""The coverage of each room: summed over its files, printed, and too little for a pure room fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools.room_coverage import Covered, rooms, table, too_little

from tests.counts import SOAK
from tests.markers import PURE_ROOMS

ROOT = Path(__file__).resolve().parents[1]


def figures(branches: int, taken: int) -> dict[str, Any]:
    counts = {"num_branches": branches, "covered_branches": taken, "num_statements": 10, "covered_lines": 9}
    return {"summary": counts}


def test_files_are_summed_by_room_and_a_room_without_branches_is_whole() -> None:
    files = {
        "/a/openbell/src/openbell/market/bars.py": figures(6, 5),
        "/a/openbell/src/openbell/market/deep/er.py": figures(2, 1),
        "/a/openbell/src/openbell/__init__.py": figures(0, 0),
    }
    found = rooms({"files": files})
    assert found["market"] == Covered(8, 6, 20, 18)
    assert list(found)[-1] == "all"
    assert found["all"] == Covered(8, 6, 30, 27)
    assert table(found)[1:] == [
        "(top)    100.0 %   90.0 %",
        "market    75.0 %   90.0 %",
        "all       75.0 %   90.0 %",
    ]


def test_a_pure_room_with_too_little_is_named() -> None:
    whole = {room: Covered(100, 95, 1, 1) for room in PURE_ROOMS}
    assert too_little({**whole, "gateway": Covered(100, 1, 1, 1)}) == []
    assert too_little({**whole, "market": Covered(1000, 949, 1, 1)}) == ["market: 94.9 % of the branches, wanted 95 %"]


@pytest.mark.skipif(not SOAK, reason="`make covered` measures a whole run: this one takes 19 s of the processor")
def test_a_measured_run_writes_figures_of_pytest_and_of_the_commands_that_it_forks(tmp_path: Path) -> None:
    """One test of `openbell watch` alone: the pure rooms have too little, and the command line has some."""
    environment = {**os.environ, "TESTS_COVERAGE": str(tmp_path / "all")}
    words = ["pytest", "tests/cli/test_watch.py"]
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert len(list(tmp_path.glob("all.*"))) > 1
    joined = subprocess.run(
        [sys.executable, "-m", "tools.room_coverage", str(tmp_path / "all")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = {line.split()[0]: line for line in joined.stdout.splitlines()}
    assert joined.returncode == 1, joined.stdout + joined.stderr
    assert "wanted 95 %" in lines["charts:"]
    assert float(lines["cli"].split()[1]) > 1
