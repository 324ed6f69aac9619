"""Counts equal events: the first is written at once, later ones as "repeated N times in S s", at growing intervals."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, TextIO

from openbell.market.plural import counted

_INTERVALS = (10.0, 60.0, 600.0, 3600.0)
"""Seconds between two reports of the same event; the last one repeats."""
_SINCE = re.compile(r" \(since [^)]*\)")
_MOST = 256
"""Different events that are counted at once."""


@dataclass(slots=True)
class _Repeats:
    """An event that was written, and how often it happened since."""

    record: logging.LogRecord
    since: float
    """The monotonic time of the first occurrence that was not reported."""
    last: float
    count: int = 0
    reports: int = 0

    @property
    def interval(self) -> float:
        return _INTERVALS[min(self.reports, len(_INTERVALS) - 1)]


class CountingHandler(logging.StreamHandler[TextIO]):
    """Writes events to a stream. Two events are equal if logger, level, text and traceback are.

    The time since which something fails does not count.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._known: OrderedDict[tuple[Any, ...], _Repeats] = OrderedDict()
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write an event, or count it. Called with the handler's lock."""
        now = time.monotonic()
        key = self._key(record)
        known = self._known.get(key)
        if known is None:
            while len(self._known) >= _MOST:
                self._report(self._known.popitem(last=False)[1])
            self._known[key] = _Repeats(_without_trace(record), now, now)
            super().emit(record)
        else:
            if not known.count:
                known.since = known.last
            known.count, known.last = known.count + 1, now
            self._known.move_to_end(key)
        self._sweep(now)

    def close(self) -> None:
        """Write the counts that were not written yet. Called at the end of the process."""
        with self._locked():
            for known in self._known.values():
                self._report(known)
            self._known.clear()
        super().close()

    def _sweep(self, now: float) -> None:
        """Write the counts whose interval is over, and forget events that have not come again."""
        for key, known in list(self._known.items()):
            if now - known.since >= known.interval:
                if known.count:
                    self._report(known)
                elif now - known.last >= known.interval:
                    del self._known[key]
        waits = [known.since + known.interval - now for known in self._known.values() if known.count]
        if waits and self._timer is None:
            self._timer = threading.Timer(max(0.1, min(waits)), self._on_time)
            self._timer.daemon = True
            self._timer.start()

    def _on_time(self) -> None:
        with self._locked():
            self._timer = None
            self._sweep(time.monotonic())

    def _report(self, known: _Repeats) -> None:
        if not known.count:
            return
        again = _without_trace(known.record)
        again.created = time.time()
        seconds = max(1, round(known.last - known.since))
        again.msg = f"repeated {counted(known.count, 'time')} in {seconds} s: {known.record.msg}"
        known.reports, known.count, known.since = known.reports + 1, 0, known.last
        super().emit(again)

    def _key(self, record: logging.LogRecord) -> tuple[Any, ...]:
        trace = str(record.exc_info[1]) if record.exc_info else ""
        # The beginning of an outage may be told differently by each process that meets it.
        return record.name, record.levelno, _SINCE.sub("", record.getMessage()), trace

    def _locked(self) -> Any:
        assert self.lock is not None
        return self.lock


def _without_trace(record: logging.LogRecord) -> logging.LogRecord:
    """Returns a copy with the final text and without a traceback, which would keep its frames and their values alive."""
    copy = logging.makeLogRecord(record.__dict__)
    copy.msg, copy.args, copy.exc_info, copy.exc_text, copy.stack_info = record.getMessage(), None, None, None, None
    return copy
