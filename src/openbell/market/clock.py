"""The one clock. No domain code asks the time elsewhere.

`SystemClock` is now; `StandingClock` is one moment (`--as-of`); `ReplayClock` runs from a moment at some speed, and stops
when it reaches the present. `BoundedClock` is the earlier of a clock and the machine's time. Leases, time-outs, cache ages
and throttles are about this machine, not about the market: they use `time.monotonic` instead.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from datetime import UTC, datetime
from math import inf
from typing import Protocol

from openbell.market.errors import InvalidParameter

log = logging.getLogger(__name__)
_EPOCH = re.compile(r"\d{9,11}(\.\d+)?")


class Clock(Protocol):
    """What the market's time is, and a way to wait for it."""

    @property
    def moving(self) -> bool:
        """Whether waiting for a later time can ever end."""

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""

    async def sleep_until(self, epoch: float) -> None:
        """Wait until this clock shows at least `epoch`."""


def now(clock: Clock) -> datetime:
    """The clock's time as an aware UTC datetime."""
    return datetime.fromtimestamp(clock.epoch(), UTC)


class SystemClock:
    """The machine's own time."""

    moving = True

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""
        return time.time()

    async def sleep_until(self, epoch: float) -> None:
        """Wait in steps, so that a suspended laptop or a stepped clock is noticed."""
        while (left := epoch - time.time()) > 0:
            await asyncio.sleep(min(left, 5.0))


class StandingClock:
    """One moment that never passes: the same question always has the same answer."""

    moving = False

    def __init__(self, at: float) -> None:
        self._at = at

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""
        return self._at

    async def sleep_until(self, epoch: float) -> None:
        """Return if that time has come, else never."""
        if epoch > self._at:
            await asyncio.Event().wait()


class ReplayClock:
    """Runs from `start` at `speed` times real time, and stops when it reaches the present."""

    def __init__(self, start: float, speed: float) -> None:
        if not 0 < speed < inf:  # NaN included: such a clock would show no time at all
            raise InvalidParameter(f"replay speed must be positive, not {speed}")
        self._start = start
        self._speed = speed
        self._began = time.monotonic()
        self._stopped: float | None = None

    @property
    def moving(self) -> bool:
        """Whether it still runs."""
        self.epoch()
        return self._stopped is None

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""
        if self._stopped is None:
            moment = self._start + (time.monotonic() - self._began) * self._speed
            if moment < (present := time.time()):
                return moment
            self._stopped = max(self._start, present)
            log.warning("the replay has reached the present and stops at %s", iso(int(self._stopped)))
        return self._stopped

    async def sleep_until(self, epoch: float) -> None:
        """Wait the scaled time; for a time after the present, until cancelled."""
        while (left := epoch - self.epoch()) > 0:
            if not self.moving:
                await asyncio.Event().wait()
            await asyncio.sleep(left / self._speed)


class BoundedClock:
    """The earlier of another clock's time and the machine's: the time by which a bar can have closed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._machine = SystemClock()

    @property
    def moving(self) -> bool:
        """Whether waiting for a later time can ever end."""
        return self._clock.moving

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""
        return min(self._clock.epoch(), self._machine.epoch())

    async def sleep_until(self, epoch: float) -> None:
        """Wait until both clocks show at least `epoch`."""
        await self._clock.sleep_until(epoch)
        await self._machine.sleep_until(epoch)


def bounded(clock: Clock) -> Clock:
    """A clock that is never ahead of the machine's time."""
    return clock if isinstance(clock, SystemClock | BoundedClock) else BoundedClock(clock)


def parse_time(text: str) -> float:
    """Read ISO 8601 (no zone means UTC) or epoch seconds. Raises `InvalidParameter`."""
    try:
        if _EPOCH.fullmatch(text.strip()):
            return datetime.fromtimestamp(float(text), UTC).timestamp()
        moment = datetime.fromisoformat(text.strip())
        if not 1 < moment.year < 9999:  # another zone's wall clock would overflow there
            raise ValueError
    except (ValueError, OverflowError, OSError):
        raise InvalidParameter(f"{text!r} is not a time: use ISO 8601, for example 2025-09-19T19:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def iso(epoch: float) -> str:
    """The wire form of a time: `2025-09-19T18:59:00+00:00`."""
    return datetime.fromtimestamp(epoch, UTC).isoformat()
