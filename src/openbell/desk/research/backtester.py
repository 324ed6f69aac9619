"""The backtester that a desk uses: a port with two implementations, in this process and over gRPC."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Protocol, TypeVar

from openbell.backtest.errors import too_long
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from openbell.backtest.jobs import Job
    from openbell.backtest.walk_forward import Progress
    from openbell.desk.settings import Settings

T = TypeVar("T")

_MOST = 3
_EACH = 2
"""Threads, and how many of them work for one principal: a backtest need not wait for a walk-forward test of minutes."""


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
    from openbell.desk.research.grpc_backtester import GrpcBacktester

    return GrpcBacktester(settings)


class LocalBacktester:
    """Runs jobs in threads, two at a time for each principal. A job that is given up stops at its next step."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._threads = Threads("backtests", _MOST, _EACH)
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
                return await self._threads.run(work)
        except TimeoutError:
            raise too_long(self._timeout) from None
        finally:
            given_up.set()

    async def close(self) -> None:
        """Implements `Backtester`."""
        self._closed.set()
        self._threads.abandon()


class _GivenUp(Exception):
    """Raised in the thread of a job that nobody waits for."""
