"""Rates of requests. A bucket is one number, the time at which it is full again (the generic cell rate algorithm).

The caller passes monotonic time: changes of the system's clock neither fill nor empty a bucket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_PURGE_SECONDS = 1.0
_SHARED = ""
_ROUNDING = 1e-9
"""Of a request: so that one that waits exactly as long as it was told is not refused because of a rounding error."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests per minute, and how many may come at once."""

    per_minute: float
    burst: int

    @property
    def step(self) -> float:
        """Seconds from one request to the next."""
        return 60 / self.per_minute

    def wait(self, full_at: float, now: float) -> float:
        """Returns the seconds after which a bucket has room for a request; 0 if it has."""
        wait = full_at - now - self.step * (self.burst - 1)
        return wait if wait > self.step * _ROUNDING else 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """What is left of a rate."""

    limit: int
    """Requests that may come at once after a pause."""
    remaining: int
    """Requests that may come now."""
    wait: float
    """Seconds until the next request may come; 0 if one may come now."""
    reset: float
    """Seconds until the whole limit is left again."""


class Bucket:
    """The rate of one sender, whose requests wait for their turn."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._full_at = -math.inf

    def wait(self, now: float) -> float:
        """Returns the seconds after which a request may be sent."""
        return self._rate.wait(self._full_at, now)

    def reserve(self, now: float, longest: float = math.inf, *, cost: float = 1.0) -> float | None:
        """Returns the seconds after which a request may be sent, and reserves that time for it.

        Returns None, and reserves nothing, if it is more than `longest`.
        """
        wait = self.wait(now)
        if wait > longest:
            return None
        self._full_at = max(self._full_at, now) + self._rate.step * cost
        return wait


class Buckets:
    """The rate of each of many senders, whose requests are refused. A full bucket is forgotten."""

    def __init__(self, rate: Rate, most: int) -> None:
        """`most` bounds the buckets. Further senders share one until some are full."""
        self._rate = rate
        self._most = most
        self._full_at: dict[str, float] = {}
        """When the bucket of a sender is full again; a missing one is full."""
        self._next_purge = 0.0

    def standing(self, sender: str, now: float) -> Standing:
        """Returns what is left for a sender."""
        if sender not in self._full_at and len(self._full_at) >= self._most:
            sender = _SHARED
        rate, until_full = self._rate, max(0.0, self._full_at.get(sender, now) - now)
        wait = rate.wait(now + until_full, now)
        left = 0 if wait else math.floor(rate.burst - until_full / rate.step + _ROUNDING)
        return Standing(rate.burst, left, wait, until_full)

    def take(self, sender: str, now: float) -> float | None:
        """Take one request. Returns the seconds to wait if there is none left, and None if the request may go on."""
        full_at = self._full_at.get(sender)
        if full_at is None and len(self._full_at) >= self._most:
            # Removing a bucket that is in use would fill it: a flood of senders would lift the limit of others.
            self._purge(now)
            if len(self._full_at) >= self._most:
                sender, full_at = _SHARED, self._full_at.get(_SHARED)
        full_at = now if full_at is None else max(full_at, now)
        if wait := self._rate.wait(full_at, now):
            return wait
        self._full_at[sender] = full_at + self._rate.step
        return None

    def _purge(self, now: float) -> None:
        if now >= self._next_purge:
            self._next_purge = now + _PURGE_SECONDS
            self._full_at = {sender: time for sender, time in self._full_at.items() if time > now}

    def __len__(self) -> int:
        """Returns how many buckets are kept."""
        return len(self._full_at)
