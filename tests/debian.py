"""Programs of Debian's packages, unpacked into the project's cache. Nothing is installed, so no rights are needed."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

_CACHE = Path(__file__).resolve().parents[1] / ".cache"


class NotInstalled(Exception):
    """The machine does not have the program, and its packages cannot be fetched."""


def program(path: str, *packages: str) -> Path:
    """The program that a package holds at a path; the machine's own if it has one. The first package holds it."""
    if found := shutil.which(Path(path).name):
        return Path(found)
    cache = cache_of(packages[0])
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / path).exists():
            _unpack(cache, packages)
    return cache / path


def cache_of(package: str) -> Path:
    """The folder in which a package and those that it needs are unpacked."""
    return _CACHE / package


def _unpack(cache: Path, packages: tuple[str, ...]) -> None:
    try:
        subprocess.run(["apt-get", "download", *packages], cwd=cache, check=True, capture_output=True, timeout=300)
        for package in reversed(packages):  # the program last: it says that all is there
            file = next(cache.glob(f"{package}_*.deb"))
            subprocess.run(["dpkg-deb", "-x", file, cache], check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        said = (getattr(error, "stderr", b"") or b"").decode(errors="replace")[-300:]
        raise NotInstalled(
            f"{packages[0]} is not installed and could not be fetched ({error} {said}): install Debian's {packages[0]} "
            "to run these tests"
        ) from error
