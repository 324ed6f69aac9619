"""How often a vendor may be asked: back-off with jitter, Retry-After, and the budget that its own headers tell.

Pure: whoever uses it gives the time (`time.monotonic`: this is about two machines, not about the market) and the chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_WINDOW = 60.0
_STEPS = 64
"""Doublings after which every back-off has long reached its longest; more would overflow a float."""


def backoff(attempt: int, chance: float, *, first: float = 0.5, longest: float = 30.0) -> float:
    """Seconds to wait after failure number `attempt` (0 is the first): doubling, spread by `chance` in [0, 1).

    Between half and all of the step, so that many clients do not come back at the same moment and none comes at once.
    """
    step = min(longest, first * 2.0 ** min(attempt, _STEPS))
    return step * (0.5 + chance / 2)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a Retry-After header asks for, written as a number or as a date; None if there is none to read."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    seconds = _number(text)
    if seconds is None:
        moment, now = _date(text), _date(headers.get("date", ""))
        seconds = None if moment is None or now is None else moment - now
    return None if seconds is None else max(0.0, seconds)


def vendor_time(headers: Mapping[str, str]) -> float | None:
    """The vendor's own time in epoch seconds, from the Date header."""
    return _date(headers.get("date", ""))


class Budget:
    """The requests that a vendor still allows in its window: its own count where its headers say it, ours otherwise."""

    def __init__(self, per_minute: int) -> None:
        self._size = per_minute
        self._left = per_minute
        self._flying = 0
        self._renewed = -math.inf
        """The monotonic time at which the window ends."""

    def wait(self, now: float) -> float:
        """Seconds until one more request is allowed; 0 if it is allowed now."""
        return max(0.0, self._renewed - now) if self._left <= 0 else 0.0

    def take(self, now: float) -> None:
        """One request goes out."""
        if now >= self._renewed:
            self._left, self._renewed = self._size, now + _WINDOW
        self._left -= 1
        self._flying += 1

    def answered(self, headers: Mapping[str, str], now: float) -> None:
        """That request was answered, or came to nothing (no headers)."""
        self._flying -= 1
        size, left = (_number(headers.get(f"x-ratelimit-{name}", "")) for name in ("limit", "remaining"))
        if size is not None and size >= 1:
            self._size = int(size)
        if left is None:
            return
        # The vendor counted those before this one; the ones under way will still come off.
        self._left = int(left) - self._flying
        reset, date = _number(headers.get("x-ratelimit-reset", "")), _date(headers.get("date", ""))
        if reset is not None and date is not None:
            self._renewed = now + min(_WINDOW, max(0.0, reset - date))

    def hold(self, seconds: float, now: float) -> None:
        """The vendor refused: nothing goes out for this long."""
        self._left, self._renewed = 0, now + seconds


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
