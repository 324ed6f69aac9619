"""The rate of requests: a token bucket below the plan's rate and burst, shared by all calls of a process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache

from openbell.charts.config.plans import Plan

_MARGIN = 0.9
"""The share of the plan's rate that is used: two clocks do not agree exactly."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How time passes; tests pass their own."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    """The machine's time in epoch seconds."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Pace:
    """A token bucket. The caller passes the monotonic time."""

    def __init__(self, plan: Plan) -> None:
        self._step = 1 / (plan.per_second * _MARGIN)
        self._room = self._step * (max(1, plan.burst - 1) - 1)
        self._full_at = 0.0
        """When the bucket is full again."""

    def reserve(self, now: float, longest: float) -> float | None:
        """Returns the seconds after which a request may be sent, and reserves that time for it.

        Returns None, and reserves nothing, if it is more than `longest`.
        """
        full_at = max(self._full_at, now)
        wait = max(0.0, full_at - now - self._room)
        if wait > longest:
            return None
        self._full_at = full_at + self._step
        return wait

    def wait(self, now: float) -> float:
        """Returns the seconds after which a request may be sent."""
        return max(0.0, self._full_at - now - self._room)


@cache
def pace_of(plan: Plan, fingerprint: str) -> Pace:
    """Returns the bucket of a key that all calls of this process share."""
    _ = fingerprint
    return Pace(plan)
