"""Processes for long calculations, so that the event loop and its threads stay quick.

The first one is started on first use, the second one when two principals need one. They end with the process that started
them, also if that is killed, and ignore Ctrl-C, which reaches every process of a terminal.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import wait
from typing import Any, ParamSpec, TypeVar

from openbell.market.errors import OpenbellError
from openbell.stores.fair_queue import CALLER, FairQueue

P = ParamSpec("P")
T = TypeVar("T")

_NICE = 10
_TRIES = 2
_MOST = 2
"""Processes. One principal uses one of them at a time, so that another need not wait for its work."""


class WorkerDied(OpenbellError):
    """The process of a calculation ended before its result, and so did the one that replaced it."""


class Workers:
    """Calls functions in processes, one at a time for each principal. Functions, arguments and results must be picklable."""

    def __init__(self, *, background: bool = False) -> None:
        """With `background` there is one process, which gives way to everything else on the machine."""
        self._nice = _NICE if background else 0
        self._queue = FairQueue(1 if background else _MOST, 1)
        self._started: list[ProcessPoolExecutor] = []
        """Each has one process: one that is killed takes no other work with it."""
        self._idle: list[ProcessPoolExecutor] = []

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the result of a call. If the process has died, another one is started, once. Raises `WorkerDied`."""
        call: Callable[[], T] = partial(work, *args, **kwargs)
        return await self._queue.run(CALLER.get(), lambda: self._in_process(call))

    async def _in_process(self, call: Callable[[], T]) -> T:
        loop, tries = asyncio.get_running_loop(), 0
        while True:
            is_new = not self._idle
            executor = self._start() if is_new else self._idle.pop()
            tries += 1
            try:
                result = await loop.run_in_executor(executor, call)
            except BrokenProcessPool:
                self._started.remove(executor)
                if is_new and tries >= _TRIES:  # others may have died while they were idle
                    raise WorkerDied(
                        "the process that computes was killed twice, perhaps for lack of memory; try again"
                    ) from None
            except BaseException:
                self._idle.append(executor)
                raise
            else:
                self._idle.append(executor)
                return result

    def prepare(self, *modules: str) -> None:
        """Start a process and let it import modules, so that the first call need not wait for that."""
        if self._started and not self._idle:
            return  # all are at work
        executor = self._idle.pop() if self._idle else self._start()
        try:
            executor.submit(_import, modules)
        except BrokenProcessPool:  # it has died since its last call
            self._started.remove(executor)
            executor = self._start()
            executor.submit(_import, modules)
        self._idle.append(executor)

    def _start(self) -> ProcessPoolExecutor:
        # Not forked: threads of this process may hold locks.
        context = multiprocessing.get_context("spawn")
        made = ProcessPoolExecutor(1, context, initializer=_prepare, initargs=(self._nice,))
        self._started.append(made)
        return made

    def close(self) -> None:
        """End the processes without waiting for their work, which changes nothing outside."""
        for executor in self._started:
            processes: dict[int, Any] = dict(executor._processes or {})  # noqa: SLF001 - there is no public way
            executor.shutdown(wait=False, cancel_futures=True)
            for process in processes.values():
                process.kill()
        self._started, self._idle = [], []


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
