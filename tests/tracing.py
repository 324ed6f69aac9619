"""Which files of src/openbell a path visits, and in which order: the calls of functions in all threads and processes."""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_SRC = f"{ROOT / 'src' / 'openbell'}{os.sep}"
_CHILD = """\
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.tracing import Trace
Trace(Path({folder!r})).start()
"""


class Trace:
    """Logs the first call of a function in each file during each recording.

    It sees the threads that start after it, and the child processes that start within `tracing`.
    """

    def __init__(self, folder: Path) -> None:
        """The processes of a trace share a folder."""
        self._log = folder / "visits.log"
        self._appended = os.open(self._log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        turn = os.open(folder / "turn", os.O_CREAT | os.O_RDWR)
        os.ftruncate(turn, 1)
        self._turn = mmap.mmap(turn, 1)
        os.close(turn)
        self._turns = self._turn_of_seen = 0
        self._seen: set[str] = set()
        self._since = self._calls = 0

    def start(self) -> None:
        """Trace this thread and those that start from now on."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def stop(self) -> None:
        """Trace no more."""
        sys.setprofile(None)
        threading.setprofile(None)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Forget what was visited before; what is visited within counts."""
        self._turns = self._turns % 255 + 1
        self._since, self._turn[0] = time.monotonic_ns(), self._turns
        try:
            yield
        finally:
            self._turn[0] = 0

    def is_still(self, seconds: float = 0.05) -> bool:
        """Returns True if no thread of this process calls a function of src/openbell for some time."""
        calls = self._calls
        time.sleep(seconds)
        return self._calls == calls

    def visited(self) -> list[str]:
        """Returns the files that were visited in the last recording, relative to src/openbell, in order."""
        found = [line.split(" ", 1) for line in self._log.read_text(encoding="utf-8").splitlines()]
        files = [file for at, file in sorted((int(at), file) for at, file in found) if at >= self._since]
        return list(dict.fromkeys(files))

    def _note(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        file = code.co_filename
        if event != "call" or not file.startswith(_SRC):
            return
        self._calls += 1
        if not (turn := self._turn[0]):
            return
        if turn != self._turn_of_seen:
            self._turn_of_seen, self._seen = turn, set()
        # The bodies of modules and classes run at the first import, whatever path that is on.
        if file in self._seen or not code.co_flags & CO_OPTIMIZED:
            return
        self._seen.add(file)
        os.write(self._appended, f"{time.monotonic_ns()} {file.removeprefix(_SRC)}\n".encode())


@contextmanager
def tracing(folder: Path) -> Iterator[Trace]:
    """Trace this process, and the child processes that begin within."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_CHILD.format(root=str(ROOT), folder=str(folder)))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(site)
    trace = Trace(folder)
    trace.start()
    try:
        yield trace
    finally:
        trace.stop()
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
