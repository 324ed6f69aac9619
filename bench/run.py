"""`make bench`: prints figures and ratios, all measured in one run.

Runs in an environment of its own that holds the run-time dependencies only: test tools such as pandas slow the start of
everything that finds them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench-venv"
PYTHON = HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
LOCK = ROOT / "requirements-run.lock"


def main() -> int:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBELL_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    stamp = HOME / "locked"
    if not stamp.exists() or stamp.read_bytes() != LOCK.read_bytes():
        print("making .bench-venv …", file=sys.stderr)
        venv.create(HOME, clear=True, with_pip=True)
        pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True, env=environment)
        stamp.write_bytes(LOCK.read_bytes())
    environment["PYTHONPATH"] = str(ROOT / "src")
    command = [str(PYTHON), str(ROOT / "bench" / "measure.py"), *sys.argv[1:]]
    failed = subprocess.run(command, env=environment, check=False).returncode
    # The rivals that draw charts, and the real InfluxDB, come with the tests: they live in their environment.
    for script in ("charts.py", "market_data.py", "trading.py", "past.py"):
        command = [str(ROOT / ".venv" / PYTHON.relative_to(HOME)), str(ROOT / "bench" / script)]
        failed = subprocess.run(command, env=environment, check=False).returncode or failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
