"""The worker processes of the backtester: each runs one request at a time, and is killed if the request is given up."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from openbell.gateway.backtester.worker import FRAME_HEADER, FrameKind, framed, return_freed_memory

_WORKER = "openbell.gateway.backtester.worker"
_MOST_DECODED = 2
"""Requests that are decoded at once: each takes several times its size in memory."""
_RECEIVE_SECONDS = 15.0
_PIECE = 1 << 18
"""Bytes of a request that are passed to a worker at once."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""Workers compute beside each other: threads of one would only disturb the others."""


class Busy(Exception):
    """All workers are busy, and as many requests as may wait are waiting."""


class NotReceived(Exception):
    """A request did not arrive in time, while a worker waited for it."""


class WorkerEnded(Exception):
    """A worker process ended by itself, such as for lack of memory."""


class Worker:
    """One worker process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, message_mb: int) -> Worker:
        """Start a process, and wait until it accepts requests. Its responses have at most `message_mb` megabytes."""
        environment = os.environ | _ONE_THREAD
        command = (sys.executable, "-m", _WORKER, str(message_mb))
        worker = cls(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment))
        try:
            await worker.read()
        except BaseException:
            await worker.kill()
            raise
        return worker

    async def begin(self, method: str, request: bytes) -> tuple[FrameKind, bytes]:
        """Send a request, and wait until the worker has decoded it. Returns the first frame. Raises `WorkerEnded`."""
        assert self._process.stdin
        try:
            self._process.stdin.write(framed(FrameKind.METHOD, method.encode()))
            self._process.stdin.write(FRAME_HEADER.pack(FrameKind.REQUEST.value, len(request)))
            for start in range(0, len(request), _PIECE):  # written whole, it would be copied
                self._process.stdin.write(memoryview(request)[start : start + _PIECE])
                await self._process.stdin.drain()
        except ConnectionError:
            raise WorkerEnded from None
        return await self.read()

    async def read(self) -> tuple[FrameKind, bytes]:
        """Returns the next frame. Raises `WorkerEnded`."""
        assert self._process.stdout
        try:
            letter, length = FRAME_HEADER.unpack(await self._process.stdout.readexactly(FRAME_HEADER.size))
            return FrameKind(letter), await self._process.stdout.readexactly(length)
        except asyncio.IncompleteReadError:
            raise WorkerEnded from None

    async def kill(self) -> None:
        """End the process at once, and wait for its end."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class BacktestProcesses:
    """A fixed number of workers, and a bounded number of requests that wait for one."""

    def __init__(self, count: int, most_waiting: int, message_mb: int) -> None:
        self._count, self._most = count, count + most_waiting
        self._message_mb = message_mb
        self._decoding = asyncio.Semaphore(_MOST_DECODED)
        self._turns = asyncio.Semaphore(count)
        self._requests = 0
        self._idle: list[Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start all workers."""
        self._idle = list(await asyncio.gather(*(Worker.start(self._message_mb) for _ in range(self._count))))

    async def answers(
        self, method: str, receive: Callable[[], Awaitable[bytes]]
    ) -> AsyncGenerator[tuple[FrameKind, bytes]]:
        """Yield the frames of an answer. If the caller stops before the last one, the worker is killed.

        `receive` returns the request; it is called when a worker is free. Raises `Busy`, `NotReceived` and `WorkerEnded`.
        """
        if self._requests >= self._most:
            raise Busy
        self._requests += 1
        try:
            await self._turns.acquire()
            worker: Worker | None = None
            try:
                request = await self._received(receive)
                async with self._decoding:
                    worker, frame = await self._begun(method, request)
                del request
                return_freed_memory()
                while frame[0] in {FrameKind.BEGUN, FrameKind.PROGRESS}:
                    if frame[0] is FrameKind.PROGRESS:
                        yield frame
                    frame = await worker.read()
                self._idle.append(worker)
                worker = None
            finally:
                self._turns.release()
                if worker:
                    self._kill(worker)
        finally:
            self._requests -= 1
        yield frame

    async def _received(self, receive: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            async with asyncio.timeout(_RECEIVE_SECONDS):
                return await receive()
        except TimeoutError:
            raise NotReceived(f"the request did not arrive within {_RECEIVE_SECONDS:.0f} s") from None

    async def _begun(self, method: str, request: bytes) -> tuple[Worker, tuple[FrameKind, bytes]]:
        """Returns a worker that has decoded the request, and its first frame.

        An idle one may have ended in the meantime: another one is used.
        """
        while True:
            idle = bool(self._idle)
            worker = self._idle.pop() if idle else await Worker.start(self._message_mb)
            try:
                frame = await worker.begin(method, request)
            except BaseException as error:
                self._kill(worker)
                if not (idle and isinstance(error, WorkerEnded)):
                    raise
            else:
                return worker, frame

    def _kill(self, worker: Worker) -> None:
        """Kill a worker in the background: a request that is given up does not wait."""
        task = asyncio.create_task(worker.kill())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Kill all workers."""
        await asyncio.gather(*self._tasks, *(worker.kill() for worker in self._idle))
