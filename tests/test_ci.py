"""What `.ci/test.py` does with tests that fail: real runs of pytest on a few tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = "-p no:cacheprovider -p no:schemathesis -p no:hypothesispytest -p no:anyio"
"""These take longer to load than everything else here."""

ONCE = """
import os, pathlib, pytest

WORDS = ["two [words] - here", "a::b", "größe/of.py", "plain"]

@pytest.mark.parametrize("word", WORDS)
def test_once(word):
    assert "FAILED_TESTS" not in os.environ
    tried = pathlib.Path(f"tried-{WORDS.index(word)}")
    if not tried.exists() and WORDS.index(word) < COUNT:
        tried.touch()
        raise AssertionError("the first time")

@pytest.fixture
def ready():
    yield
    if COUNT == 2 and not pathlib.Path("ended").exists():
        pathlib.Path("ended").touch()
        raise OSError("at its first end")

def test_teardown(ready):
    pass
"""
ALWAYS = "def test_always(): assert False, 'every time'\n"
UNREADABLE = "import no_module_of_this_name\n"


def ci(folder: Path, *options: str, once: int = 0, other: str = "") -> subprocess.CompletedProcess[str]:
    """What continuous integration writes if so many tests fail when they first run, besides another module."""
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = {PLUGINS}\n")
    (folder / "conftest.py").write_text('pytest_plugins = ["tests.failed_tests"]\n')
    (folder / "test_some.py").write_text(f"COUNT = {once}\n{ONCE}", encoding="utf-8")
    (folder / "test_other.py").write_text(other)
    command = [sys.executable, str(ROOT / ".ci" / "test.py"), sys.executable, "-m", "pytest", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120, check=False
    )


def sessions(done: subprocess.CompletedProcess[str]) -> int:
    return done.stdout.count("test session starts")


def test_tests_that_pass_run_once(tmp_path: Path) -> None:
    done = ci(tmp_path)
    assert done.returncode == 0, done.stdout
    assert sessions(done) == 1
    assert "UNSTABLE" not in done.stdout


def test_three_tests_that_pass_alone_are_named_and_what_failed_first_is_shown(tmp_path: Path) -> None:
    done = ci(tmp_path, "-n", "2", once=2)
    assert done.returncode == 0, done.stdout
    assert sessions(done) == 2
    assert "created: 2/2 workers" in done.stdout
    named = [line for line in done.stdout.splitlines() if line.startswith("UNSTABLE: ")]
    tests = ["test_once[two [words] - here]", "test_once[a::b]", "test_teardown"]
    assert sorted(named) == sorted(f"UNSTABLE: test_some.py::{test} (failed, and passed alone)" for test in tests)
    assert "AssertionError: the first time" in done.stdout
    assert "OSError: at its first end" in done.stdout
    assert "3 passed" in done.stdout


def test_a_test_that_fails_again_fails(tmp_path: Path) -> None:
    done = ci(tmp_path, once=1, other=ALWAYS)
    assert done.returncode == 1, done.stdout
    assert sessions(done) == 2
    assert "1 failed, 1 passed" in done.stdout
    assert "UNSTABLE" not in done.stdout


def test_four_failures_are_not_tried_again(tmp_path: Path) -> None:
    done = ci(tmp_path, once=3, other=ALWAYS)
    assert done.returncode == 1, done.stdout
    assert sessions(done) == 1


def test_a_module_that_cannot_be_read_fails_at_once(tmp_path: Path) -> None:
    done = ci(tmp_path, "--continue-on-collection-errors", once=1, other=UNREADABLE)
    assert done.returncode == 1, done.stdout
    assert sessions(done) == 1
    assert "1 failed" in done.stdout
