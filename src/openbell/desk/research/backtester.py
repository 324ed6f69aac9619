"""The backtester that a desk uses: a port with two implementations, in this process and over gRPC."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from openbell.backtest.errors import BacktesterUnavailable, too_long
from openbell.backtest.wire.limits import MEGABYTE, MOST_MESSAGE_MB
from openbell.market.errors import DataError, InvalidParameter, SettingsError
from openbell.stores.threads import CALLER, FairQueue, Threads

if TYPE_CHECKING:
    from openbell.backtest.jobs import Job
    from openbell.backtest.runs import Progress
    from openbell.backtest.wire.methods import Method
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
            async with asyncio.timeout(self._timeout or None) as bound:
                return await self._threads.run(work)
        except TimeoutError:
            if not bound.expired():
                raise  # of the job itself
            raise too_long(self._timeout) from None
        finally:
            given_up.set()

    async def close(self) -> None:
        """Implements `Backtester`."""
        self._closed.set()
        self._threads.abandon()


class _GivenUp(Exception):
    """Raised in the thread of a job that nobody waits for."""


class _Channel:
    """A connection, and the number of calls that use it."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.calls = 0


class GrpcBacktester:
    """Sends jobs to a backtester service over a few connections, which are opened when they are needed.

    Connecting is repeated until a timeout. A request that was sent is not sent again.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._target = settings.backtester
        self._channels: list[_Channel] = []
        each = settings.pool_backtester_connections
        self._queue = FairQueue(2 * each, each)

    async def run(self, job: Job[T], progress: Progress | None = None) -> T:
        """Implements `Backtester`."""
        from openbell.backtest.wire.methods import method_of

        method = method_of(job)
        async with self._queue.place(CALLER.get()):  # also for the threads that convert messages
            request = await asyncio.to_thread(lambda: method.to_request(job).SerializeToString())
            self._check_size(request)
            async with self._connected() as channel:
                response = await self._call(channel, method, request, progress)
            result: T = await asyncio.to_thread(method.to_result, job, response.result)
        return result

    def _check_size(self, request: bytes) -> None:
        most = self._settings.backtester_message_mb
        if len(request) > most * MEGABYTE:
            raise InvalidParameter(
                f"the request has {len(request) / MEGABYTE:.1f} MB, and the most is {most}: use fewer bars, or set "
                f"OPENBELL_BACKTESTER_MESSAGE_MB (at most {MOST_MESSAGE_MB}) and --max-message-mb of the service"
            )

    async def _call(self, channel: Any, method: Method, request: bytes, progress: Progress | None) -> Any:
        """Returns the response with the result."""
        import grpc

        timeout = self._settings.backtest_timeout
        stub = channel.unary_stream(method.path, response_deserializer=method.response.FromString)
        call = stub(request, timeout=timeout or None)
        try:
            async for response in call:
                if response.HasField("result"):
                    return response
                if progress:
                    progress(response.progress.done, response.progress.total)
        except grpc.aio.AioRpcError as error:
            _raise(error, self._target, timeout)
        finally:
            call.cancel()
        raise BacktesterUnavailable(f"the backtester at {self._target} ended the call without a result")

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        """Yield a connection. Raises `BacktesterUnavailable` if there is none within the timeout."""
        entry = self._least_used()
        entry.calls += 1
        try:
            limit = self._settings.pool_backtester_connect
            try:
                async with asyncio.timeout(limit):
                    await entry.channel.channel_ready()
            except TimeoutError:
                raise BacktesterUnavailable(
                    f"cannot connect to the backtester at {self._target} within {limit:g} s "
                    f"(OPENBELL_BACKTESTER): start it with openbell backtester --port {self._target.rpartition(':')[2]}",
                    backtester=self._target,
                ) from None
            yield entry.channel
        finally:
            entry.calls -= 1

    def _least_used(self) -> _Channel:
        """Returns the connection with the fewest calls; another one while all are in use and more are allowed."""
        least = min(self._channels, key=lambda each: each.calls, default=None)
        if least is None or (least.calls and len(self._channels) < self._settings.pool_backtester_connections):
            least = _Channel(_open(self._settings))
            self._channels.append(least)
        return least

    async def close(self) -> None:
        """Implements `Backtester`."""
        channels, self._channels = self._channels, []
        await asyncio.gather(*(each.channel.close() for each in channels))


def quiet_grpc() -> None:
    """Keep gRPC from printing failures that are raised; call it before gRPC is imported."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def _open(settings: Settings) -> Any:
    quiet_grpc()
    import grpc

    options = [
        ("grpc.use_local_subchannel_pool", 1),  # otherwise all channels share one connection
        ("grpc.max_receive_message_length", settings.backtester_message_mb * MEGABYTE),
        ("grpc.max_send_message_length", settings.backtester_message_mb * MEGABYTE),
        ("grpc.keepalive_time_ms", int(settings.pool_backtester_keepalive * 1000)),
        ("grpc.keepalive_timeout_ms", int(settings.pool_backtester_keepalive_timeout * 1000)),
        ("grpc.http2.ping_timeout_ms", int(settings.pool_backtester_keepalive_timeout * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 2000),
    ]
    if not settings.backtester_tls_ca:
        return grpc.aio.insecure_channel(settings.backtester, options)
    names = ("backtester_tls_ca", "backtester_tls_key", "backtester_tls_cert")
    authority, key, certificate = (_content(getattr(settings, name)) for name in names)
    credentials = grpc.ssl_channel_credentials(authority, key, certificate)
    return grpc.aio.secure_channel(settings.backtester, credentials, options)


def _content(path: str) -> bytes | None:
    """Returns the content of a file of the settings, or None if none is set. Raises `SettingsError`."""
    if not path:
        return None
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None


def _raise(error: Any, target: str, timeout: float) -> NoReturn:
    """Raise the error of the exception tree that a status stands for."""
    import grpc

    status, message = error.code(), error.details() or ""
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        raise too_long(timeout, backtester=target) from None
    if status is grpc.StatusCode.INVALID_ARGUMENT:
        raise InvalidParameter(message) from None
    if status is grpc.StatusCode.FAILED_PRECONDITION:
        raise DataError(message) from None
    if status is grpc.StatusCode.RESOURCE_EXHAUSTED:
        raise BacktesterUnavailable(f"the backtester at {target} refused the run: {message}") from None
    raise BacktesterUnavailable(
        f"the backtester at {target} failed ({status.name}): {message[:200]}", backtester=target, status=status.name
    ) from None
