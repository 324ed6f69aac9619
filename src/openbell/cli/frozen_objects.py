"""Keeps pauses of the garbage collector short in a process that serves for long.

A full collection looks at all objects while nothing else runs: 190,000 of a desk that reads a large message took 65 to
105 ms on a busy machine, and messages with many values bring such collections about. Objects that stay are frozen, which
means that no collection looks at them again; 20 ms were left.
"""

from __future__ import annotations

import asyncio
import gc

_AGAIN = (2.0, 15.0, 60.0, 600.0)
"""Seconds after the first time. Parts of the desk load at their first use. Not for ever: frozen objects that become garbage
in a cycle are never freed.
"""
_MANY = 20_000
"""Fewer objects are not worth a collection."""


def freeze_now_and_later() -> None:
    """Freeze the objects of this process now, and in the running event loop a few times more."""
    _freeze()
    for seconds in _AGAIN:
        asyncio.get_running_loop().call_later(seconds, _freeze)


def _freeze() -> None:
    if len(gc.get_objects()) >= _MANY:
        gc.collect()
        gc.freeze()
