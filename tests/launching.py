"""A command line with which programs of others start an `openbell` that is loaded already, as tests.prefork has it.

Such a program starts a small process, which hands its standard streams to this one. The server of tests.prefork forks the
command with those streams. If the command or the small process ends, the other one is ended too.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests import prefork

_LARGEST = 1 << 20
_PROGRAM = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
    asked.connect(sys.argv[1])
    command = {"words": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd()}
    socket.send_fds(asked, [json.dumps(command).encode()], [0, 1, 2])
    code = asked.recv(16)
os._exit(int(code or 1))
"""
"""It imports little and skips site packages, so that it starts in 20 ms instead of the second of `openbell`."""


def loaded(command: list[str]) -> list[str]:
    """A command line that does the same as `python -m MODULE WORDS`, sooner."""
    if not prefork.works() or command[:2] != [sys.executable, "-m"]:
        return command
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, _address(), *command[2:]]


@cache
def _address() -> str:
    """The socket on which this process listens for commands."""
    folder = tempfile.mkdtemp(prefix="openbell-launch-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(Path(folder) / "socket"))
    listening.listen()
    threading.Thread(target=_listen, args=(listening,), daemon=True).start()
    return str(listening.getsockname())


def _listen(listening: socket.socket) -> None:
    while True:
        asked, _ = listening.accept()
        threading.Thread(target=_serve, args=(asked,), daemon=True).start()


def _serve(asked: socket.socket) -> None:
    """Fork one command; end it if its caller ends first, and otherwise tell the caller its exit code."""
    with asked:
        message, ends, _, _ = socket.recv_fds(asked, _LARGEST, 3)
        try:
            command = json.loads(message)
            pid = prefork.start(command["words"], command["env"], command["cwd"], (ends[0], ends[1], ends[2]))
        finally:
            for end in ends:
                os.close(end)
        ended = os.pidfd_open(pid)
        try:
            ready, _, _ = select.select([asked.fileno(), ended], [], [])
            if ended not in ready:
                signal.pidfd_send_signal(ended, signal.SIGTERM)
        finally:
            os.close(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if ended in ready:
            with suppress(BrokenPipeError):  # the caller may have ended since
                asked.send(str(code if code >= 0 else 128 - code).encode())
