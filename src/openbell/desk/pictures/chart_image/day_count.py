"""How many requests a key has sent on a day of UTC: a small file in the home that all processes share."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from openbell.charts.config.choices import Plan
from openbell.desk.pictures.chart_image.answers import until_midnight
from openbell.desk.pictures.chart_image.errors import RateLimited
from openbell.desk.pictures.chart_image.files import replace_file

log = logging.getLogger(__name__)
_LARGEST = 65_536
_LOCK_SECONDS = 2.0
"""How long to wait for another process, which holds the lock for a millisecond unless it is stopped."""


def fingerprint(key: str) -> str:
    """Returns a name of a key from which the key cannot be told."""
    return hashlib.sha256(f"openbell chart-img {key}".encode()).hexdigest()[:16]


class DayCount:
    """Counts requests. Every call may block for a moment."""

    def __init__(self, folder: Path, key: str, plan: Plan, *, read_only: bool = False) -> None:
        """If `read_only`, the requests of this process are counted in memory, on top of those in the file."""
        self._file = folder / "requests.json"
        self._lock = folder / "requests.lock"
        self._key = fingerprint(key)
        self._plan = plan
        self._read_only = read_only
        self._memory: tuple[str, int] = ("", 0)
        """The day, and the requests of this process that are not in the file."""
        self._guard = threading.Lock()

    def take(self, now: float) -> int:
        """Count a request at a time in epoch seconds, and return how many are left. Raises `RateLimited` if none is."""
        with self._guard:
            return self._change(1, now)

    def give_back(self, now: float) -> None:
        """Uncount a request that was never sent."""
        with self._guard:
            self._change(-1, now)

    def _change(self, step: int, now: float) -> int:
        day = datetime.fromtimestamp(now, UTC).date().isoformat()
        if self._memory[0] != day:
            self._memory = (day, 0)
        if not self._read_only:
            try:
                with self._locked():
                    counts = self._read(day)
                    used = self._checked(counts.get(self._key, 0) + self._memory[1], step, now)
                    text = json.dumps({"day": day, "counts": counts | {self._key: used}})
                    replace_file(self._file, text.encode())
                    self._memory = (day, 0)
                    return self._plan.per_day - used
            except OSError as error:
                log.warning("cannot count requests in %s: %s", self._file, error.strerror)
        stored = self._read(day).get(self._key, 0)
        used = self._checked(stored + self._memory[1], step, now)
        self._memory = (day, used - stored)
        return self._plan.per_day - used

    def _checked(self, used: int, step: int, now: float) -> int:
        plan = self._plan
        if step > 0 and used >= plan.per_day:
            reason = (
                f"The {plan.per_day} requests of a day with the plan {plan.name} are used (OPENBELL_CHART_IMG_PLAN)."
            )
            raise RateLimited(until_midnight(now), reason)
        return max(0, used + step)

    def _read(self, day: str) -> dict[str, int]:
        """Returns the counts of a day by key. A file that is damaged counts as missing."""
        try:
            with self._file.open("rb") as source:
                table = json.loads(source.read(_LARGEST))
            counts = table["counts"] if table["day"] == day else {}
            return {str(name): int(count) for name, count in counts.items() if 0 <= int(count) < 10**9}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            log.warning("%s cannot be read: counting begins again", self._file)
            return {}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock file. Raises `OSError` if it cannot be had."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            give_up = time.monotonic() + _LOCK_SECONDS
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() > give_up:
                    raise TimeoutError(None, "another process holds the lock")
                time.sleep(0.005)
            yield
        finally:
            os.close(fd)  # releases the lock
