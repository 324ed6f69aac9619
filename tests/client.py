"""A client as a user would have one: a real process, real pipes, one JSON message a line, every wait bounded."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.prefork import Process

OPENBELL = [sys.executable, "-m", "openbell.cli.entry"]
PATIENCE = 60.0


def environment(home: Path, **settings: str) -> dict[str, str]:
    """This machine's environment without its own settings, and those given."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OPENBELL_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    # Any free port: `up` of two tests at once must not want the same.
    given = {"HOME": str(home), "PORT": "0", **settings}
    return {**kept, **{f"OPENBELL_{name}": value for name, value in given.items()}}


def run(home: Path, *words: str, typed: str | None = None, **settings: str) -> subprocess.CompletedProcess[str]:
    """One command to its end. `typed` is its standard input."""
    command, pipe = [*OPENBELL, *words], subprocess.PIPE
    given = None if typed is None else pipe
    with Process(
        command, env=environment(home, **settings), text=True, stdin=given, stdout=pipe, stderr=pipe
    ) as process:
        try:
            out, errors = process.communicate(typed, timeout=PATIENCE)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def call(home: Path, tool: str, arguments: Mapping[str, Any] | None = None, **settings: str) -> dict[str, Any]:
    """The object that `openbell call chart-signals` prints."""
    done = run(home, "call", "chart-signals", tool, json.dumps(arguments or {}), **settings)
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


class Client:
    """One server process. Use as a context manager."""

    def __init__(self, home: Path, *flags: str, command: list[str] | None = None, **settings: str) -> None:
        self.process = Process(
            command or [*OPENBELL, "mcp", "chart-signals", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home, **settings),
        )
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.errors: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._follow_output, daemon=True),
            threading.Thread(target=self._follow_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        self._id = 0
        self.memory = 0.0
        """Bytes that a test has measured at the start."""
        self.aside: list[dict[str, Any]] = []

    def _follow_output(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _follow_errors(self) -> None:
        assert self.process.stderr
        self.errors.extend(self.process.stderr)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def send_raw(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.send_raw(json.dumps(message).encode())

    def receive(self, patience: float = PATIENCE) -> dict[str, Any]:
        line = self.lines.get(timeout=patience)
        assert line is not None, b"".join(self.errors).decode()
        message: dict[str, Any] = json.loads(line)
        return message

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        """The whole response to one request."""
        self._id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return self.response(self._id)

    def response(self, number: Any) -> dict[str, Any]:
        """The response of an id, notifications before it kept aside."""
        while (message := self.receive()).get("id") != number:
            self.aside.append(message)
        return message

    def initialize(self, version: str = "2025-06-18") -> dict[str, Any]:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = self.request("initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The whole response to one tool call."""
        return self.request("tools/call", {"name": tool, "arguments": dict(arguments or {})})

    def end_input(self) -> list[dict[str, Any]]:
        """Close standard input and give everything that still comes."""
        assert self.process.stdin
        self.process.stdin.close()
        rest = []
        while (line := self.lines.get(timeout=PATIENCE)) is not None:
            rest.append(json.loads(line))
        return rest


def processor_time(pid: int) -> float:
    """Seconds that a process has computed so far; 0 where /proc does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(pid: int) -> int:
    """The most bytes that a process has held; 0 where /proc does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
