"""Processes for long calculations, so that the event loop and its threads stay quick, and the executors of sweeps.

The first one of `Workers` is started on first use, the second one when two principals need one. They end with the process
that started them, also if that is killed, and ignore Ctrl-C, which reaches every process of a terminal.

A sweep runs in processes of this machine or on a Dask scheduler. Both send the first argument of a function, the work that
all chunks share, to each worker once. Workers end as soon as this process does, however it ends.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, InvalidStateError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any, ParamSpec, TypeVar

from openbell import __version__
from openbell.market.errors import OpenbellError, SettingsError
from openbell.stores.threads import CALLER, FairQueue

P = ParamSpec("P")
T = TypeVar("T")

_NICE = 10
_TRIES = 2
_MOST = 2
"""Processes. One principal uses one of them at a time, so that another need not wait for its work."""
_PRELOADED = ("openbell.backtest.sweep_runs",)
_CONNECT = 10.0
"""Seconds until a Dask scheduler has answered."""


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
        self._closed = False

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
                if self._closed:
                    raise WorkerDied("the desk has stopped: nothing was changed") from None
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
        self._closed = True
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


class WorkersFailed(OpenbellError):
    """The processes or machines that run a sweep cannot be reached, or failed."""


class ProcessWorkers(Executor):
    """A pool of processes; they start with the first chunk. Use as a context manager."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._context = _context()
        # Workers read from this pipe: they end when its other end is closed, be it by `stop` or with this process.
        self._theirs, self._ours = self._context.Pipe(duplex=False)
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[..., Any], work: object, /, *rest: object) -> Future[Any]:  # type: ignore[override]
        """Call `function(work, *rest)` in a process. `work` must be the same at each call."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._jobs, self._context, _begin, (self._theirs, work))
        # A pool that breaks while one of its own futures is cancelled fails with a trace: callers cancel a copy.
        copy: Future[Any] = Future()
        self._pool.submit(_call, function, *rest).add_done_callback(partial(_copy, copy))
        return copy

    @staticmethod
    def failure(_error: Exception) -> WorkersFailed:
        """Returns the error to raise when chunks are lost."""
        return WorkersFailed("a process of the sweep ended, perhaps for lack of memory: use fewer with --jobs")

    def stop(self) -> None:
        """End all processes, whatever they do. May be called from another thread."""
        self._ours.close()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - `stop` ends them
        """End all processes."""
        self.stop()
        if self._pool:
            self._pool.shutdown(wait)
        self._theirs.close()


def _copy(copy: Future[Any], original: Future[Any]) -> None:
    """Give a future the outcome of another, unless it was cancelled."""
    with suppress(InvalidStateError):
        if error := original.exception():
            copy.set_exception(error)
        else:
            copy.set_result(original.result())


def _context() -> Any:
    """Returns how processes start: forked from a small server where there is one, which takes half of the time."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context


_work: object = None
"""In a worker: what all chunks share."""


def _begin(pipe: Connection, work: object) -> None:
    """Prepare a worker. Ctrl-C is for the process that started it."""
    global _work  # noqa: PLW0603
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        os._exit(1)


def _call(function: Callable[..., Any], *rest: object) -> Any:
    return function(_work, *rest)


class DaskWorkers(Executor):
    """The workers of a Dask scheduler. Raises `WorkersFailed` and `SettingsError`. Use as a context manager."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise SettingsError(
                "OPENBELL_DASK needs a package that is not installed: pip install 'openbell[dask]'"
            ) from None
        try:
            self._client = Client(address, timeout=_CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            secret = f"{address.rpartition('@')[0].rpartition('//')[2]}@"  # user and password
            shown, why = address.replace(secret, ""), str(error).replace(secret, "")
            raise WorkersFailed(f"the Dask scheduler at {shown} (OPENBELL_DASK) cannot be reached: {why}") from None
        self._executor = self._client.get_executor(pure=False)
        self._shared: tuple[object, Any] | None = None
        self._futures: list[Future[Any]] = []
        try:
            self._check()
        except BaseException:
            self.shutdown()
            raise

    def _check(self) -> None:
        """Raise `WorkersFailed` if there is no worker, or one without this version of the package."""
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT)
            versions = self._client.run(installed_version)
        except TimeoutError:
            raise WorkersFailed("the Dask scheduler has no workers: start some with: dask worker ADDRESS") from None
        except ImportError as error:
            raise WorkersFailed(f"a Dask worker cannot import openbell ({error}): install it there") from None
        for worker, version in versions.items():
            if version != __version__:
                raise WorkersFailed(f"the Dask worker {worker} has openbell {version}: install {__version__} there")

    def submit(self, function: Callable[..., Any], work: object, /, *rest: object) -> Future[Any]:  # type: ignore[override]
        """Call `function(work, *rest)` on a worker."""
        if self._shared is None or self._shared[0] is not work:
            (sent,) = self._client.scatter([work], broadcast=True, hash=False)
            self._shared = work, sent
        future: Future[Any] = self._executor.submit(function, self._shared[1], *rest)
        self._futures.append(future)
        return future

    @staticmethod
    def failure(error: Exception) -> WorkersFailed:
        """Returns the error to raise when chunks are lost."""
        return WorkersFailed(f"the Dask scheduler or its workers ended: {str(error) or type(error).__name__}")

    def stop(self) -> None:
        """Cancel all chunks; one that runs ends by itself. May be called from another thread."""
        for each in self._futures:
            each.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - always both
        """Cancel what has not begun, and disconnect."""
        self.stop()
        self._shared = None
        self._client.close()


def installed_version() -> str:
    """Returns the version of this package; called on Dask's workers."""
    return __version__
