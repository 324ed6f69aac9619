"""Limits of a principal: calls per minute for each class of tools, and requests at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Self

from openbell.desk.settings import Settings
from openbell.gateway.guard.refusals import GuardRefusal
from openbell.net.rates import Buckets, Rate, Standing
from openbell.protocol.session import Scope

SIGN_IN = "signin"
KINDS = (*(scope.value for scope in Scope), SIGN_IN)
"""The classes of calls: the scope of a tool, or an attempt to sign in, whose principal is an address."""
_MOST = 10_000
"""Buckets of one class. Further principals share one bucket until some are full."""


def rates_of(settings: Settings) -> dict[str, Rate]:
    """Returns the rate of each class that has one."""
    values = settings.by_name
    rates = {kind: Rate(values[f"rate_{kind}"], values[f"burst_{kind}"]) for kind in KINDS}
    return {kind: rate for kind, rate in rates.items() if rate.per_minute}


class CallLimits:
    """Calls per minute, for each principal and class."""

    def __init__(
        self, rates: Mapping[str, Rate], *, most: int = _MOST, now: Callable[[], float] = time.monotonic
    ) -> None:
        """A class without a rate has no limit. `most` bounds the buckets of each class."""
        self._buckets = {kind: Buckets(rate, most) for kind, rate in rates.items()}
        self._now = now

    def take(self, principal: str, kind: str) -> float | None:
        """Take one call. Returns the seconds to wait if there is none left, and None if the call may go on."""
        buckets = self._buckets.get(kind)
        return None if buckets is None else buckets.take(principal, self._now())

    def standing(self, principal: str, kind: str) -> Standing | None:
        """Returns what is left of a limit; None if the class has none."""
        buckets = self._buckets.get(kind)
        return None if buckets is None else buckets.standing(principal, self._now())

    def refusal(self, principal: str, kind: str) -> GuardRefusal | None:
        """The same as a refusal with status 429; None if the call may go on."""
        seconds = self.take(principal, kind)
        return None if seconds is None else rate_limited(kind, seconds)

    def __len__(self) -> int:
        """Returns how many buckets are kept."""
        return sum(map(len, self._buckets.values()))


def rate_limited(kind: str, seconds: float) -> GuardRefusal:
    """Returns the refusal of a call that came too early."""
    what = "attempts to sign in" if kind == SIGN_IN else f"calls of {kind} tools"
    return GuardRefusal(
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
_BUSY = GuardRefusal(
    503, "busy", "The gateway works on as many requests as OPENBELL_MAX_REQUESTS allows: retry later.", _BUSY_SECONDS
)
_TOO_MANY = GuardRefusal(
    429,
    "too_many_requests",
    "This principal has as many requests at once as OPENBELL_MAX_REQUESTS_EACH allows: wait for one to end.",
    _BUSY_SECONDS,
)


class Slots:
    """Requests (or streams) at once, in all and for each principal."""

    def __init__(self, most: int, each: int, *, busy: GuardRefusal = _BUSY, too_many: GuardRefusal = _TOO_MANY) -> None:
        """`busy` and `too_many` are the refusals of the two limits."""
        self._most = most
        self._each = each
        self._busy = busy
        self._too_many = too_many
        self._held: dict[str, int] = {}
        self.total = 0

    def claim(self, principal: str) -> Claim | GuardRefusal:
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
