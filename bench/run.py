"""`make bench`: prints figures and ratios, all measured in one run.

Runs in an environment of its own that holds the run-time dependencies only: test tools such as pandas slow the start of
everything that finds them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from guard import guarded

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench-venv"
PYTHON = HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
LOCK = ROOT / "requirements-run.lock"
LONGEST = 1200.0
"""Seconds that one script may take."""


def main() -> int:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBELL_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    stamp = HOME / "locked"
    if not stamp.exists() or stamp.read_bytes() != LOCK.read_bytes():
        print("making .bench-venv …", file=sys.stderr)
        install = [sys.executable, str(ROOT / ".ci" / "install.py"), "--new", str(HOME), str(LOCK)]
        subprocess.run(install, check=True, env=environment)
        stamp.write_bytes(LOCK.read_bytes())
    environment["PYTHONPATH"] = str(ROOT / "src")
    # What is measured starts from nothing, as a client starts it.
    environment["PREFORK"] = "0"
    # The rivals that draw charts, and the real InfluxDB, come with the tests: they live in their environment.
    tests = ROOT / ".venv" / PYTHON.relative_to(HOME)
    failed = 0
    for python, script, words in (
        (PYTHON, "measure.py", sys.argv[1:]),
        (PYTHON, "tool_calls.py", []),
        (PYTHON, "history.py", []),
        (tests, "charts.py", []),
        (PYTHON, "indicators.py", []),
        (PYTHON, "gateway.py", []),
        (PYTHON, "fairness.py", []),
        (PYTHON, "strategies.py", []),
        (tests, "market_data.py", []),
        (tests, "arche.py", []),
        (tests, "chart_image.py", []),
        (tests, "trading.py", []),
        (tests, "past.py", []),
        (tests, "events.py", []),
        (tests, "backtest.py", []),
        (tests, "growth.py", []),
        (tests, "vendors.py", []),
    ):
        command = [str(python), str(ROOT / "bench" / script), *words]
        failed = guarded(command, environment, LONGEST) or failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
