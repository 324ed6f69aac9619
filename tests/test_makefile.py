"""What `make` installs and when: real make, with an interpreter that notes what it is told instead of fetching packages."""

from __future__ import annotations

import hashlib
import os
import re
import select
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.markers import PURE_ROOMS

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60.0

# `.ci/install.py --new .venv …` makes .venv/bin/python, another of its kind; each call is a line in ../calls.
STANDIN = """#!/bin/sh
echo "$@" >> calls
if [ "$2" = --new ]; then
  rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/openbell
fi
"""
RUN = ".ci/install.py --new .venv requirements-run.lock"
DESK = ".ci/install.py .venv --no-deps --no-build-isolation -e ."
TOOLS = ".ci/install.py .venv requirements.lock"
TESTS = "-m pytest -n 4 --dist worksteal"
QUICK = f"-m pytest -m pure {' '.join(f'tests/{room}' for room in PURE_ROOMS)}"
COVERED = [TESTS, "-m tools.room_coverage build/coverage/all"]


class Checkout:
    """A folder with the project's Makefile and the files that it depends on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".ci").mkdir()
        for name in ("Makefile", "requirements.lock", "requirements-run.lock", "pyproject.toml", ".ci/installers.lock"):
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
    assert checkout.make("up") == [RUN, DESK, "up"]
    assert checkout.make("up") == ["up"]
    assert checkout.make("test") == [TOOLS, TESTS]
    assert checkout.make("test") == [TESTS]
    assert checkout.make("up") == ["up"]


def test_quick_runs_the_pure_rooms_in_one_process_and_check_measures_what_all_tests_cover(checkout: Checkout) -> None:
    checkout.make("test")
    assert checkout.make("quick") == [QUICK]
    assert checkout.make("covered") == COVERED
    dry = subprocess.run(
        ["make", "--dry-run", "check"], cwd=checkout.folder, check=True, capture_output=True, text=True
    )
    commands = [line.strip() for line in dry.stdout.splitlines()]
    assert f"TESTS_COVERAGE=build/coverage/all .venv/bin/python {TESTS}" in commands
    assert f".venv/bin/python {COVERED[1]}" in commands


def test_test_from_a_fresh_clone_installs_everything_and_up_after_it_nothing(checkout: Checkout) -> None:
    assert checkout.make("test") == [RUN, DESK, TOOLS, TESTS]
    assert checkout.make("up") == ["up"]


def test_a_changed_lock_makes_the_environment_anew(checkout: Checkout) -> None:
    checkout.make("test")
    checkout.edit("requirements.lock")
    assert checkout.make("test") == [RUN, DESK, TOOLS, TESTS]
    assert checkout.make("test") == [TESTS]
    checkout.edit("requirements-run.lock")
    assert checkout.make("up") == [RUN, DESK, "up"]
    assert checkout.make("test") == [TOOLS, TESTS]
    checkout.edit(".ci/installers.lock")
    assert checkout.make("up") == [RUN, DESK, "up"]


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


# Installing: real environments, with a uv and a pip that note what they are told.

PYTHON = "bin/python"
UV = """#!{python}
import pathlib, sys, time
if "--version" in sys.argv:
    sys.exit()
pathlib.Path("told").write_text(" ".join(sys.argv[1:]))
print("Resolved 2 packages in 9ms", "Downloading numpy (16.1MiB)", sep="\\n", flush=True)
deadline = time.monotonic() + 60
while not pathlib.Path("go").exists() and time.monotonic() < deadline:
    time.sleep(0.01)
print("what uv says")
sys.exit({code})
"""
PIP = """
import pathlib, sys
if sys.argv[1:] == ["config", "list"]:
    print(pathlib.Path("configured").read_text())
elif "--version" not in sys.argv:
    with pathlib.Path("pip-told").open("a") as told:
        print(*sys.argv[1:], file=told)
    print("Collecting numpy==2.0", "what pip says", sep="\\n")
    sys.exit({code})
"""


class Environment:
    """A new environment, the uv in it, and the pip of the interpreter that runs `.ci/install.py`."""

    def __init__(self, folder: Path, *, uv: int | None = 0, pip: int = 0) -> None:
        self.folder, self.path = folder, folder / "environment"
        venv.create(self.path, with_pip=False)
        (folder / "pip.py").write_text(PIP.format(code=pip))
        (folder / "configured").touch()
        (folder / "some.lock").write_text("numpy==2.0\n")
        (folder / "go").touch()
        if uv is not None:
            program = self.path / "bin" / "uv"
            program.write_text(UV.format(python=sys.executable, code=uv))
            program.chmod(0o755)
        # A copy outside the project finds no other uv.
        shutil.copytree(ROOT / ".ci", folder / "project" / ".ci")

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(self.folder / "project" / ".ci" / "install.py"), "environment", "some.lock"]

    @property
    def environ(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("UV_", "PIP_"))}
        return {**kept, "PYTHONPATH": str(self.folder), "PYTHONUNBUFFERED": ""}

    def install(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command,
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def told(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


def test_uv_installs_a_lock_with_its_hashes_and_shows_how_far_it_is(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    done = environment.install()
    assert done.returncode == 0, done
    steps = ["resolving", "resolved 2 packages", "fetching numpy", "installed"]
    assert done.stdout.splitlines() == [f"some.lock: {step}" for step in steps]
    assert environment.told("told") == [f"pip install --python environment/{PYTHON} --require-hashes -r some.lock"]
    assert environment.told("pip-told") == []


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "log"])
def test_each_step_is_shown_while_uv_still_works(tmp_path: Path, terminal: bool) -> None:
    environment = Environment(tmp_path)
    (tmp_path / "go").unlink()
    ours, theirs = os.openpty() if terminal else os.pipe()
    shown = ""
    with subprocess.Popen(environment.command, stdout=theirs, cwd=tmp_path, env=environment.environ) as running:
        os.close(theirs)
        while "fetching numpy" not in shown and select.select([ours], [], [], PATIENCE / 2)[0]:
            shown += os.read(ours, 65536).decode()
        (tmp_path / "go").touch()
        assert running.wait(PATIENCE) == 0
    assert "some.lock: fetching numpy" in shown
    shown += os.read(ours, 65536).decode()
    os.close(ours)
    assert shown.count("\n") == (1 if terminal else 4)


def test_uv_asks_the_indexes_that_pip_is_configured_for(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    (tmp_path / "configured").write_text(
        ":env:.find-links='/wheels'\nglobal.index-url='http://mirror/simple'\nglobal.find-links='/a'\n"
        "install.extra-index-url='\\nhttp://one/simple\\nhttp://two/simple'\nglobal.timeout='9'\n"
    )
    program = environment.path / "bin" / "uv"
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] || env | grep ^UV_ > {tmp_path / 'told'}\n")
    assert environment.install().returncode == 0
    assert sorted(environment.told("told")) == [
        "UV_DEFAULT_INDEX=http://mirror/simple",
        "UV_FIND_LINKS=/wheels",
        "UV_INDEX=http://one/simple http://two/simple",
        "UV_INDEX_STRATEGY=unsafe-best-match",
    ]


def test_pip_installs_where_uv_fails_and_what_uv_wrote_is_shown(tmp_path: Path) -> None:
    environment = Environment(tmp_path, uv=2)
    done = environment.install()
    assert done.returncode == 0, done
    assert "some.lock: uv failed, pip tries it:" in done.stdout
    assert "what uv says" in done.stdout
    (told,) = environment.told("pip-told")
    assert told.endswith("--require-hashes -r some.lock")


def test_pip_installs_where_uv_cannot_be_had(tmp_path: Path) -> None:
    environment = Environment(tmp_path, uv=None)
    done = environment.install()
    assert done.returncode == 0, done
    assert "uv cannot be had here: pip installs" in done.stdout
    uv, lock = environment.told("pip-told")
    assert uv.endswith("installers.lock")
    assert lock.endswith("--require-hashes -r some.lock")


def test_an_installation_that_fails_shows_what_both_wrote(tmp_path: Path) -> None:
    done = Environment(tmp_path, uv=2, pip=3).install()
    assert done.returncode == 3
    assert "what uv says" in done.stdout
    assert "what pip says" in done.stdout
    assert "some.lock: installed" not in done.stdout


def test_the_installers_are_pinned_with_hashes() -> None:
    lock = (ROOT / ".ci" / "installers.lock").read_text()
    assert set(pins(".ci/installers.lock")) == {"pip", "uv"}
    assert lock.count("--hash=sha256:") > 2


def test_the_pinned_uv_installs_a_real_wheel_and_refuses_another(tmp_path: Path) -> None:
    uv = ROOT / ".venv" / "bin" / "uv"
    if not uv.exists():
        pytest.skip("make up installs uv")
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny.py", "VALUE = 7\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"tiny.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock = tmp_path / "tiny.lock"
    for expected, code in ((digest, 0), ("0" * 64, 1)):
        lock.write_text(f"--no-index\n--find-links {tmp_path}\ntiny==1.0 --hash=sha256:{expected}\n")
        command = [sys.executable, str(ROOT / ".ci" / "install.py"), "--new", str(tmp_path / "new"), str(lock)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert bool(done.returncode) == bool(code), done.stdout
        python = tmp_path / "new" / PYTHON
        assert subprocess.run([python, "-c", "import tiny"], capture_output=True, check=False).returncode == code
