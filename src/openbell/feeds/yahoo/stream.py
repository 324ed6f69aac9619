"""A stream of minute bars: polls every chart once a minute."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import numpy as np

from openbell.feeds.port import Batch
from openbell.feeds.yahoo.candles import DELAY, Fetched
from openbell.market.bars import MINUTE, Bars, empty
from openbell.market.clock import Clock
from openbell.market.instruments import Instrument
from openbell.market.sessions import Phase, phase

SETTLE = 5.0
"""Seconds after a minute's end at which it is polled."""
_OVERLAP = int(DELAY)
"""Seconds of delivered minutes that are polled again, because Yahoo adds and changes bars afterwards."""

Fetch = Callable[[Instrument, int, int], Awaitable[Fetched]]
"""Returns the minutes of an instrument that opened in [start, end)."""


class PolledMinutes:
    """The minutes of one instrument: what was delivered, and up to which time they are complete."""

    def __init__(self, instrument: Instrument, since: int) -> None:
        self.instrument = instrument
        self.complete_until = since
        self._since = since
        self._polled = empty(instrument)
        """The bars of the last poll."""

    async def poll(self, fetch: Fetch, until: int, now: float) -> Bars:
        """Returns the bars before `until` that are new or have changed since the last poll."""
        if not self._may_change(now):
            self.complete_until = max(self.complete_until, until)
            return empty(self.instrument)
        start = max(self._since, min(self.complete_until, until - _OVERLAP))
        fetched = await fetch(self.instrument, start, int(now) + MINUTE)
        bars = fetched.bars.between(start, until)
        # Yahoo has all minutes before its newest row. Without a newer row, late minutes are possible for DELAY.
        reached = max(fetched.reached, now - DELAY) // MINUTE * MINUTE
        self.complete_until = max(self.complete_until, min(until, int(reached)))
        before, self._polled = set(_rows(self._polled)), bars
        return bars.take(np.array([row not in before for row in _rows(bars)], dtype=bool))

    def _may_change(self, now: float) -> bool:
        """Returns False if the market has been closed for longer than `DELAY` and its last minutes were polled."""
        if self.complete_until < now - DELAY - 2 * MINUTE:
            return True
        return any(phase(self.instrument, at) is not Phase.CLOSED for at in (now, now - DELAY))


async def batches(
    clock: Clock, fetch: Fetch, instruments: Sequence[Instrument], since: int
) -> AsyncGenerator[Batch, None]:
    """Yields the bars closed since `since`, then those of each minute. Raises `FeedUnavailable` and `UnknownSymbol`."""
    minutes = [PolledMinutes(instrument, since) for instrument in instruments]
    polled, complete = since, since
    while True:
        now = clock.epoch()
        until = int((now - SETTLE) // MINUTE * MINUTE)
        if until <= polled:
            await clock.sleep_until(polled + MINUTE + SETTLE)
            continue
        found = await _poll_all(minutes, fetch, until, now)
        polled = until
        reached = min((each.complete_until for each in minutes), default=until)
        if reached > complete or any(len(bars) for bars in found):
            complete = reached
            yield Batch(tuple(bars for bars in found if len(bars)), complete)


async def _poll_all(minutes: Sequence[PolledMinutes], fetch: Fetch, until: int, now: float) -> list[Bars]:
    """Returns the new bars of all instruments. If one poll fails, the others are cancelled and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            polls = [group.create_task(each.poll(fetch, until, now)) for each in minutes]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [poll.result() for poll in polls]


def _rows(bars: Bars) -> list[tuple[float, ...]]:
    return list(zip(*(column.tolist() for column in bars.columns()), strict=True))
