"""Starts the log of a process as the settings want it."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from openbell.desk.operations.logs.json_stream import JsonStream, only_json_lines
from openbell.desk.operations.logs.lines import JsonLine, LogLine
from openbell.desk.operations.logs.repeats import CountingHandler

if TYPE_CHECKING:
    from openbell.desk.settings import Settings

_ROOT = "openbell"
_LOUD = ("httpx2", "httpcore2", "httpcore", "websockets", "ccxt", "aiohttp")
"""Libraries that log every request, and at debug level also headers with secrets."""
_SECRET = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|PASSPHRASE")
"""In the name of a variable whose value no line may contain."""


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
    from openbell.desk.settings.log_levels import levels_of, loggers

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
