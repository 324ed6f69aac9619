"""What `make` installs and when: real make, with an interpreter that notes what it is told instead of fetching packages."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60.0

# `python -m venv --clear DIR` makes DIR/bin/python, another of its kind; each call is a line in ../calls.
STANDIN = """#!/bin/sh
echo "$@" >> calls
if [ "$2" = venv ]; then
  rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/openbell
fi
"""
RUN = ".ci/install.py requirements-run.lock"
TOOLS = ".ci/install.py requirements.lock"
VENV = "-m venv --clear .venv"
DESK = "-m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e ."
TESTS = "-m pytest -n 3 --dist worksteal"


class Checkout:
    """A folder with the project's Makefile and the files that it depends on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("Makefile", "requirements.lock", "requirements-run.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, folder / name)
        standin = folder / "standin"
        standin.write_text(STANDIN)
        standin.chmod(0o755)

    def make(self, target: str) -> list[str]:
        """What the interpreters were told, without the question for the version."""
        calls = self.folder / "calls"
        calls.write_text("")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        command = ["make", "PYTHON=./standin", target]
        subprocess.run(command, cwd=self.folder, env=environment, check=True, capture_output=True, timeout=PATIENCE)
        return [line for line in calls.read_text().splitlines() if not line.startswith("-c ")]

    def edit(self, name: str) -> None:
        """Make a file newer than everything that was made of it."""
        newest = max(path.stat().st_mtime_ns for path in self.folder.rglob("*"))
        os.utime(self.folder / name, ns=(newest + 1, newest + 1))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_up_installs_what_the_desk_runs_on_and_test_adds_the_rest(checkout: Checkout) -> None:
    assert checkout.make("up") == [VENV, RUN, DESK, "up"]
    assert checkout.make("up") == ["up"]
    assert checkout.make("test") == [TOOLS, TESTS]
    assert checkout.make("test") == [TESTS]
    assert checkout.make("up") == ["up"]


def test_test_from_a_fresh_clone_installs_everything_and_up_after_it_nothing(checkout: Checkout) -> None:
    assert checkout.make("test") == [VENV, RUN, DESK, TOOLS, TESTS]
    assert checkout.make("up") == ["up"]


def test_a_changed_lock_makes_the_environment_anew(checkout: Checkout) -> None:
    checkout.make("test")
    checkout.edit("requirements.lock")
    assert checkout.make("test") == [VENV, RUN, DESK, TOOLS, TESTS]
    assert checkout.make("test") == [TESTS]
    checkout.edit("requirements-run.lock")
    assert checkout.make("up") == [VENV, RUN, DESK, "up"]
    assert checkout.make("test") == [TOOLS, TESTS]


def test_a_changed_pyproject_installs_the_desk_again_and_nothing_else(checkout: Checkout) -> None:
    checkout.make("test")
    checkout.edit("pyproject.toml")
    assert checkout.make("test") == [DESK, TESTS]


def pins(lock: str) -> dict[str, set[str]]:
    """The packages of a lock with their versions; there may be one for each range of Pythons."""
    found: dict[str, set[str]] = {}
    for name, pinned in re.findall(r"^([A-Za-z0-9_.-]+)(?:\[.*?\])?==(\S+)", (ROOT / lock).read_text(), re.MULTILINE):
        found.setdefault(name.lower(), set()).add(pinned)
    return found


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9_.-]", each)[0].lower() for each in requirements}


def test_the_run_lock_is_the_part_of_the_whole_lock_that_the_desk_and_its_feeds_need() -> None:
    run, whole = pins("requirements-run.lock"), pins("requirements.lock")
    assert run.items() <= whole.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    assert names([*project["project"]["dependencies"], *extras["alpaca"], *extras["ccxt"]]) <= set(run)
    tools = names([each for each in project["dependency-groups"]["dev"] if isinstance(each, str)])
    assert tools <= set(whole)
    assert tools & set(run) == {"jsonschema"}  # the SDK needs it too


def install(lock: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "install.py"), str(lock)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_an_installation_shows_how_far_it_is(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text(
        f"numpy=={version('numpy')} --hash=sha256:{'0' * 64}\n"
        f"not-for-us==1 ; python_version < '3' --hash=sha256:{'0' * 64}\n"
    )
    done = install(lock)
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == ["some.lock: package 1 of 1, numpy", "some.lock: installed"]


def test_a_terminal_shows_every_package_on_one_line(tmp_path: Path) -> None:
    packages = ("numpy", "pyarrow", "pytest")
    lock = tmp_path / "some.lock"
    lock.write_text("".join(f"{name}=={version(name)} --hash=sha256:{'0' * 64}\n" for name in packages))
    ours, theirs = os.openpty()
    command = [sys.executable, str(ROOT / ".ci" / "install.py"), str(lock)]
    subprocess.run(command, stdout=theirs, timeout=PATIENCE, check=True)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    lines = [line.strip() for line in shown.split("\r\033[K")[1:]]
    progress = [line for line in lines if " of 3, " in line]
    assert progress[:3] == [f"some.lock: package {n} of 3, {name}" for n, name in enumerate(packages, 1)]
    assert lines[-1] == "some.lock: installed"
    assert shown.count("\n") == 1


# A pip that stops after its first package until it may go on.
SLOW_PIP = """
import pathlib, sys, time
print("Collecting numpy==2.0", flush=True)
deadline = time.monotonic() + 60
while not pathlib.Path("go").exists() and time.monotonic() < deadline:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "log"])
def test_each_package_is_shown_while_pip_still_works(tmp_path: Path, terminal: bool) -> None:
    (tmp_path / "some.lock").write_text("numpy==2.0\n")
    (tmp_path / "pip.py").write_text(SLOW_PIP)
    ours, theirs = os.openpty() if terminal else os.pipe()
    command = [sys.executable, str(ROOT / ".ci" / "install.py"), "some.lock"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(command, stdout=theirs, cwd=tmp_path, env=environment) as running:
        os.close(theirs)
        ready, _, _ = select.select([ours], [], [], PATIENCE / 2)
        shown = os.read(ours, 65536).decode() if ready else ""
        (tmp_path / "go").touch()
        assert running.wait(PATIENCE) == 0
    os.close(ours)
    assert "some.lock: package 1 of 1, numpy" in shown


def test_an_installation_that_fails_shows_what_pip_wrote(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text(f"--no-index\nnot-there==1 --hash=sha256:{'0' * 64}\n")
    done = install(lock)
    assert done.returncode != 0
    assert "No matching distribution found for not-there==1" in done.stdout
    assert "some.lock: installed" not in done.stdout
