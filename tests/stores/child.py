"""Another process that reads and writes lines, for tests that kill it, stop it or let it compete."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.prefork import Process

ROOT = Path(__file__).parents[2]


class Child:
    """`python -m MODULE ARGUMENTS` at the root of the project; killed when the block ends."""

    def __init__(self, module: str, *arguments: object, env: Mapping[str, str] | None = None) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = Process(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout
        self._rest = b""
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.kill()
        self._in.close()
        self._out.close()
        self._log.close()

    def tell(self, text: str) -> None:
        """Write a line to its standard input."""
        self._in.write(text.encode() + b"\n")

    def line(self, bound: float = 60.0) -> str:
        """Its next line of output. Fails if it exits or takes longer than `bound` seconds."""
        deadline = time.monotonic() + bound
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(self._out.fileno(), 65536) if ready else b""
            if not more:
                raise AssertionError(f"{'it ended' if ready else f'nothing in {bound} s'}: {self.log()}")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def kill(self) -> list[str]:
        """Kill −9. Returns the complete lines that were not read yet."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        while more := os.read(self._out.fileno(), 65536):
            self._rest += more
        *lines, self._rest = self._rest.split(b"\n")
        return [line.decode() for line in lines]

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def ended_unseen(self, bound: float = 20.0) -> None:
        """Wait until it has exited, without reaping it: it stays a zombie."""
        deadline = time.monotonic() + bound
        while not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            assert time.monotonic() < deadline
            os.sched_yield()

    def wait(self, bound: float = 60.0) -> int:
        """Wait until it exits by itself. Returns its exit code."""
        return self._process.wait(bound)

    def until(self, condition: Callable[[], bool], what: str, bound: float = 60.0) -> None:
        """Wait until a condition is true. Fails if the process exits or it takes longer than `bound` seconds."""
        deadline = time.monotonic() + bound
        while not condition():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"not in {bound} s: {what}: {self.log()}")
            os.sched_yield()

    def run_until(self, condition: Callable[[], bool], bound: float = 60.0) -> None:
        """Wait until a condition is true or the process has exited."""
        deadline = time.monotonic() + bound
        while self._process.poll() is None and not condition():
            assert time.monotonic() < deadline, self.log()
            os.sched_yield()

    def log(self) -> str:
        """Its standard error."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-4000:]
