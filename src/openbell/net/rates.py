"""Rates of requests: those that the desk allows, and those that a vendor asks for.

A bucket is one number, the time at which it is full again (the generic cell rate algorithm). For vendors there are back-off
with jitter, Retry-After, and the budget from rate-limit headers. The caller passes monotonic time, because changes of the
system's clock must neither fill nor empty a bucket, and the random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_PURGE_SECONDS = 1.0
_SHARED = ""
_ROUNDING = 1e-9
"""Of a request: so that one that waits exactly as long as it was told is not refused because of a rounding error."""
_WINDOW = 60.0
_STEPS = 64
"""The number of doublings after which the back-off stays constant, because more would overflow a float."""


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


def backoff(attempt: int, chance: float, *, first: float = 0.5, longest: float = 30.0) -> float:
    """Returns the seconds to wait after failure number `attempt` (0 is the first). `chance` is random in [0, 1).

    The wait doubles with every failure. It is between half and all of that step, so that many clients do not retry at the
    same time.
    """
    step = min(longest, first * 2.0 ** min(attempt, _STEPS))
    return step * (0.5 + chance / 2)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds of a Retry-After header (a number or a date); None if it is missing or invalid."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    seconds = _number(text)
    if seconds is None:
        moment, now = _date(text), _date(headers.get("date", ""))
        seconds = None if moment is None or now is None else moment - now
    return None if seconds is None else max(0.0, seconds)


def vendor_time(headers: Mapping[str, str]) -> float | None:
    """Returns the vendor's time in epoch seconds from the Date header; None if it is missing or invalid."""
    return _date(headers.get("date", ""))


class Budget:
    """The number of requests left in the vendor's window, from its headers if it sends them, counted here otherwise."""

    def __init__(self, per_minute: int) -> None:
        self._size = per_minute
        self._left = per_minute
        self._in_flight = 0
        self._window_end = -math.inf
        """Monotonic time."""

    def wait(self, now: float) -> float:
        """Returns the seconds until one more request is allowed; 0 if it is allowed now."""
        return max(0.0, self._window_end - now) if self._left <= 0 else 0.0

    def take(self, now: float) -> None:
        """Count a request that is sent now."""
        if now >= self._window_end:
            self._left, self._window_end = self._size, now + _WINDOW
        self._left -= 1
        self._in_flight += 1

    def answered(self, headers: Mapping[str, str], now: float) -> None:
        """Count the end of a request; `headers` are empty if it failed."""
        self._in_flight -= 1
        size, left = (_number(headers.get(f"x-ratelimit-{name}", "")) for name in ("limit", "remaining"))
        if size is not None and size >= 1:
            self._size = int(size)
        if left is None:
            return
        # The vendor's number does not include the requests that are still in flight.
        self._left = int(left) - self._in_flight
        reset, date = _number(headers.get("x-ratelimit-reset", "")), _date(headers.get("date", ""))
        if reset is not None and date is not None:
            self._window_end = now + min(_WINDOW, max(0.0, reset - date))

    def hold(self, seconds: float, now: float) -> None:
        """Allow no request for `seconds`, after the vendor refused one."""
        self._left, self._window_end = 0, now + seconds


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _date(text: str) -> float | None:
    try:
        moment: datetime = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
