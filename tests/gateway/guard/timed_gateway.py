"""`openbell up` as a process in which nothing was called yet, and whose event loop is measured.

The process asks on standard input and answers on standard output: for each line, what took the loop longest since the last.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self, TextIO

from tests.client import PATIENCE, environment
from tests.gateway.guard.loop_time import measured


class TimedUp:
    """The process, with the simulated market. Use as a context manager.

    It is not forked from a process that has loaded everything, as `gateways.Up` is: what a first call loads is measured.
    """

    def __init__(self, home: Path, *words: str, **settings: str) -> None:
        command, pipe = [sys.executable, "-m", __name__, "up", "--port", "0", *words], subprocess.PIPE
        given = environment(home, FEED="sim", **settings)
        self._process = subprocess.Popen(command, env=given, text=True, stdin=pipe, stdout=pipe, stderr=pipe)
        self._errors: list[str] = []
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._bound = threading.Event()
        self.port = 0

    def __enter__(self) -> Self:
        self._follower.start()
        assert self._bound.wait(PATIENCE) and self.port, "".join(self._errors)
        return self

    def __exit__(self, *_: object) -> None:
        # Not killed: the desk ends the processes that search for strategies.
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE)
        self._follower.join(PATIENCE)

    def _follow(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._errors.append(line)
            if line.startswith("MCP over HTTP: "):
                self.port = int(line.split()[3].removesuffix("/mcp").rpartition(":")[2])
                self._bound.set()
        self._bound.set()

    def take(self) -> tuple[float, str]:
        """Seconds of processor time and name of the longest callback since the last question or the start."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("take\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "".join(self._errors)
        seconds, callback = json.loads(line)
        return seconds, callback


def _answer(loop: asyncio.AbstractEventLoop, answers: TextIO) -> None:
    with measured(loop) as time:
        for _ in sys.stdin:
            print(json.dumps(time.take()), file=answers, flush=True)


def _main() -> None:
    """The command, with a loop whose callbacks can be measured; what it prints goes to standard error."""
    from openbell.cli import up
    from openbell.cli.entry import main

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def new_loop() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=_answer, args=(loop, answers), daemon=True).start()
        return loop

    up._new_loop = new_loop
    main()


if __name__ == "__main__":
    _main()
