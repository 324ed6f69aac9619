"""HTTP servers as processes on a free port, which they print."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.client import PATIENCE, environment
from tests.prefork import Process


@contextmanager
def served(module: str, home: Path, *words: str) -> Iterator[int]:
    """The port of `python -m MODULE WORDS`. Fails if the process has ended by itself."""
    command = [sys.executable, "-m", module, *words]
    pipe = subprocess.PIPE
    with Process(command, env=environment(home), text=True, stdout=pipe, stderr=pipe) as process:
        assert process.stdout
        try:
            line = process.stdout.readline()
            assert line, process.communicate(timeout=PATIENCE)[1]
            yield int(line)
            assert process.poll() is None, process.communicate(timeout=PATIENCE)[1]
        finally:
            process.kill()
            process.communicate(timeout=PATIENCE)
