"""The backtester that a desk uses: a port with two implementations, in this process and over gRPC."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from openbell.backtest.errors import BacktestTimeout

if TYPE_CHECKING:
    from openbell.backtest.jobs import Job
    from openbell.backtest.walk_forward import Progress
    from openbell.desk.settings import Settings

T = TypeVar("T")

_MOST = 2
"""Threads: a backtest need not wait for a walk-forward test of minutes."""


class Backtester(Protocol):
    """Runs jobs without blocking the event loop. All implementations return the same results to the bit."""

    async def run(self, job: Job[T], progress: Progress | None = None) -> T:
        """Run a job. If the caller is cancelled, the work stops.

        `progress` is called in the event loop. Raises as the job does, `BacktestTimeout` and `BacktesterUnavailable`.
        """

    async def close(self) -> None:
        """Stop all work and close all connections."""


def make_backtester(settings: Settings) -> Backtester:
    """Returns the backtester that the settings name."""
    if not settings.backtester:
        return LocalBacktester(settings.backtest_timeout)
    from openbell.desk.grpc_backtester import GrpcBacktester

    return GrpcBacktester(settings)


class LocalBacktester:
    """Runs jobs in threads of this process, two at a time. A job that is given up stops at its next step."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._executor = ThreadPoolExecutor(_MOST, "backtests")
        self._closed = threading.Event()

    async def run(self, job: Job[T], progress: Progress | None = None) -> T:
        """Implements `Backtester`."""
        loop, given_up = asyncio.get_running_loop(), threading.Event()

        def report(done: int, total: int) -> None:
            if given_up.is_set() or self._closed.is_set():
                raise _GivenUp
            if progress:
                loop.call_soon_threadsafe(progress, done, total)

        def work() -> T:
            if given_up.is_set():
                raise _GivenUp
            return job.run(report)

        try:
            async with asyncio.timeout(self._timeout or None):
                return await loop.run_in_executor(self._executor, work)
        except TimeoutError:
            raise too_long(self._timeout) from None
        finally:
            given_up.set()

    async def close(self) -> None:
        """Implements `Backtester`."""
        self._closed.set()
        self._executor.shutdown(wait=False, cancel_futures=True)


class _GivenUp(Exception):
    """Raised in the thread of a job that nobody waits for."""


def too_long(timeout: float, **details: Any) -> BacktestTimeout:
    """Returns the error of a job that took longer than its limit."""
    return BacktestTimeout(
        f"the backtest took longer than {timeout:g} s (OPENBELL_BACKTEST_TIMEOUT): use fewer bars or a longer limit",
        timeout_s=timeout,
        **details,
    )
