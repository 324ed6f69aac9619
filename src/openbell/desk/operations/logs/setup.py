"""Starts the log of a process as the settings want it.

Equal events are counted: the first is written at once, later ones as "repeated N times in S s", at growing intervals.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import unquote, urlsplit

from openbell.desk.operations.logs.json_stream import JsonLine, JsonStream, LogLine, only_json_lines
from openbell.market.plural import counted

if TYPE_CHECKING:
    from openbell.desk.settings import Settings

_ROOT = "openbell"
_LOUD = ("httpx2", "httpcore2", "httpcore", "websockets", "ccxt", "aiohttp")
"""Libraries that log every request, and at debug level also headers with secrets."""
_SECRET = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|PASSPHRASE")
"""In the name of a variable whose value no line may contain."""
_INTERVALS = (10.0, 60.0, 600.0, 3600.0)
"""Seconds between two reports of the same event; the last one repeats."""
_SINCE = re.compile(r" \(since [^)]*\)")
_MOST = 256
"""Different events that are counted at once."""


def start_log(settings: Settings) -> None:
    """Write the log of this process to standard error. Does nothing if it has a log already, as in tests."""
    if logging.root.handlers:
        return
    _start(settings.log_format.lower(), settings.log_level, settings.log_levels, secrets_of(settings, os.environ))
    # For processes that this one starts.
    for name in ("log_format", "log_level", "log_levels"):
        os.environ[f"OPENBELL_{name.upper()}"] = getattr(settings, name)


def start_log_of_child() -> None:
    """Write the log of a process that a process with settings has started."""
    env = os.environ.get
    if env("OPENBELL_LOG_FORMAT") == "json":
        only_json_lines()
    form, level = env("OPENBELL_LOG_FORMAT") or "text", env("OPENBELL_LOG_LEVEL") or "warning"
    _start(form, level, env("OPENBELL_LOG_LEVELS") or "", set())


def _start(form: str, level: str, levels: str, secrets: set[str]) -> None:
    formatter = JsonLine(secrets) if form == "json" else LogLine(secrets)
    stream = sys.stderr
    if isinstance(stream, JsonStream) and isinstance(formatter, JsonLine):
        stream.formatter, stream = formatter, stream.stream
    handler = CountingHandler(stream)
    handler.setFormatter(formatter)
    logging.root.addHandler(handler)
    logging.root.setLevel(level.upper())
    for name in _LOUD:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.root.level))
    if levels:
        _set_levels(levels)
    logging.captureWarnings(True)
    if not sys.stderr.isatty():
        sys.excepthook = _log_failure
        threading.excepthook = _log_failed_thread
        sys.unraisablehook = _log_ignored


def _set_levels(levels: str) -> None:
    # The settings take 60 ms to load, and the processes that a process with settings starts need nothing else of them.
    from openbell.desk.settings.checks import levels_of, loggers

    for room, each in levels_of(levels).items():
        for name in loggers(room):
            logging.getLogger(name).setLevel(each.upper())


def _log_failure(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log what ends the process in one line, for those who read the log by lines."""
    logging.getLogger(_ROOT).critical("the process has failed", exc_info=(kind, error, trace))


def _log_failed_thread(failed: threading.ExceptHookArgs) -> None:
    """Log what has ended a thread, in the same way."""
    if failed.exc_value is not None and failed.exc_type is not SystemExit:
        info = (failed.exc_type, failed.exc_value, failed.exc_traceback)
        logging.getLogger(_ROOT).error("a thread has failed", exc_info=info)


def _log_ignored(ignored: sys.UnraisableHookArgs) -> None:
    """Log an exception that no caller can get, in the same way."""
    if ignored.exc_value is not None:
        info = (ignored.exc_type, ignored.exc_value, ignored.exc_traceback)
        logging.getLogger(_ROOT).error("%s", ignored.err_msg or "an exception was ignored", exc_info=info)


def secrets_of(settings: Settings, environ: Mapping[str, str]) -> set[str]:
    """Returns the texts that no line of the log may contain."""
    found = {value for name, value in environ.items() if _SECRET.search(name) and not name.startswith("OPENBELL_LOG")}
    for value in settings.secrets:
        # A token may be USER:PASSWORD.
        found |= _passwords_of(value) if "://" in value else {value, value.partition(":")[2]}
    return found - {""}


def _passwords_of(url: str) -> set[str]:
    try:
        password = urlsplit(url).password or ""
    except ValueError:
        return set()
    return {password, unquote(password)}


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
