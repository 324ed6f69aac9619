"""The rate of requests: below the plan's rate and burst, shared by all calls of a process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache

from openbell.charts.config.choices import Plan
from openbell.net.rates import Bucket, Rate

_MARGIN = 0.9
"""The share of the plan's rate that is used: two clocks do not agree exactly."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How time passes; tests pass their own."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    """The machine's time in epoch seconds."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def bucket_of(plan: Plan) -> Bucket:
    """Returns a bucket a little below the rate and burst of a plan."""
    return Bucket(Rate(plan.per_second * _MARGIN * 60, max(1, plan.burst - 1)))


@cache
def pace_of(plan: Plan, fingerprint: str) -> Bucket:
    """Returns the bucket of a key that all calls of this process share."""
    _ = fingerprint
    return bucket_of(plan)
