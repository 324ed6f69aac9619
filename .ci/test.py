"""Run a command that tests, and run the tests that failed once more if they are few: `test.py make test`.

One test among thousands that fails now and then must not hide what the others show, and must not be overlooked either.
If at most three tests fail, they run again alone, in one process without xdist. The run succeeds only if all of them pass
then, and prints each as a line `UNSTABLE: TEST`; what the first run wrote of them stays above it. More failures, an error
during collection, a run that was interrupted and a second failure all fail.

The tests write which of them failed to the file that FAILED_TESTS names (tests/failed_tests.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 3
FAILED = 1
"""Pytest's exit code if it ran all tests and some failed."""


def run(command: list[str]) -> int:
    """The exit code of a run of tests in which few of them had a second try."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "failed"
        code = subprocess.run(command, env={**os.environ, "FAILED_TESTS": str(written)}, check=False).returncode
        if not code:
            return 0
        failed = few_failed(written)
    if not failed:
        return code
    show(f"{len(failed)} failed; once more, alone:", *failed)
    # -rA also shows what a test wrote that passes now: what differs from the first run may be in it.
    again = subprocess.run([sys.executable, "-m", "pytest", "-rA", *failed], check=False).returncode
    if again:
        show("failed again")
        return again
    show(*(f"UNSTABLE: {test} (failed, and passed alone)" for test in failed))
    return 0


def few_failed(written: Path) -> list[str]:
    """The tests to run again: none if there are too many, or if anything else went wrong."""
    if not written.exists():
        return []
    found = json.loads(written.read_text(encoding="utf-8"))
    tests: list[str] = found["tests"]
    return tests if found["exit"] == FAILED and not found["collection"] and len(tests) <= MOST else []


def show(*lines: str) -> None:
    """Write lines at once, between those of the runs."""
    print(*lines, sep="\n", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
