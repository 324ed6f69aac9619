"""Clocks. All domain code reads the time from the desk's clock.

`SystemClock` shows the system time; `FixedClock` always shows the same time (`--as-of`); `ReplayClock` starts at a given
time, runs at a given speed and stops when it reaches the system time. `BoundedClock` shows another clock's time, but never
one later than the system time. Leases, timeouts, cache ages and throttles use `time.monotonic` instead.
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
_YEAR, _MONTH = re.compile(r"[0-9]{4}"), re.compile(r"[0-9]{4}-[0-9]{2}")
_EPOCH = re.compile(r"\d{9,11}(\.\d+)?")


class Clock(Protocol):
    """Shows the market's time and waits for a later time."""

    @property
    def moving(self) -> bool:
        """True if the clock will show a later time."""

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""

    async def sleep_until(self, epoch: float) -> None:
        """Wait until this clock shows `epoch` or a later time."""


def now(clock: Clock) -> datetime:
    """Returns the clock's time as an aware UTC datetime."""
    return datetime.fromtimestamp(clock.epoch(), UTC)


class SystemClock:
    """Shows the system time."""

    moving = True

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""
        return time.time()

    async def sleep_until(self, epoch: float) -> None:
        """Wait in steps of at most 5 s, so that a suspend or a change of the system time takes effect."""
        while (left := epoch - time.time()) > 0:
            await asyncio.sleep(min(left, 5.0))


class FixedClock:
    """Always shows the same time, so that the same call always returns the same result."""

    moving = False

    def __init__(self, at: float) -> None:
        self._at = at

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""
        return self._at

    async def sleep_until(self, epoch: float) -> None:
        """Return at once if the clock shows `epoch` or later; otherwise wait until cancelled."""
        if epoch > self._at:
            await asyncio.Event().wait()


class ReplayClock:
    """Runs from `start` at `speed` times real time, and stops when it reaches the system time."""

    def __init__(self, start: float, speed: float) -> None:
        if not 0 < speed < inf:  # also refuses NaN
            raise InvalidParameter(f"replay speed must be positive, not {speed}")
        self._start = start
        self._speed = speed
        self._began = time.monotonic()
        self._stopped: float | None = None

    @property
    def moving(self) -> bool:
        """True until the clock reaches the system time."""
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
        """Wait until this clock shows `epoch` or later; if it stops before that, wait until cancelled."""
        while (left := epoch - self.epoch()) > 0:
            if not self.moving:
                await asyncio.Event().wait()
            await asyncio.sleep(left / self._speed)


class BoundedClock:
    """Shows the earlier of another clock's time and the system time. Only bars that end by then can be closed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._machine = SystemClock()

    @property
    def moving(self) -> bool:
        """True if the clock will show a later time."""
        return self._clock.moving

    def epoch(self) -> float:
        """Seconds since 1970 in UTC."""
        return min(self._clock.epoch(), self._machine.epoch())

    async def sleep_until(self, epoch: float) -> None:
        """Wait until both clocks show `epoch` or a later time."""
        await self._clock.sleep_until(epoch)
        await self._machine.sleep_until(epoch)


def bounded(clock: Clock) -> Clock:
    """Returns a clock that never shows a time later than the system time."""
    return clock if isinstance(clock, SystemClock | BoundedClock) else BoundedClock(clock)


def parse_time(text: str) -> float:
    """Returns the epoch seconds of an ISO 8601 time (without a zone: UTC) or a number. Raises `InvalidParameter`."""
    try:
        if _EPOCH.fullmatch(text.strip()):
            return datetime.fromtimestamp(float(text), UTC).timestamp()
        moment = datetime.fromisoformat(text.strip())
        if not 1 < moment.year < 9999:  # conversion to another time zone would overflow
            raise ValueError
    except (ValueError, OverflowError, OSError):
        raise InvalidParameter(f"{text!r} is not a time: use ISO 8601, for example 2025-09-19T19:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def whole_date(text: str) -> str:
    """Returns the first day of a year (2010) or a month (2010-06); any other text as it is."""
    found = text.strip()
    if _YEAR.fullmatch(found):
        return f"{found}-01-01"
    return f"{found}-01" if _MONTH.fullmatch(found) else found


def iso(epoch: float) -> str:
    """Returns the time as ISO 8601 in UTC: `2025-09-19T18:59:00+00:00`."""
    return datetime.fromtimestamp(epoch, UTC).isoformat()
