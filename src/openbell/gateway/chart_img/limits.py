"""The limits of a plan for each principal: requests per second and per UTC day, counted by this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil

from openbell.charts.config.choices import Plan
from openbell.gateway.guard.limits import CallLimits
from openbell.gateway.guard.refusals import GuardRefusal
from openbell.net.rates import Rate

_DAY = 86400
_KIND = "chart"
_MOST = 10_000
"""Principals that are counted. Further ones share a count."""


class PlanLimits:
    """Counts the requests of principals."""

    def __init__(self, plan: Plan, wall: Callable[[], float] = time.time) -> None:
        """`wall` returns the time of the machine."""
        self._plan = plan
        self._limits = CallLimits({_KIND: Rate(plan.per_second * 60, plan.burst)})
        self._wall = wall
        self._day = 0
        self._counts: dict[str, int] = {}

    def take(self, principal: str) -> GuardRefusal | None:
        """Take one request. Returns why there is none left."""
        now = self._wall()
        if int(now // _DAY) != self._day:
            self._day, self._counts = int(now // _DAY), {}
        if principal not in self._counts and len(self._counts) >= _MOST:
            principal = ""
        used = self._counts.get(principal, 0)
        if used >= self._plan.per_day:
            return GuardRefusal(429, "quota", "Limit Exceeded", _DAY - now % _DAY)
        wait = self._limits.take(principal, _KIND)
        if wait is not None:
            return GuardRefusal(429, "rate_limited", "Too Many Requests", ceil(wait))
        self._counts[principal] = used + 1
        return None

    def remaining(self, principal: str) -> int:
        """Returns how many requests are left of the day."""
        return max(0, self._plan.per_day - self._counts.get(principal, 0))
