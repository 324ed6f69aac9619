"""Commands on a small disk of their own, which can be filled: steps as JSON on standard input, results on standard output.

A step is a list: `["run", HOME, WORDS…]`, `["crash", NUMBER, HOME, WORDS…]`, which ends before the rename of that number,
`["fill"]` or `["free"]`. HOME is a path on the disk. Mounting needs a process
with one thread, so that a test runs this module as a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.client import environment, run
from tests.operations.outages.disks import CannotMount, Disk, enter_private_mounts

_MEGABYTES = 32
_CANNOT = 77


def steps_on_a_small_disk(folder: Path, *steps: list[str]) -> list[dict[str, Any]]:
    """The exit code, output and errors of each command, on a disk that is mounted at a folder; skips if it cannot be."""
    words = [sys.executable, "-m", __name__, str(folder)]
    done = subprocess.run(words, input=json.dumps(steps), capture_output=True, text=True, check=False, timeout=300)
    if done.returncode == _CANNOT:
        pytest.skip(f"NOT TESTED: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


_CRASH = """
import os, pathlib, sys
left, real = int(sys.argv.pop(1)), pathlib.Path.rename
def rename(path, target):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    return real(path, target)
pathlib.Path.rename = rename
from openbell.cli.entry import main
main()
"""


def _crashed(number: str, home: Path, *words: str) -> dict[str, Any]:
    """Run a command that ends as if it was killed before a rename, unless it needs fewer."""
    command = [sys.executable, "-c", _CRASH, number, *words]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, check=False, timeout=60)
    return {"words": words, "code": done.returncode, "output": done.stdout, "errors": done.stderr}


def _main(folder: Path) -> None:
    try:
        enter_private_mounts()
        disk = Disk(folder, _MEGABYTES)
    except CannotMount as error:
        print(error, file=sys.stderr)
        sys.exit(_CANNOT)
    results = []
    for kind, *words in json.load(sys.stdin):
        if kind == "fill":
            disk.fill()
        elif kind == "free":
            disk.free()
        elif kind == "crash":
            results.append(_crashed(words[0], folder / words[1], *words[2:]))
        else:
            done = run(folder / words[0], *words[1:])
            results.append({"words": words, "code": done.returncode, "output": done.stdout, "errors": done.stderr})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
