"""Run a command and end all its processes with it: when it ends, when it takes too long, when its own parent is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress


def guarded(command: list[str], environment: dict[str, str], longest: float) -> int:
    """The command's exit code; 1 if it took longer than that many seconds."""
    process = subprocess.Popen(command, env=environment, process_group=0)
    # The guard's input ends when this process does, however it ends.
    watch = f"read _; kill -9 -{process.pid}"
    guard = subprocess.Popen(["sh", "-c", watch], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0)
    try:
        return process.wait(longest)
    except subprocess.TimeoutExpired:
        print(f"{command[1]} was ended: it took longer than {longest:.0f} s", file=sys.stderr)
        return 1
    finally:
        with suppress(ProcessLookupError):  # what the command has left behind
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        guard.kill()
        guard.communicate()
