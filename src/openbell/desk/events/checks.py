"""Runs checks of the parts of a desk: which cannot be used, why, and since when."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from openbell.market.errors import OpenbellError

T = TypeVar("T")
log = logging.getLogger(__name__)

Check = Callable[[], Coroutine[Any, Any, None]]
"""Raises if a part cannot be used."""
_CACHED_SECONDS = 1.0
_SINCE = re.compile(r" \(since [^)]*\)$")
TIMEOUT = 1.5
"""Seconds after which a check has failed."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Why a part cannot be used, and since when by the machine's clock."""

    reason: str
    since: float


async def in_own_thread(work: Callable[[], T]) -> T:
    """Call a function in a thread that nothing else uses meanwhile: a store that hangs must not hold up others, or the end.

    Threads are used again: each keeps its own connection to every SQLite file that it has read.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(ended: Future[T]) -> None:
        if done.done():
            return
        if (error := ended.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(ended.result())

    def run() -> None:
        ended: Future[T] = Future()
        try:
            ended.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            ended.set_exception(error)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, ended)

    try:
        thread = _idle.pop()
    except IndexError:
        thread = _CheckThread()
        thread.start()
    thread.asked.put(run)
    return await done


class _CheckThread(threading.Thread):
    """Calls functions one after the other; between two of them it is in `_idle`."""

    def __init__(self) -> None:
        super().__init__(name="check", daemon=True)
        self.asked: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run(self) -> None:
        """Ends with the process."""
        while True:
            self.asked.get()()
            _idle.append(self)


_idle: list[_CheckThread] = []
os.register_at_fork(after_in_child=_idle.clear)  # a child has none of these threads


def see_error(task: asyncio.Task[Any]) -> None:
    """Let asyncio not report the error of a task whose result came too late for its caller."""
    if not task.cancelled():
        task.exception()


class Checks:
    """Runs checks. All callers within a second get the result of the same run.

    A check that does not end in time has failed; it runs on, and no second one is started beside it.
    """

    def __init__(self, checks: Mapping[str, Check], *, timeout: float = TIMEOUT) -> None:
        self._checks = dict(checks)
        self._timeout = timeout
        self._running: asyncio.Task[None] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._checked_at = 0.0
        self._closed = False
        self.outages: dict[str, Outage] = {}
        """The parts that could not be used when they were checked last."""

    async def failing(self) -> list[str]:
        """Returns the names of the parts that cannot be used, at most a second old."""
        if self._running is None and time.monotonic() - self._checked_at >= _CACHED_SECONDS:
            self._running = asyncio.create_task(self._check())
        if self._running is not None:
            # A client that disconnects must not cancel the checks for the others.
            await asyncio.shield(self._running)
        return [name for name in self._checks if name in self.outages]

    async def _check(self) -> None:
        try:
            reasons = await asyncio.gather(*(self._failure(name, check) for name, check in self._checks.items()))
            for name, reason in zip(self._checks, reasons, strict=True):
                self._note(name, reason)
            self._checked_at = time.monotonic()
        finally:
            self._running = None

    def close(self) -> None:
        """Note nothing from now on: parts that are being closed fail their checks."""
        self._closed = True

    def _note(self, name: str, reason: str) -> None:
        if self._closed:
            return
        known = self.outages.get(name)
        if not reason:
            if self.outages.pop(name, None) is not None:
                log.warning("%s can be used again", name)
        elif known is None:
            log.warning("%s cannot be used: %s", name, reason)
            self.outages[name] = Outage(reason, time.time())
        else:
            self.outages[name] = Outage(reason, known.since)

    async def _failure(self, name: str, check: Check) -> str:
        """Returns why a part cannot be used; empty if it can."""
        task = self._tasks.get(name)
        if task is None or task.done():
            task = self._tasks[name] = asyncio.ensure_future(check())
            task.add_done_callback(see_error)
        await asyncio.wait({task}, timeout=self._timeout)
        if not task.done():
            return f"no answer in {self._timeout:g} s"
        error = None if task.cancelled() else task.exception()
        if error is None:
            return ""
        reason = error.message if isinstance(error, OpenbellError) else str(error) or type(error).__name__
        return _SINCE.sub("", reason)  # an outage has a time of its own
