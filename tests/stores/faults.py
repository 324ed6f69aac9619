"""Faults at every step: the n-th call to the disk or the database fails, or the process dies there.

    python -m tests.stores.faults FOLDER SCENARIO

runs a scenario repeatedly, each time in a new process and a new folder, and lets it die one step later each
time. It prints the name of each folder, and `done` at the end.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any, Self
from unittest import mock

from openbell.stores.parquet.store import ParquetStore
from tests.stores.lean import without_pandas
from tests.stores.scenarios import SCENARIOS, prepare

CALLS = ("replace", "fsync", "unlink")
STATEMENTS = ("BEGIN IMMEDIATE", "COMMIT")
HALF = "half of a file"
DEATHS = frozenset({HALF, "before fsync", "after replace", "after unlink", "after COMMIT"})
"""The steps at which dying makes a difference: in between, nothing changes that another process could see."""
ERRORS = frozenset(
    {HALF, *(f"before {name}" for name in (*CALLS, *STATEMENTS)), "after BEGIN IMMEDIATE", "after COMMIT"}
)
"""The steps at which a call may fail: before it has an effect, except for a commit, which may have succeeded."""
DIED = 77


class Steps:
    """Counts steps and calls `strike` at one of them. A call may have two steps: before and after its effect."""

    def __init__(self, strike_at: int, strike: Callable[[str], None], points: frozenset[str]) -> None:
        self._left = strike_at
        self._strike = strike
        self._points = points
        self.struck = ""
        self.over = False

    def step(self, name: str) -> None:
        """Count one step."""
        if name not in self._points:
            return
        if self._left == 0 and not self.over:
            self.struck = name
            self._strike(name)
        self._left -= 1

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        """Count the steps of one call."""
        self.step(f"before {name}")
        yield
        self.step(f"after {name}")


class Halting:
    """A file that is written in two halves."""

    def __init__(self, file: IO[bytes], halfway: Callable[[], None]) -> None:
        self._file = file
        self._halfway = halfway

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        """Write both halves, with a step in between."""
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.flush()
        self._halfway()
        return half + self._file.write(data[half:])


@contextmanager
def struck(at: int, strike: Callable[[str], None], points: frozenset[str]) -> Iterator[Steps]:
    """Inside the block, call `strike` at the step of that number."""
    steps = Steps(at, strike, points)

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql not in STATEMENTS:
                return super().execute(sql, *values)
            with steps.around(sql):
                return super().execute(sql, *values)

    def counted(name: str) -> Any:
        real = getattr(os, name)

        def call(*values: Any, **named: Any) -> Any:
            with steps.around(name):
                return real(*values, **named)

        return call

    def opened(path: Path, mode: str = "r", *values: Any, **named: Any) -> Any:
        file = open_file(path, mode, *values, **named)
        return Halting(file, lambda: steps.step(HALF)) if mode == "wb" else file

    connect, open_file = sqlite3.connect, Path.open
    patches = {name: counted(name) for name in CALLS}
    with (
        mock.patch.multiple(os, **patches),
        mock.patch.object(Path, "open", opened),
        mock.patch.object(sqlite3, "connect", lambda *a, **k: connect(*a, **{"factory": Connection, **k})),
    ):
        yield steps
    steps.over = True  # connections may outlive the block


def _in_a_process(work: Callable[[], None]) -> int:
    """Call a function in a fork of this process. Returns its exit code."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - the other process must not go on here
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Run all steps of one scenario."""
    root, scenario = Path(sys.argv[1]), SCENARIOS[sys.argv[2]]
    base = root / "base"

    def begin() -> None:
        prepare(base)
        scenario.damage(base)

    if _in_a_process(begin):
        raise SystemExit("the preparation failed")
    for number in count():
        folder = root / str(number)
        shutil.copytree(base, folder)

        def die(name: str) -> None:
            (folder / "died").write_text(name)  # noqa: B023 - called in this round
            os._exit(DIED)

        def work() -> None:
            with struck(number, die, DEATHS):  # noqa: B023
                store = ParquetStore(folder)  # noqa: B023
                scenario.operate(store)

        ended = _in_a_process(work)
        if ended not in {0, DIED}:
            raise SystemExit(f"step {number} ended with {ended}")
        print(folder.name, flush=True)
        if ended == 0:
            break
    print("done", flush=True)


if __name__ == "__main__":
    without_pandas()
    main()
