"""Memory and garbage of a process: its allocator, and when Python's collector looks at which objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Of glibc's malloc.h."""
_AGAIN = (2.0, 15.0, 60.0, 600.0)
"""Seconds after the first time. Parts of the desk load at their first use. Not for ever: frozen objects that become garbage
in a cycle are never freed.
"""
_MANY = 20_000
"""Fewer objects are not worth a collection."""


def tune_allocator() -> None:
    """Set one heap for all threads, of which up to 8 MB stay when they are free. Call it before threads are started.

    With a heap for each thread, memory that one thread has freed cannot be used by another: the bars of 500 symbols, read
    again by either of two threads, took 440 MB instead of 310. A picture takes arrays of some hundred kilobytes by the
    dozen. Handed back to the system each time, they cost a quarter of its drawing in page faults. Arrays of a megabyte and
    more are handed back at once.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return
    for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, 1024 * 1024), (_TRIM_THRESHOLD, 8 * 1024 * 1024)):
        mallopt(option, value)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect no garbage in the block, which only loads; what it has loaded is never looked at again.

    Python's garbage collector runs many times while modules load and finds nothing. Without it a server starts about a tenth
    sooner.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def freeze_now_and_later() -> None:
    """Freeze the objects of this process now, and in the running event loop a few times more.

    A full collection looks at all objects while nothing else runs: 190,000 of a desk that reads a large message took 65 to
    105 ms on a busy machine, and messages with many values bring such collections about. Objects that stay are frozen, which
    means that no collection looks at them again; 20 ms were left.
    """
    import asyncio

    _freeze()
    for seconds in _AGAIN:
        asyncio.get_running_loop().call_later(seconds, _freeze)


def _freeze() -> None:
    if len(gc.get_objects()) >= _MANY:
        gc.collect()
        gc.freeze()
