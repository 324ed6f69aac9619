"""Limits of a principal: calls per minute for each class of tools, and requests at once.

A bucket is one number, the time at which it is full again (the generic cell rate algorithm). A bucket that is full is
forgotten, so that memory depends on the principals of the last minutes only. Times are monotonic: changes of the system's
clock neither fill nor empty a bucket.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Self

from openbell.desk.settings import Settings
from openbell.gateway.guard.refusals import Refusal

SIGN_IN = "signin"
KINDS = ("read", "trade", "admin", SIGN_IN)
"""The classes of calls: the scope of a tool, or an attempt to sign in, whose principal is an address."""
_MOST = 10_000
"""Buckets of one class. Further principals share one bucket until some are full."""
_PURGE_SECONDS = 1.0
_SHARED = ""


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls per minute, and how many may come at once."""

    per_minute: float
    burst: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What a principal has left of a limit."""

    limit: int
    """Calls that may come at once after a pause."""
    remaining: int
    """Calls that may come now."""
    wait: float
    """Seconds until the next call may come; 0 if one may come now."""
    reset: float
    """Seconds until the whole limit is left again."""


def rates_of(settings: Settings) -> dict[str, Rate]:
    """Returns the rate of each class that has one."""
    values = settings.by_name
    rates = {kind: Rate(values[f"rate_{kind}"], values[f"burst_{kind}"]) for kind in KINDS}
    return {kind: rate for kind, rate in rates.items() if rate.per_minute}


class Limits:
    """Calls per minute, for each principal and class."""

    def __init__(
        self, rates: Mapping[str, Rate], *, most: int = _MOST, now: Callable[[], float] = time.monotonic
    ) -> None:
        """A class without a rate has no limit. `most` bounds the buckets of each class."""
        self._buckets = {kind: _Buckets(rate, most, now) for kind, rate in rates.items()}

    def take(self, principal: str, kind: str) -> float | None:
        """Take one call. Returns the seconds to wait if there is none left, and None if the call may go on."""
        buckets = self._buckets.get(kind)
        return None if buckets is None else buckets.take(principal)

    def standing(self, principal: str, kind: str) -> Standing | None:
        """Returns what is left of a limit; None if the class has none."""
        buckets = self._buckets.get(kind)
        return None if buckets is None else buckets.standing(principal)

    def refusal(self, principal: str, kind: str) -> Refusal | None:
        """The same as a refusal with status 429; None if the call may go on."""
        seconds = self.take(principal, kind)
        return None if seconds is None else rate_limited(kind, seconds)

    def __len__(self) -> int:
        """Returns how many buckets are kept."""
        return sum(map(len, self._buckets.values()))


class _Buckets:
    """The buckets of one class."""

    def __init__(self, rate: Rate, most: int, now: Callable[[], float]) -> None:
        self._burst = rate.burst
        self._step = 60 / rate.per_minute
        self._room = self._step * (rate.burst - 1) + self._step * 1e-9
        self._most = most
        self._now = now
        self._full_at: dict[str, float] = {}
        """When the bucket of a principal is full again; a missing one is full."""
        self._next_purge = 0.0

    def standing(self, principal: str) -> Standing:
        now = self._now()
        if principal not in self._full_at and len(self._full_at) >= self._most:
            principal = _SHARED
        until_full = max(0.0, self._full_at.get(principal, now) - now)
        wait = max(0.0, until_full - self._room)
        return Standing(self._burst, 0 if wait else 1 + int((self._room - until_full) / self._step), wait, until_full)

    def take(self, principal: str) -> float | None:
        now = self._now()
        full_at = self._full_at.get(principal)
        if full_at is None and len(self._full_at) >= self._most:
            # Removing a bucket that is in use would fill it: a flood of principals would lift the limit of others.
            self._purge(now)
            if len(self._full_at) >= self._most:
                principal, full_at = _SHARED, self._full_at.get(_SHARED)
        full_at = now if full_at is None else max(full_at, now)
        wait = full_at - now - self._room
        if wait > 0:
            return wait
        self._full_at[principal] = full_at + self._step
        return None

    def _purge(self, now: float) -> None:
        if now >= self._next_purge:
            self._next_purge = now + _PURGE_SECONDS
            self._full_at = {principal: time for principal, time in self._full_at.items() if time > now}

    def __len__(self) -> int:
        return len(self._full_at)


def rate_limited(kind: str, seconds: float) -> Refusal:
    """Returns the refusal of a call that came too early."""
    what = "attempts to sign in" if kind == SIGN_IN else f"calls of {kind} tools"
    return Refusal(
        429, "rate_limited", f"Too many {what}: retry later. The limit is OPENBELL_RATE_{kind.upper()}.", seconds
    )


def address_key(address: str) -> str:
    """Returns the name of an address in limits: for IPv6 its network (/64), because a client has all addresses of it."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or f"{IPv6Address(int(found) >> 64 << 64)}/64")


_BUSY_SECONDS = 1.0
_BUSY = Refusal(
    503, "busy", "The gateway works on as many requests as OPENBELL_MAX_REQUESTS allows: retry later.", _BUSY_SECONDS
)
_TOO_MANY = Refusal(
    429,
    "too_many_requests",
    "This principal has as many requests at once as OPENBELL_MAX_REQUESTS_EACH allows: wait for one to end.",
    _BUSY_SECONDS,
)


class Slots:
    """Requests (or streams) at once, in all and for each principal."""

    def __init__(self, most: int, each: int, *, busy: Refusal = _BUSY, too_many: Refusal = _TOO_MANY) -> None:
        """`busy` and `too_many` are the refusals of the two limits."""
        self._most = most
        self._each = each
        self._busy = busy
        self._too_many = too_many
        self._held: dict[str, int] = {}
        self.total = 0

    def claim(self, principal: str) -> Claim | Refusal:
        """Returns a slot, which must be released, or why there is none."""
        if self.total >= self._most:
            return self._busy
        held = self._held.get(principal, 0)
        if held >= self._each:
            return self._too_many
        self._held[principal] = held + 1
        self.total += 1
        return Claim(self, principal)

    def release(self, principal: str) -> None:
        """Give back a slot; `Claim` calls it once."""
        self.total -= 1
        held = self._held[principal] - 1
        if held:
            self._held[principal] = held
        else:
            del self._held[principal]

    def __len__(self) -> int:
        """Returns how many principals hold slots."""
        return len(self._held)


class Claim:
    """A slot that is held. Use as a context manager, or call `release`, any number of times."""

    __slots__ = ("_principal", "_slots")

    def __init__(self, slots: Slots, principal: str) -> None:
        self._slots: Slots | None = slots
        self._principal = principal

    def release(self) -> None:
        """Give the slot back, for example when a request has become a stream."""
        if self._slots is not None:
            slots, self._slots = self._slots, None
            slots.release(self._principal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()
