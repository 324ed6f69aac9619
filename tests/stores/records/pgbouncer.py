"""A real PgBouncer on loopback, installed from Debian's packages into the project's cache if the machine has none."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from tests.debian import NotInstalled, cache_of, program
from tests.stores.records.postgres_server import PASSWORD, USER, NotHere, PostgresServer, _free_port, _other_user

PATIENCE = 30.0
_PACKAGES = ("pgbouncer", "libc-ares2")


class PgBouncer:
    """A proxy to one server. It drops `search_path`, as operators set it up for other clients."""

    def __init__(self, server: PostgresServer, mode: str, sessions: int) -> None:
        """`mode` is `transaction` or `session`; `sessions` is the number of its connections to the server."""
        try:
            found, user = program("usr/sbin/pgbouncer", *_PACKAGES), _other_user()
        except NotInstalled as error:
            raise NotHere(str(error)) from error
        self._folder = Path(mkdtemp(prefix="openbell-pgbouncer-"))
        self.port = _free_port()
        config = self._folder / "pgbouncer.ini"
        config.write_text(
            f"""[databases]
postgres = host=127.0.0.1 port={server.port} user={USER} password={PASSWORD}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {sessions}
ignore_startup_parameters = search_path, options, extra_float_digits
"""
        )
        if user:
            for path in (self._folder, config):
                shutil.chown(path, user)
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [found, config],
                user=user,
                cwd=self._folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "LD_LIBRARY_PATH": str(cache_of(_PACKAGES[0]) / "usr/lib/x86_64-linux-gnu")},
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._folder / "log").read_text()[-500:]
                self.close()
                raise NotHere(f"PgBouncer does not start: {said}")
            time.sleep(0.02)

    @property
    def url(self) -> str:
        """The address of the server's database through the proxy."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False

    def close(self) -> None:
        """Stop it."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
