"""A real InfluxDB on loopback, installed from Debian's package into the project's cache if the machine has none."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import httpx2
import pytest

from tests.debian import NotInstalled, program

PATIENCE = 30.0


class NotHere(Exception):
    """There is no InfluxDB on this machine and none can be installed."""


_shared: list[InfluxServer] = []


def shared() -> InfluxServer:
    """One server for all tests of a module; `close_shared` ends it. Skips the test if there is none."""
    if not _shared:
        _shared.append(started())
    return _shared[0]


def close_shared() -> None:
    """End the server that `shared` has started."""
    while _shared:
        _shared.pop().close()


def started() -> InfluxServer:
    """A new server. Skips the test if there is none on this machine."""
    try:
        return InfluxServer()
    except NotHere as error:
        pytest.skip(f"NOT TESTED: {error}")


@contextmanager
def own_server() -> Iterator[InfluxServer]:
    """A server that its tests may kill."""
    made = started()
    try:
        yield made
    finally:
        made.close()


class InfluxServer:
    """One server with a folder of its own. It can be killed, stopped, and started again on the same data."""

    def __init__(self, *, admin: str = "") -> None:
        """With `admin`, a user and its password as `USER:PASSWORD`, every request needs a user."""
        try:
            self._program = program("usr/bin/influxd", "influxdb")
        except NotInstalled as error:
            raise NotHere(str(error)) from error
        self.folder = Path(mkdtemp(prefix="openbell-influx-"))
        self._port, rpc = _free_port(), _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        # One client, because each would load the certificates, and no connection outlives a restart of the server.
        self._client = httpx2.Client(
            base_url=self.url, verify=False, timeout=30, limits=httpx2.Limits(max_keepalive_connections=0)
        )
        (self.folder / "influx.conf").write_text(
            f"""reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{self.folder}/meta"
[data]
  dir = "{self.folder}/data"
  wal-dir = "{self.folder}/wal"
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:{self._port}"
  log-enabled = false
  auth-enabled = {"true" if admin else "false"}
[monitor]
  store-enabled = false
"""
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        if admin:
            user, _, password = admin.partition(":")
            self.query(f"CREATE USER {user} WITH PASSWORD '{password}' WITH ALL PRIVILEGES")
            self._client.auth = (user, password)

    def start(self) -> None:
        """Start, and wait until it answers."""
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [str(self._program), "-config", str(self.folder / "influx.conf")], stdout=log, stderr=log
        )
        log.close()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._client.get("/ping", timeout=1.0)
            except httpx2.HTTPError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise NotHere(f"InfluxDB does not start: {(self.folder / 'log').read_text()[-500:]}") from error
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """Kill −9."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop answering without closing anything."""
        assert self._process
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Answer again."""
        assert self._process
        os.kill(self._process.pid, signal.SIGCONT)

    def query(self, text: str, database: str = "") -> dict[str, object]:
        """The server's answer to a query."""
        params = {"q": text, "db": database, "epoch": "s"}
        answer: dict[str, object] = self._client.post("/query", params=params).json()
        return answer

    def close(self) -> None:
        """Stop it and remove its data."""
        self.kill()
        self._client.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
