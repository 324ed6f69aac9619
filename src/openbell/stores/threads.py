"""Threads for blocking calls, such as reading bars, and the queue that serves principals in turn.

A desk waits for its threads before it closes the store. Work that leaves the event loop for threads or processes passes a
`FairQueue`, so that one principal's work never delays another's: `Threads`, the worker processes and the backtesters have
one each. The principal is the one of the call, which `CALLER` holds: tasks that a call starts inherit it, so that no
function between a tool and a thread needs to pass it on.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

CALLER: ContextVar[str] = ContextVar("caller", default="")
"""The principal that the running task works for; empty for the desk's own work."""
_SHARED_SECONDS = 10.0
"""How long after the last change of principals several of them are taken to ask."""


def own_context() -> Context:
    """Returns the context of a task that serves the whole desk, though a call may have started it."""
    context = copy_context()
    context.run(CALLER.set, "")
    return context


class FairQueue:
    """Runs a limited number of jobs; free places go to waiting principals in round-robin order."""

    def __init__(self, places: int, each: int) -> None:
        """`each` is how many places one principal may take: with fewer than `places`, another one need not wait.

        While several principals ask, each may take one fewer, but at least one: threads also compete for the interpreter.
        """
        self._places = places
        self._each = each
        self._latest = ""
        """The principal that has asked last, apart from the desk itself."""
        self._changed_at = -_SHARED_SECONDS
        """When that was another one than before."""
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Those who wait, the principal whose turn is next first."""
        self._drained = asyncio.Event()

    async def run(self, principal: str, work: Callable[[], Awaitable[T]]) -> T:
        """Returns the result of work that cannot be interrupted, such as a thread's: its place is free when it has ended,
        even if the caller is cancelled before.
        """
        await self._take(principal)
        try:
            task: asyncio.Future[T] = asyncio.ensure_future(work())
        except BaseException:
            self._release(principal)
            raise
        task.add_done_callback(lambda done: self._ended(principal, done))
        return await asyncio.shield(task)

    @asynccontextmanager
    async def place(self, principal: str) -> AsyncIterator[None]:
        """Takes a place for work that ends when its caller is cancelled."""
        await self._take(principal)
        try:
            yield
        finally:
            self._release(principal)

    async def drained(self) -> None:
        """Wait until nothing runs and nothing waits."""
        while self._running or self._waiting:
            self._drained.clear()
            await self._drained.wait()

    async def _take(self, principal: str) -> None:
        if principal not in {"", self._latest}:
            if self._latest:
                self._changed_at = time.monotonic()
            self._latest = principal
        if self._has_room(principal) and principal not in self._waiting:
            self._running[principal] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(principal, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn came at the same moment
                self._release(principal)
            else:
                self._forget(principal, turn)
            raise

    def _has_room(self, principal: str) -> bool:
        is_shared = time.monotonic() - self._changed_at < _SHARED_SECONDS
        each = max(1, self._each - 1) if is_shared else self._each
        return self._running.total() < self._places and self._running[principal] < each

    def _ended(self, principal: str, done: asyncio.Future[Any]) -> None:
        if not done.cancelled():
            done.exception()  # retrieved, so that asyncio does not log it if the caller was cancelled
        self._release(principal)

    def _release(self, principal: str) -> None:
        self._running[principal] -= 1
        if not self._running[principal]:
            del self._running[principal]
        self._serve()
        self._drained.set()

    def _serve(self) -> None:
        """Give free places to those who wait."""
        while (found := next((each for each in self._waiting if self._has_room(each)), None)) is not None:
            turns = self._waiting[found]
            turn = turns.popleft()
            if turns:
                self._waiting.move_to_end(found)
            else:
                del self._waiting[found]
            if not turn.done():
                self._running[found] += 1
                turn.set_result(None)

    def _forget(self, principal: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(principal)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[principal]
        self._drained.set()


_MOST = 3
_EACH = 2
"""Enough to keep a disk and a feed busy; each thread uses memory of its own. One more is left for other principals."""


class Threads:
    """A small thread pool that serves principals in turn; no thread is started before the first call."""

    def __init__(self, name: str = "desk", most: int = _MOST, each: int = _EACH) -> None:
        """`each` is how many threads may work for one principal at once."""
        self._executor = ThreadPoolExecutor(most, name)
        self._queue = FairQueue(most, each)

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread, in the caller's context, and return its result.

        If the caller is cancelled, the function still finishes.
        """
        loop, context = asyncio.get_running_loop(), copy_context()
        call = partial(context.run, partial(work, *args, **kwargs))
        return await self._queue.run(CALLER.get(), lambda: loop.run_in_executor(self._executor, call))

    def abandon(self) -> None:
        """Begin no further calls, and do not wait for those that run: for calls that change nothing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def close(self) -> None:
        """Wait until all calls have finished."""
        await self._queue.drained()
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)
