"""Processes of `openbell` that begin with everything loaded, so that a test does not pay a second for each start.

One server for each pytest process loads the package once and then forks itself for every command: the process that a test
gets has a number, pipes, an environment and an end of its own, and can be killed like any other. What only a start from
nothing can show (how fast it is, what it loads, standard streams that are closed) is tested with `subprocess` as it is.

Nor do these processes search for strategies in the background: `up` and the servers of strategies would use a core as long
as a test runs them. With SEARCHES in its environment a process does. With STRATEGIES it knows only some strategies of the
library, so that a symbol is searched in a second instead of ten.

The server forks twice and this process adopts the grandchild, so that waiting for it works as for any child. That needs
Linux; elsewhere, and with PREFORK=0, commands start from nothing.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import importlib
import inspect
import json
import os
import pkgutil
import random
import runpy
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests import measured

SEARCHES = "TESTS_SEARCHES"
"""The variable of processes that search in the background."""
STRATEGIES = "TESTS_STRATEGIES"
"""The variable with the names of the library's strategies that a process knows, with commas between them."""
_PR_SET_CHILD_SUBREAPER = 36
_MADV_COLLAPSE = 25
_LARGE_PAGE = 2 << 20
_LARGEST = 1 << 20
_BESIDES = (
    "alembic.command",
    "anyio._backends._asyncio",
    "asyncpg",
    "coverage",
    "httpx2",
    "mcp.server.lowlevel",
    "mcp.server.stdio",
    "pandas",
    "PIL.Image",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.parquet",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.sqlite",
    "typer",
)
"""What the package loads when it is first needed. Arrow loads pandas where there is one, which takes 0.2 s."""


class Process(subprocess.Popen[Any]):
    """`python -m MODULE WORDS`, forked from the server of this process."""

    def _execute_child(self, *given: Any) -> None:
        asked = inspect.signature(subprocess.Popen._execute_child).bind(self, *given).arguments  # type: ignore[attr-defined]
        command, ends = asked["args"], (asked["p2cread"], asked["c2pwrite"], asked["errwrite"])
        if not works() or command[:2] != [sys.executable, "-m"]:
            super()._execute_child(*given)  # type: ignore[misc]
            return
        try:
            self.pid = start(command[2:], asked["env"] or dict(os.environ), asked["cwd"], ends)
            self._child_created = True
        finally:
            pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            self._close_pipe_fds(*(asked[name] for name in pipes))  # type: ignore[attr-defined]

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Ends a process whose test has failed: waiting for it could take for ever."""
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)


class _Server:
    """This end of the server: a socket on which commands are asked for."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.prefork", str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        atexit.register(self.close)

    def start(self, words: list[str], env: dict[str, str], cwd: str | None, ends: tuple[int, int, int]) -> int:
        """Fork a command; its number."""
        passed = [number if end == -1 else end for number, end in enumerate(ends)]
        asked = json.dumps({"words": words, "env": env, "cwd": str(cwd or Path.cwd())}).encode()
        assert len(asked) < _LARGEST
        socket.send_fds(self._socket, [asked], passed)
        return int(self._socket.recv(64))

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


_servers: list[_Server] = []
_one_at_a_time = threading.Lock()


def start(words: list[str], env: dict[str, str], cwd: str | None, ends: tuple[int, int, int]) -> int:
    """Fork `python -m WORDS` with these standard streams; its number."""
    with _one_at_a_time:
        if not _servers:
            _servers.append(_Server())
        return _servers[0].start(words, env, cwd, ends)


def works() -> bool:
    """Returns True if orphans of this process's children become its own children, and nobody has switched this off."""
    if os.environ.get("PREFORK") == "0" or sys.platform != "linux":
        return False
    return not ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


# The server


def serve(asked: socket.socket) -> None:
    """Fork a process for each message until the other end is closed."""
    _load()
    while True:
        message, ends, _, _ = socket.recv_fds(asked, _LARGEST, 3)
        if not message:
            return
        told, tell = os.pipe()
        between = os.fork()
        if not between:
            child = os.fork()
            if child:
                os.write(tell, str(child).encode())
                os._exit(0)
            for end in (told, tell):
                os.close(end)
            asked.close()
            _become(json.loads(message), ends)
        for end in (tell, *ends):
            os.close(end)
        os.waitpid(between, 0)
        # Only now is the child the asker's own, so that it can wait for it.
        asked.send(os.read(told, 64))
        os.close(told)


def _load() -> None:
    import openbell

    for module in pkgutil.walk_packages(openbell.__path__, "openbell."):
        if "migrations" not in module.name:
            importlib.import_module(module.name)
    for name in _BESIDES:
        importlib.import_module(name)
    _read_library()
    _build_command_line()
    gc.collect()
    gc.freeze()
    _use_large_pages()


def _use_large_pages() -> None:
    """Put this process's memory into large pages where the system can: a fork and its end then take half the time."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, _, _, _, *name = line.split()
        first, last = (int(end, 16) for end in span.split("-"))
        if access == "rw-p" and name in ([], ["[heap]"]):
            for start in range(-(-first // _LARGE_PAGE) * _LARGE_PAGE, last - _LARGE_PAGE + 1, _LARGE_PAGE):
                libc.madvise(start, _LARGE_PAGE, _MADV_COLLAPSE)


def _read_library() -> None:
    """Read the files of all strategies, which takes 0.1 s, before the fork and not in each process."""
    from openbell.desk.research.strategies.specs import canonical_specs

    canonical_specs()


def _build_command_line() -> None:
    """Read the options of all commands, which takes 10 ms, before the fork and not in each process."""
    from typer import main

    from openbell.cli.commands import app

    main.get_command = cache(main.get_command)
    main.get_command(app)


def _become(asked: dict[str, Any], ends: list[int]) -> None:
    """Be the command: its streams, environment and arguments, then its module, then the end."""
    for number, end in enumerate(ends):
        os.dup2(end, number)
    for end in ends:
        if end > 2:
            os.close(end)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    time.tzset()
    random.seed()
    if SEARCHES not in os.environ:
        _leave_out_search()
    if names := os.environ.get(STRATEGIES):
        _know_only(names.split(","))
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    module, *words = asked["words"]
    sys.argv = [module, *words]
    measured.begin(forked=True)
    os._exit(_ended(module))


def _leave_out_search() -> None:
    """Make the search in the background wait for ever, as one does that another process has begun."""
    from openbell.desk.research.strategies.background_search import BackgroundSearch

    async def wait(self: BackgroundSearch) -> None:
        await asyncio.Event().wait()

    BackgroundSearch.run = wait  # type: ignore[method-assign]


def _know_only(names: list[str]) -> None:
    """Leave out the other strategies of the library."""
    from openbell.desk.research.strategies import searching, specs

    few = tuple(each for each in specs.canonical_specs() if each.id in names)
    assert len(few) == len(names), names
    for module in (specs, searching):
        module.canonical_specs = lambda: few  # type: ignore[attr-defined]


def _ended(module: str) -> int:
    """Run a module as a program to its end; its exit code.

    The interpreter's own end would take every loaded module apart, which costs more than most commands.
    """
    code: Any = 0
    try:
        sys.modules.pop(module, None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:  # noqa: BLE001 - as the interpreter does at the end of a program
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    measured.write()
    return int(code or 0) & 0xFF


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
