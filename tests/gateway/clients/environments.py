"""Python environments of programs that are no part of the development group: made once in the project's cache."""

from __future__ import annotations

import fcntl
import subprocess
import venv
from pathlib import Path

from tests.npm.programs import CACHE, PATIENCE, NotHere


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
            venv.create(home / "venv", clear=True, with_pip=True)
            _install(interpreter, lock)
            stamp.write_bytes(wanted)
    return interpreter


def _install(interpreter: Path, lock: Path) -> None:
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    try:
        subprocess.run(
            [*pip, "--require-hashes", "-r", str(lock)], check=True, capture_output=True, text=True, timeout=PATIENCE
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or "")[-300:]
        raise NotHere(
            f"{lock.stem} could not be installed ({error} {said}): connect to PyPI once to run these tests"
        ) from error
