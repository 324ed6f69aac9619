"""A day of a desk on PostgreSQL and InfluxDB: what it holds stays level, and nothing that it was given is lost.

In the ordinary run, an hour of a small desk. In the soak, 24 hours with 500 symbols, 1,000 resting orders and
10,000 alerts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.counts import runs
from tests.stores.influx_server import InfluxServer

SYMBOLS = runs(20, soak=500)
ORDERS = runs(40, soak=1000)
ALERTS = runs(60, soak=10_000)
MINUTES = runs(60, soak=1440)
HISTORY = runs(120, soak=3000)
NEAR = runs(50, soak=2)
EVERY = runs(10, soak=60)
LEVEL = 1.05
FEW = 3
"""Connections, tasks and threads that may be there for a moment; one lost in every minute or hour would be more."""
PATIENCE = runs(120, soak=10_800)


def test_a_day_leaves_a_desk_as_it_was_and_loses_nothing(tmp_path: Path, database: str, influx: InfluxServer) -> None:
    lines = passed(tmp_path, "--postgres", database, "--influx", influx.url)
    assert [each["minute"] for each in lines] == list(range(EVERY, MINUTES + 1, EVERY))
    for each in lines:
        assert each["missing_minutes"] == 0, each
        assert each["wrong"] == [], each
        assert each["warnings"] == {}, each
    assert lines[-1]["fills"] > 0
    assert lines[-1]["fired"] > 0
    # A sixth of the time is for caches and pools to fill.
    first, *later = lines[len(lines) // 6 :]
    for each in later:
        assert each["resident_mb"] <= first["resident_mb"] * LEVEL, (first, each)
        assert each["objects"] <= first["objects"] * LEVEL, (first, each)
        assert files(each) == files(first), (first, each)
        for count in ("threads", "tasks", "connections"):
            assert each[count] <= first[count] + FEW, (count, first, each)
        assert each["handles"]["socket"] <= first["handles"]["socket"] + FEW, (first, each)


def files(found: dict[str, Any]) -> dict[str, int]:
    """Returns the open files and pipes: everything but the connections, which pools open and close."""
    return {name: count for name, count in found["handles"].items() if name != "socket"}


def passed(home: Path, *places: str) -> list[dict[str, Any]]:
    """Returns what was found after every few minutes of a day."""
    sizes = {
        "symbols": SYMBOLS,
        "orders": ORDERS,
        "alerts": ALERTS,
        "minutes": MINUTES,
        "before": MINUTES // 2,
        "history": HISTORY,
        "near": NEAR,
        "every": EVERY,
    }
    words = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    command = [sys.executable, "-m", "tests.operations.day", str(home), *places, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    _begun, *lines = map(json.loads, done.stdout.splitlines())
    return lines
