"""The servers that did not answer during a call: its later requests to them fail at once.

A call reads bars several times, and a time-out is the time that the whole call waits for a connection. The next call tries
again. What runs outside of calls, such as the collector, tries every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from openbell.market.errors import StoreError


@dataclass(slots=True)
class _Call:
    ended: bool = False
    """Set because tasks that were started by a call, and have its context, may outlive it."""
    failed: dict[str, StoreError] = field(default_factory=dict)


_call: ContextVar[_Call | None] = ContextVar("call_outages", default=None)


@contextmanager
def remembering_outages() -> Iterator[None]:
    """Within the block, and in the threads and tasks that it starts, `raise_known` raises what `note` has noted."""
    call = _Call()
    token = _call.set(call)
    try:
        yield
    finally:
        call.ended = True
        _call.reset(token)


def note(server: str, error: StoreError) -> StoreError:
    """Note that a server did not answer; returns the error."""
    call = _call.get()
    if call is not None and not call.ended:
        call.failed[server] = error
    return error


def raise_known(server: str) -> None:
    """Raise the error that was noted in this call, if any."""
    call = _call.get()
    if call is not None and not call.ended and (known := call.failed.get(server)) is not None:
        raise type(known)(known.message, **known.details)
