"""Measures how long an event loop is blocked: the processor time of each callback, so that a busy machine does not count."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from asyncio import events
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

LONGEST = 0.05
"""Seconds of processor time that one callback may take."""


class LoopTime:
    """The longest callback of a loop since the last question."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._longest = (0.0, "")
        self.thread = self._reached()

    def _reached(self) -> int:
        """Returns the loop's thread when the loop has ended the callback that it is in."""
        found: Future[int] = Future()
        self._loop.call_soon_threadsafe(lambda: found.set_result(threading.get_ident()))
        return found.result(60)

    def add(self, seconds: float, handle: events.Handle) -> None:
        if seconds > self._longest[0]:
            self._longest = seconds, _name(handle)

    def take(self) -> tuple[float, str]:
        """Seconds of processor time and name of the longest callback; the next answer begins with nothing.

        A callback that sends a response is still running when the client has it: it is waited for.
        """
        self._reached()
        found, self._longest = self._longest, (0.0, "")
        return found


@contextmanager
def measured(loop: asyncio.AbstractEventLoop) -> Iterator[LoopTime]:
    """Measure a loop that runs in another thread."""
    measure, original = LoopTime(loop), events.Handle._run

    def run(handle: events.Handle) -> Any:
        if threading.get_ident() != measure.thread:
            return original(handle)
        began = time.thread_time()
        try:
            return original(handle)
        finally:
            measure.add(time.thread_time() - began, handle)

    gc.collect()
    gc.disable()  # a search for garbage among all the modules of the tests would count as the loop's
    events.Handle._run = run  # type: ignore[method-assign,assignment]
    try:
        yield measure
    finally:
        events.Handle._run = original  # type: ignore[method-assign]
        gc.enable()


def _name(handle: events.Handle) -> str:
    callback = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    return repr(task.get_coro()) if isinstance(task, asyncio.Task) else repr(callback)[:200]
