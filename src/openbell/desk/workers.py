"""A process of its own for long calculations, so that the event loop and its threads stay quick.

The process is started on first use. It ends with this one, also if this one is killed, and it ignores Ctrl-C, which reaches
every process of a terminal.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import wait
from typing import Any, ParamSpec, TypeVar

from openbell.market.errors import OpenbellError

P = ParamSpec("P")
T = TypeVar("T")

_NICE = 10
_TRIES = 2


class WorkerDied(OpenbellError):
    """The process of a calculation ended before its result, and so did the one that replaced it."""


class Workers:
    """Calls functions in a process of its own, one at a time. Functions, arguments and results must be picklable."""

    def __init__(self, *, background: bool = False) -> None:
        """With `background`, the process gives way to everything else on the machine."""
        self._nice = _NICE if background else 0
        self._executor: ProcessPoolExecutor | None = None

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the result of a call. If the process has died, another one is started, once. Raises `WorkerDied`."""
        loop = asyncio.get_running_loop()
        call: Callable[[], T] = partial(work, *args, **kwargs)
        for _ in range(_TRIES):
            executor = self._started()
            try:
                return await loop.run_in_executor(executor, call)
            except BrokenProcessPool:
                self._discard(executor)
        raise WorkerDied("the process that computes was killed twice, perhaps for lack of memory; try again")

    def prepare(self, *modules: str) -> None:
        """Start the process and let it import modules, so that the first call need not wait for that."""
        executor = self._started()
        try:
            executor.submit(_import, modules)
        except BrokenProcessPool:  # it has died since its last call
            self._discard(executor)
            self._started().submit(_import, modules)

    def _discard(self, broken: Executor) -> None:
        """Let the next call start another process, unless another call has done so."""
        if self._executor is broken:
            self._executor = None

    def _started(self) -> Executor:
        if self._executor is None:
            # Not forked: threads of this process may hold locks.
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(1, context, initializer=_prepare, initargs=(self._nice,))
        return self._executor

    def close(self) -> None:
        """End the process without waiting for its work, which changes nothing outside."""
        if self._executor is None:
            return
        processes: dict[int, Any] = dict(self._executor._processes or {})  # noqa: SLF001 - there is no public way
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes.values():
            process.kill()
        self._executor = None


def _import(modules: tuple[str, ...]) -> None:
    for each in modules:
        import_module(each)


def _prepare(nice: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, AttributeError):  # Windows has no nice
        os.nice(nice)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
