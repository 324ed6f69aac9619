"""A worker of the backtester: a process that reads requests from its input, and writes progress and results to its output.

Both are frames: a letter, a length and the content.

The service kills it to stop a run. It also ends when its input does, so that it never survives the service.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import struct
import sys
import threading
import time
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, BinaryIO

from openbell.desk.operations.logs.setup import start_log_of_child

if TYPE_CHECKING:
    from openbell.backtest.wire.methods import Method

log = logging.getLogger(__name__)
FRAME_HEADER = struct.Struct("<cQ")
"""The letter and the length."""
MOST_MEMORY = 4 * 1024**3
"""Bytes that a worker may allocate; a run that needs more is refused."""
_REPORT_SECONDS = 0.1
"""Seconds between reports of progress, at least."""
_Waiting = queue.SimpleQueue[tuple[str, list[bytes]]]
"""Requests, each a method and a list from which the bytes are taken: decoded, they need not stay in memory."""


class FrameKind(Enum):
    """What a frame contains."""

    READY = b"+"
    """Nothing: the worker accepts requests."""
    METHOD = b"M"
    """The name of a method; its request follows."""
    REQUEST = b"Q"
    """A serialized request."""
    BEGUN = b"B"
    """Nothing: the worker has decoded a request, and runs it."""
    PROGRESS = b"P"
    """A serialized response that reports progress."""
    RESULT = b"R"
    """The serialized response with the result; the last frame of an answer."""
    ERROR = b"E"
    """The name of a gRPC status, a line feed and a message; the last frame of an answer."""


def framed(kind: FrameKind, content: bytes = b"") -> bytes:
    """Returns a frame."""
    return FRAME_HEADER.pack(kind.value, len(content)) + content


def read_frame(pipe: BinaryIO) -> tuple[FrameKind, bytes] | None:
    """Returns the next frame, or None at the end of the pipe. Blocks."""
    header = pipe.read(FRAME_HEADER.size)
    if len(header) < FRAME_HEADER.size:
        return None
    letter, length = FRAME_HEADER.unpack(header)
    content = pipe.read(length)
    return (FrameKind(letter), content) if len(content) == length else None


def return_freed_memory() -> None:
    """Return what was freed to the system, for a process that has held a large message; only glibc can."""
    import ctypes

    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # not glibc
        return


def main() -> None:
    """Answer requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the service decides
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed must not mix with frames
    sys.stdout = sys.stderr
    _limit_memory()
    from openbell.backtest.wire.limits import MEGABYTE
    from openbell.backtest.wire.methods import METHODS

    most_message = int(sys.argv[1]) * MEGABYTE
    waiting: _Waiting = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    _send(answers, framed(FrameKind.READY))
    while True:
        name, request = waiting.get()
        _send(answers, _answer(METHODS[name], request, answers, most_message))
        return_freed_memory()


def _read(requests: BinaryIO, waiting: _Waiting) -> None:
    """Pass requests on. At the end of the input, or if a request does not fit into memory, end the process, even in the
    middle of a run.
    """
    try:
        while (method := read_frame(requests)) and (request := read_frame(requests)):
            waiting.put((method[1].decode(), [request[1]]))
            del request
    finally:
        os._exit(0)


def _answer(method: Method, request: list[bytes], answers: BinaryIO, most_message: int) -> bytes:
    """Returns the last frame of an answer."""
    from openbell.market.errors import InputError, OpenbellError

    last = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _REPORT_SECONDS:
            last = time.monotonic()
            _send(answers, framed(FrameKind.PROGRESS, method.progress(done, total)))

    try:
        job = method.job_of(request.pop())
        _send(answers, framed(FrameKind.BEGUN))
        response = method.response_of(job.run(report))
    except InputError as error:
        return _failed("INVALID_ARGUMENT", error.message)
    except OpenbellError as error:
        return _failed("FAILED_PRECONDITION", error.message)
    except MemoryError:
        return _failed("RESOURCE_EXHAUSTED", f"the run needs more than {MOST_MEMORY // 1024**3} GiB: use fewer bars")
    except Exception:
        log.exception("%s failed", method.name)
        return _failed("INTERNAL", "internal error; the log of the backtester has the details")
    if len(response) > most_message:
        return _failed(
            "RESOURCE_EXHAUSTED",
            f"the result has {len(response):,} bytes, the most is {most_message:,}: use fewer bars, or start the service "
            "with a larger --max-message-mb",
        )
    return framed(FrameKind.RESULT, response)


def _failed(status: str, message: str) -> bytes:
    return framed(FrameKind.ERROR, f"{status}\n{message[:2000]}".encode())


def _send(answers: BinaryIO, frame: bytes) -> None:
    try:
        answers.write(frame)
        answers.flush()
    except BrokenPipeError:  # the service has ended
        os._exit(0)


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):  # not on Windows, or a lower limit holds already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    start_log_of_child()
    main()
