"""Settings of the C library's allocator, for commands that run for long."""

from __future__ import annotations

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Of glibc's malloc.h."""


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
