"""How long a call about an account waits for bars.

An account must be readable, and its positions reducible, while the store of bars or the feed hangs. So each step of a call
that needs bars must end at some share of the call's timeout (OPENBELL_TIMEOUT), and the call continues without them. The
last share is left for the records. What runs outside of calls, such as the engine, waits for all bars.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from enum import Enum

from openbell.market.errors import StoreTimeout
from openbell.stores.call_outages import remembering_outages

_call: ContextVar[tuple[float, float] | None] = ContextVar("_call", default=None)
"""When the current call began, by the event loop's time, and its timeout in seconds."""


class BarDeadline(Enum):
    """A step that needs bars, with the share of the timeout at which it must end."""

    FIND = 0.2
    """Looking up whether an instrument exists."""
    SETTLE = 0.45
    """Applying the bars that have closed to an account."""
    PRICES = 0.8
    """Reading the prices that value an account."""
    REASONS = 0.9
    """Finding out what working orders wait for."""


@contextmanager
def call_within(timeout: float) -> Iterator[None]:
    """The steps inside belong to a call with this timeout in seconds; 0: they are not limited."""
    token = _call.set((asyncio.get_running_loop().time(), timeout) if timeout else None)
    try:
        with remembering_outages():
            yield
    finally:
        _call.reset(token)


@asynccontextmanager
async def during(step: BarDeadline) -> AsyncIterator[None]:
    """Raises `StoreTimeout` if the block has not ended when the step must end."""
    call = _call.get()
    limit = asyncio.timeout_at(call[0] + call[1] * step.value if call else None)
    began = asyncio.get_running_loop().time()
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        waited = asyncio.get_running_loop().time() - began
        raise StoreTimeout(f"a store or the feed did not answer within {waited:.1f} s") from None
