"""`openbell health`, and what the view, results and doctor say while a store is out."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client import OPENBELL, PATIENCE, environment, run
from tests.gateway.streamable.gateways import Up
from tests.prefork import Process
from tests.stalling import StallingProxy
from tests.stores import influx_server
from tests.waiting import wait_for

PARTS = {"records", "bars", "feed", "collector", "engine", "gateway", "webhooks"}
INSIDES = ("asyncpg", "sqlalchemy", "SQLAlchemy", "httpx", "Traceback", "cannot switch to state", "Errno")
"""Words of libraries that no user should see."""


def health(home: Path, **settings: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the report of `openbell health`."""
    done = run(home, "health", **settings)
    return done.returncode, json.loads(done.stdout)


class Watched:
    """`openbell up` with its output: the plain lines of the view, and the log."""

    def __init__(self, home: Path, **settings: str) -> None:
        command = [*OPENBELL, "up", "--trade", "--watch", "BTC/USD"]
        pipe = subprocess.PIPE
        self.home = home
        self.process = Process(command, env=environment(home, **settings), text=True, stdout=pipe, stderr=pipe)
        self.lines: list[str] = []
        self.log: list[str] = []
        self._readers = [
            threading.Thread(target=_keep, args=(stream, kept), daemon=True)
            for kept, stream in ((self.lines, self.process.stdout), (self.log, self.process.stderr))
        ]
        for each in self._readers:
            each.start()

    def __enter__(self) -> Watched:
        wait_for(lambda: health(self.home)[1]["parts"]["collector"]["text"] == "collecting", "the desk")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for each in self._readers:
            each.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    def shows(self, text: str) -> bool:
        return any(text in line for line in self.lines)


def _keep(stream: Iterable[str], kept: list[str]) -> None:
    for line in stream:
        kept.append(line)  # noqa: PERF402 - others read the list meanwhile


def call(home: Path, tool: str, given: dict[str, Any], **settings: str) -> str:
    done = run(home, "call", "chartgen", tool, json.dumps(given), "--trade", **settings)
    return done.stdout + done.stderr


def assert_plain(*texts: str) -> None:
    """No text has a word of a library or the password."""
    for text in texts:
        assert not [word for word in (*INSIDES, "s3cret") if word in text], text


# The command


def test_a_desk_that_nobody_runs_is_down_and_nothing_is_created(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code, found = health(home)
    assert (code, found["state"]) == (2, "down")
    assert "openbell up starts one" in found["text"]
    assert {part["state"] for part in found["parts"].values()} == {"unknown"}
    assert not home.exists()


def test_a_desk_that_runs_reports_every_part_and_figure(tmp_path: Path) -> None:
    with Up(tmp_path, "--trade", "--watch", "BTC/USD", METRICS="true") as up:
        wait_for(lambda: health(tmp_path)[1]["parts"]["collector"]["text"] == "collecting", "the collector")
        code, found = health(tmp_path)
        assert (code, found["state"], found["text"]) == (0, "working", "every part works")
        assert set(found["parts"]) == PARTS
        assert found["process"] == up.process.pid
        figures = found["figures"]
        assert set(figures["leases"]) == {"collector", "engine", "webhook sender"}
        assert str(up.process.pid) in figures["leases"]["engine"]
        assert figures["lag_seconds"] <= 120
        assert (figures["buffered_bars"], figures["ledger_entries"], figures["halted"]) == (0, 0, None)
        assert figures["free_bytes"] > 0 and figures["resident_bytes"] > 0
        run(tmp_path, "halt", "--reason", "lunch")
        code, found = health(tmp_path)
        assert (code, found["figures"]["halted"]) == (0, "lunch"), "the operator has wanted it"
        metrics = up.request("GET", "/metrics", None).body.decode()
        for line in ("openbell_halted 1", 'openbell_part_failing{part="records"} 0', "openbell_buffered_bars 0"):
            assert line in metrics.splitlines(), metrics
        shown = [up.request("GET", "/health", who).status for who in (None, "reader", "keeper")]
        assert shown == [403, 403, 200], "causes are not for everybody"
        assert up.request("GET", "/readyz", None).status == 200
        # Processes that hang or were killed.
        os.kill(up.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        code, found = health(tmp_path)
        assert time.monotonic() - began < 10
        assert (code, found["state"]) == (2, "down") and "does not answer" in found["text"]
        os.kill(up.process.pid, signal.SIGCONT)
        wait_for(lambda: health(tmp_path)[0] == 0, "the desk after it went on")
        up.process.kill()
        up.process.wait()
        code, found = health(tmp_path)
        assert (code, found["state"]) == (2, "down") and "was killed" in found["text"]
        assert found["figures"]["halted"] == "lunch", "the file in the home tells"


def test_a_read_only_desk_answers_what_is_open_to_everybody(tmp_path: Path) -> None:
    with Up(tmp_path, "--read-only", tokens={}) as up:
        code, found = health(tmp_path, READ_ONLY="true", PORT=str(up.port))
        assert (code, found["state"]) == (0, "working")
        assert found["parts"]["records"]["state"] == "unknown"


def test_settings_that_cannot_be_read_are_said_in_one_line_and_in_the_report(tmp_path: Path) -> None:
    done = run(tmp_path, "health", FEED="nonsense")
    assert done.returncode == 2
    report = json.loads(done.stdout)
    assert (report["state"], report["home"]) == ("down", str(tmp_path))
    assert report["parts"]["settings"]["state"] == "failing"
    assert "OPENBELL_FEED" in report["parts"]["settings"]["text"]
    assert done.stderr.count("\n") == 1 and "OPENBELL_FEED" in done.stderr


def test_a_home_of_an_unknown_user_is_reported_as_it_was_given(tmp_path: Path) -> None:
    given = "~no-such-user/openbell"
    code, report = health(tmp_path, HOME=given)
    assert (code, report["state"], report["home"]) == (2, "down", given)
    assert "OPENBELL_HOME" in report["parts"]["settings"]["text"]


def test_it_takes_little_processor_time_and_loads_no_other_command(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['openbell', 'health']\n"
        "from openbell.cli.entry import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print(end.code, file=sys.stderr)\n"
        "print(*sorted({'typer', 'numpy', 'sqlalchemy', 'pyarrow', 'pydantic'} & set(sys.modules)), file=sys.stderr)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stderr.split() == ["2"], done.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


# Outages


@pytest.fixture
def stalling(database: str) -> Iterator[tuple[StallingProxy, str]]:
    """A proxy to PostgreSQL, and the URL of a database behind it."""
    head, _, rest = database.rpartition("@127.0.0.1:")
    port, _, name = rest.partition("/")
    with StallingProxy(int(port)) as proxy:
        yield proxy, f"{head}@127.0.0.1:{proxy.port}/{name}"


def test_an_outage_of_the_records_is_named_everywhere_until_it_ends(
    tmp_path: Path, stalling: tuple[StallingProxy, str]
) -> None:
    proxy, url = stalling
    limits = {"DATABASE_URL": url, "POOL_POSTGRES_CONNECT": "1", "POOL_POSTGRES_TIMEOUT": "2"}
    with Watched(tmp_path, **limits) as desk:
        proxy.stall()
        wait_for(lambda: desk.shows("OUTAGE: records: "), "the view")
        assert desk.shows("engine: waiting for the records;")
        code, found = health(tmp_path)
        assert (code, found["state"]) == (1, "degraded")
        assert found["parts"]["records"]["since"] and found["parts"]["engine"]["state"] == "failing"
        assert found["parts"]["bars"]["state"] == "working"
        order = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}
        answer, doctor = call(tmp_path, "place_order", order, **limits), run(tmp_path, "doctor", **limits).stdout
        assert "(since 20" in answer, answer
        assert "bad   records of the running desk: " in doctor and ", since 20" in doctor
        proxy.resume()
        wait_for(lambda: health(tmp_path)[0] == 0, "the end of the outage")
        assert call(tmp_path, "place_order", order, **limits).count('"open"') == 1
        desk.process.send_signal(signal.SIGTERM)
        assert desk.process.wait(PATIENCE) == 0
    assert_plain("".join(desk.log), "".join(desk.lines), answer, doctor, json.dumps(found))
    assert any("records can be used again" in line for line in desk.log)
    assert len(desk.log) == len({line.partition(" ")[2] for line in desk.log}), "no line twice"


def test_an_outage_of_influxdb_is_named_until_it_ends(tmp_path: Path) -> None:
    server = influx_server.started()
    settings = {"INFLUX_URL": server.url, "POOL_INFLUX_CONNECT": "1", "POOL_INFLUX_TIMEOUT": "1"}
    try:
        with Watched(tmp_path, **settings) as desk:
            server.kill()
            wait_for(lambda: desk.shows("OUTAGE: bars: InfluxDB at "), "the view")
            assert desk.shows("nothing listens there (connection refused), since ")
            code, found = health(tmp_path)
            assert (code, found["state"], found["parts"]["records"]["state"]) == (1, "degraded", "working")
            doctor = run(tmp_path, "doctor", **settings).stdout
            assert "bars of the running desk: InfluxDB at " in doctor
            server.start()
            wait_for(lambda: health(tmp_path)[0] == 0, "the end of the outage")
        assert_plain("".join(desk.log), "".join(desk.lines), doctor)
    finally:
        server.close()
