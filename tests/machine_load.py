"""How much others slow this machine down, for tests that measure how long something takes."""

from __future__ import annotations

import time

_SECONDS = 0.2


def slowdown() -> float:
    """How many times longer than alone a program computes now, because others use the processors too; 1 or more."""
    began, used = time.monotonic(), time.process_time()
    while time.process_time() - used < _SECONDS:
        pass
    return max(1.0, (time.monotonic() - began) / _SECONDS)
