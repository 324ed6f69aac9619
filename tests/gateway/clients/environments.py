"""Python environments of programs that are no part of the development group: made once in the project's cache."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

from tests.npm.programs import CACHE, PATIENCE, NotHere

INSTALL = Path(__file__).resolve().parents[3] / ".ci" / "install.py"


def python(lock: Path) -> Path:
    """The interpreter of an environment with exactly the packages of a lock file."""
    home = CACHE / lock.stem
    home.mkdir(parents=True, exist_ok=True)
    interpreter = home / "venv" / "bin" / "python"
    with (home / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        stamp = home / "installed"
        wanted = lock.read_bytes()
        if not stamp.exists() or stamp.read_bytes() != wanted:
            _install(home / "venv", lock)
            stamp.write_bytes(wanted)
    return interpreter


def _install(environment: Path, lock: Path) -> None:
    command = [sys.executable, str(INSTALL), "--new", str(environment), "--only-binary=:all:", str(lock)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stdout", "") or "")[-300:]
        raise NotHere(
            f"{lock.stem} could not be installed ({error} {said}): connect to PyPI once to run these tests"
        ) from error
