"""Write which tests failed to the file that FAILED_TESTS names, for .ci/test.py, which runs them again.

The names in a JUnit file and in pytest's summary are not always those that pytest takes as arguments.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

FILE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Takes the variable out of the environment: a pytest that a test starts must not write there."""
    if path := os.environ.pop("FAILED_TESTS", None):
        config.stash[FILE] = path


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: pytest.ExitCode, config: pytest.Config
) -> None:
    """Writes the names of tests that failed, in themselves or in a fixture, and of modules that could not be read."""
    if FILE not in config.stash:
        return
    reports = [*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())]
    tests = dict.fromkeys(each.nodeid for each in reports if isinstance(each, pytest.TestReport))
    modules = dict.fromkeys(each.nodeid for each in reports if isinstance(each, pytest.CollectReport))
    found = {"exit": int(exitstatus), "tests": list(tests), "collection": list(modules)}
    Path(config.stash[FILE]).write_text(json.dumps(found), encoding="utf-8")
