"""The rate that a vendor asks for: back-off with jitter, Retry-After, and the budget from its rate-limit headers.

Pure: the caller passes the time (`time.monotonic`) and the random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_WINDOW = 60.0
_STEPS = 64
"""The number of doublings after which the back-off stays constant, because more would overflow a float."""


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
