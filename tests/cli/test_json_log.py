"""With OPENBELL_LOG_FORMAT=json, every line that a service writes to standard error is one JSON object."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client import OPENBELL, PATIENCE, environment, run
from tests.prefork import Process
from tests.waiting import wait_for

JSON = {"LOG_FORMAT": "json", "A_TYPO": "1"}
FIELDS = {"time", "level", "logger", "message"}
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/mcp")
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def events(text: str) -> list[dict[str, Any]]:
    """The lines of a log, each of which must be an object."""
    found = [json.loads(line) for line in text.splitlines()]
    assert all(set(each) - {"traceback"} == FIELDS for each in found), text
    return found


@contextmanager
def running(home: Path, log: Path, *words: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    with log.open("wb") as errors:
        given = environment(home, **JSON, **settings)
        process = Process([*OPENBELL, *words], env=given, text=True, stdout=subprocess.PIPE, stderr=errors)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_up_and_a_client_that_sends_garbage(tmp_path: Path) -> None:
    log, home = tmp_path / "log", tmp_path / "home"
    home.mkdir()
    (home / "openbell.toml").write_text('influx_token = "u:secret-of-influx"\n')
    (home / "openbell.toml").chmod(0o644)
    home.chmod(0o755)
    with running(home, log, "up", "--trade", LOG_LEVEL="info") as process:
        wait_for(lambda: ADDRESS.search(log.read_text()) is not None, "the gateway")
        found = ADDRESS.search(log.read_text())
        assert found
        with socket.create_connection(("127.0.0.1", int(found[1])), PATIENCE) as client:
            client.sendall(b"\x00\x01 this is not HTTP\r\n\r\n")
            client.recv(1000)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    lines = events(log.read_text())
    told = " ".join(each["message"] for each in lines)
    for words in ("A_TYPO is not a setting", "can be read by every user", "MCP over HTTP", "stopped; "):
        assert words in told, told
    assert {each["level"] for each in lines if "MCP over HTTP" in each["message"]} == {"info"}


def test_a_collector_and_a_backtester_until_they_are_stopped(tmp_path: Path) -> None:
    replayed = {"AS_OF": "2026-01-07T15:00:00Z", "REPLAY_SPEED": "600"}
    commands = {"collect": ("collect",), "backtester": ("backtester", "--port", "0", "--host", "0.0.0.0", "--insecure")}
    for name, words in commands.items():
        with running(tmp_path / name, tmp_path / "log", *words, **(replayed if name == "collect" else {})) as process:
            assert process.stdout
            assert process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
        assert events((tmp_path / "log").read_text()), name


@pytest.mark.parametrize(
    ("words", "settings", "sentence"),
    [
        ("up --wrong", {}, "No such option"),
        ("up", {"PORT": "x"}, "OPENBELL_PORT must be a whole number"),
        ("up --host 203.0.113.1", {}, "has no TLS"),
        ("collect", {"FEED": "nobody"}, "nobody"),
        ("backtester --tls-cert nothing", {}, "TLS needs"),
        ("mcp nobody", {}, "no server 'nobody'"),
    ],
)
def test_what_ends_a_service_at_its_start(tmp_path: Path, words: str, settings: dict[str, str], sentence: str) -> None:
    done = run(tmp_path, *words.split(), **JSON, **settings)
    assert done.returncode != 0
    last = events(done.stderr)[-1]
    assert sentence in last["message"]
    assert last["level"] == "error"


def test_a_server_on_standard_input(tmp_path: Path) -> None:
    done = run(tmp_path, "mcp", "chartgen", "--trade", typed=f"garbage\n{PING}", **JSON)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2
    assert "A_TYPO" in events(done.stderr)[0]["message"]


PRINTS = """
import sys, threading, warnings
from openbell.cli import entry
from openbell.cli import up

def fails(*_): raise RuntimeError("secret-of-mine has failed")

class Ignored:
    def __del__(self): raise ValueError("ignored")

def told(*_):
    warnings.warn("an old call")
    thread = threading.Thread(target=fails); thread.start(); thread.join()
    Ignored()
    print("half a ", end="", file=sys.stderr); print("line, secret-of-mine", file=sys.stderr)
    fails()

up._run = told
sys.argv = ["openbell", "up"]
entry.main()
"""


def test_warnings_threads_and_tracebacks_are_events_without_secrets(tmp_path: Path) -> None:
    given = environment(tmp_path, **JSON) | {"SOME_API_KEY": "secret-of-mine"}
    command = [sys.executable, "-c", PRINTS]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    found = events(done.stderr)
    assert "secret-of-mine" not in done.stderr
    texts = [f"{each['message']} {each.get('traceback', '')}" for each in found]
    for words in ("an old call", "a thread has failed", "ValueError: ignored", "half a line", "the process has failed"):
        assert [text for text in texts if words in text], (words, texts)
