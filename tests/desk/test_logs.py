"""The log: one line for each event, UTC, levels by room, equal lines counted, no secrets."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.operations.logs.json_stream import JsonLine, LogLine
from openbell.desk.operations.logs.setup import CountingHandler
from openbell.desk.settings.checks import levels_of
from openbell.market.errors import SettingsError
from tests.client import PATIENCE, environment

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
PASSWORD = "hunter2@hunter2"
SCRIPT = """
import logging, warnings
from openbell.cli.app import settings_for
settings_for()
desk, feed = logging.getLogger("openbell.desk.trading.x"), logging.getLogger("openbell.feeds.x")
for _ in range(100):
    desk.warning("the database is down: %s", "postgresql://ann:hunter2%40hunter2@host/x")
desk.info("no room wants this")
feed.debug("two\\nlines \\x1b[31m and \\u2028 more")
logging.getLogger("sqlalchemy.engine").info("SELECT secret")
logging.getLogger("httpx2").debug("Authorization: secret")
try:
    raise ValueError("first\\nsecond hunter2@hunter2 ob_key_of_mine")
except ValueError:
    desk.exception("it failed")
warnings.warn("old")
raise RuntimeError("the end")
"""


def lines_of(home: Path, **settings: str) -> list[str]:
    """The log of a process that logs all kinds of events and then fails."""
    env = environment(home, DATABASE_URL="postgresql://ann:hunter2%40hunter2@host/x", **settings)
    env["SOME_API_KEY"] = "ob_key_of_mine"
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert not [secret for secret in ("hunter2", "ob_key_of_mine", "SELECT", "Authorization") if secret in done.stderr]
    return done.stderr.splitlines()


def test_text_has_one_line_for_each_event(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, LOG_LEVELS="feeds=debug, trading=warning")
    assert all(re.match(rf"{TIME} (DEBUG|WARNING|ERROR|CRITICAL) [a-z_.]+: ", line) for line in lines), lines
    texts = [line.split(" ", 1)[1] for line in lines]
    assert texts[0] == "WARNING openbell.desk.trading.x: the database is down: postgresql://ann:***@host/x"
    assert texts[1] == r"DEBUG openbell.feeds.x: two\nlines \u001b[31m and \u2028 more"
    assert texts[2].startswith(r"ERROR openbell.desk.trading.x: it failed | Traceback (most recent call last):\n")
    assert "UserWarning: old" in texts[3]
    assert texts[4].startswith("CRITICAL openbell: the process has failed | ") and "the end" in texts[4]
    assert re.search(r"repeated 99 times in 1 s: the database is down: ", texts[5])
    assert len(lines) == 6


def test_json_has_the_same_events_as_objects(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in lines_of(tmp_path, LOG_FORMAT="json", LOG_LEVELS="feeds=debug")]
    assert [line["level"] for line in lines] == ["warning", "debug", "error", "warning", "critical", "warning"]
    assert all(re.fullmatch(TIME, line["time"]) for line in lines)
    assert lines[1]["message"] == "two\nlines \x1b[31m and \u2028 more"
    assert lines[2]["traceback"].startswith("Traceback (most recent call last):\n")
    assert set(lines[0]) == {"time", "level", "logger", "message"}


@pytest.mark.parametrize(
    "text", ["feeds", "feeds=loud", "=debug", "kitchen=debug", "../..=debug", "feeds=debug;desk=info", "*=debug"]
)
def test_levels_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="OPENBELL_LOG_LEVELS has"):
        levels_of(text)


def test_levels_of_rooms_and_of_rooms_within_rooms() -> None:
    assert levels_of(" feeds=debug,, Stores.Records=ERROR ") == {"feeds": "debug", "stores.records": "error"}


# Counting


class Log:
    """A handler at a time that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("openbell.desk.operations.logs.setup.time.monotonic", lambda: self.now)
        monkeypatch.setattr("openbell.desk.operations.logs.setup.threading.Timer", self._timer)
        self.waits: list[tuple[float, Any]] = []
        self.stream = io.StringIO()
        self.handler = CountingHandler(self.stream)
        self.handler.setFormatter(logging.Formatter("%(message)s"))
        self.logger = logging.getLogger("openbell.test.repeats")
        self.logger.propagate = False
        self.logger.addHandler(self.handler)

    def _timer(self, seconds: float, call: Any) -> Any:
        self.waits.append((self.now + seconds, call))
        return type("Timer", (), {"start": lambda _: None, "daemon": True})()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and the timers that are due call."""
        end = self.now + seconds
        while self.waits and self.waits[0][0] <= end:
            at, call = self.waits.pop(0)
            self.now = max(self.now, at)
            call()
        self.now = end

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    made = Log(monkeypatch)
    yield made
    made.logger.removeHandler(made.handler)
    made.handler.close()


def test_an_outage_of_three_minutes_is_a_handful_of_lines_and_every_event_is_counted(log: Log) -> None:
    for _ in range(113):
        log.logger.warning("down; trying again in 5 s")
        log.pass_time(1.6)
    log.pass_time(4000)
    assert log.lines[0] == "down; trying again in 5 s"
    counts = [
        int(found[1]) for line in log.lines[1:] if (found := re.match(r"repeated (\d+) times in \d+ s: down", line))
    ]
    assert sum(counts) == 112
    assert len(counts) == len(log.lines) - 1 <= 4


def test_the_time_since_which_something_fails_makes_no_new_event(log: Log) -> None:
    for second in range(5):
        log.logger.warning(f"the disk is full (since 11:38:{second:02})")
    assert len(log.lines) == 1


def test_what_comes_again_after_a_long_time_is_written_at_once(log: Log) -> None:
    log.logger.warning("down")
    log.pass_time(11)
    log.logger.warning("up")
    log.logger.warning("down")
    assert log.lines == ["down", "up", "down"]


def test_different_events_are_not_counted_together_and_their_number_is_bounded(log: Log) -> None:
    for number in range(1000):
        log.logger.warning("event %d", number)
        log.logger.error("event %d", number)
    assert len(log.lines) == 2000
    assert len(log.handler._known) <= 256


def test_counts_are_written_at_the_end(log: Log) -> None:
    for _ in range(3):
        log.logger.error("down")
    log.handler.close()
    assert log.lines == ["down", "repeated 2 times in 1 s: down"]


def test_short_secrets_are_not_replaced_inside_words() -> None:
    record = logging.makeLogRecord({"msg": "a password: abc, abcd", "levelname": "INFO", "name": "x"})
    for form in (LogLine(["abc", "abcd", ""]), JsonLine(["abc", "abcd", ""])):
        assert "a password: abc, ***" in form.format(record)
