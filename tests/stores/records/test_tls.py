"""PostgreSQL over TLS: what works, and what is wrong in words."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest
from sqlalchemy import text

from openbell.market.errors import StoreError
from openbell.stores.records import failures
from openbell.stores.records.postgres import PoolLimits, PostgresDatabase
from tests.gateway.services import Authority, Certificate
from tests.stores.records.postgres_server import PASSWORD, PostgresServer

_SSL_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "authority")


class TlsProxy:
    """TLS before a PostgreSQL that has none, like an operator's proxy: answers SSLRequest, forwards. Use with `with`."""

    def __init__(self, port: int, certificate: Certificate) -> None:
        self._to = port
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate.certificate, certificate.key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            if near.recv(8) != _SSL_REQUEST:
                return  # the client was cancelled before it sent anything
            near.sendall(b"S")
            with (
                self._tls.wrap_socket(near, server_side=True) as inside,
                socket.create_connection(("127.0.0.1", self._to)) as far,
            ):
                # One thread reads and writes: two would use the TLS connection at once.
                while True:
                    ready = [inside] if inside.pending() else select.select([inside, far], [], [])[0]
                    for source, sink in ((inside, far), (far, inside)):
                        if source in ready:
                            data = source.recv(65_536)
                            if not data:
                                return
                            sink.sendall(data)


@pytest.fixture(scope="module")
def url(authority: Authority, postgres: PostgresServer) -> Iterator[str]:
    """The address of a server with a certificate for the name `db.example.com` and nothing else."""
    with TlsProxy(postgres.port, authority.issue("server", "db.example.com")) as proxy:
        yield postgres.url.replace(f":{postgres.port}/", f":{proxy.port}/")


def connect(url: str) -> str:
    """How a connection fails; empty if it works."""

    async def main() -> str:
        database = PostgresDatabase(url, "tls", PoolLimits(connect=5))
        try:
            with failures.translated(database.where):
                await database.run(lambda connection: connection.execute(text("SELECT 1")), writing=False)
        except StoreError as error:
            return error.message
        finally:
            await database.close()
        return ""

    return asyncio.run(main())


def test_wrong_tls_is_said_in_words(url: str, authority: Authority, tmp_path: Path) -> None:
    ours, other, none = authority.file, Authority(tmp_path, "other").file, tmp_path / "empty.pem"
    none.write_text("")
    for query, says in (
        ("sslmode=require", ""),
        (f"sslmode=verify-ca&sslrootcert={ours}", ""),
        (f"sslmode=verify-full&sslrootcert={ours}", "is for another address: use the name in it, or sslmode=verify-ca"),
        (
            f"sslmode=verify-ca&sslrootcert={other}",
            "not signed by an authority that is trusted here: check sslrootcert",
        ),
        (f"sslmode=verify-ca&sslrootcert={none}", "TLS failed: check sslmode, and the files of sslrootcert"),
        ("ssl_min_protocol_version=TLSv9", "TLS version cannot be used: check OPENBELL_DATABASE_URL"),
    ):
        found = connect(f"{url}?{query}")
        assert (says in found) if says else not found, (query, found)
        assert not [word for word in (PASSWORD, "_ssl.c", "asyncpg", "Error", "cannot hold") if word in found], found
    wrong_name = connect(f"{url.replace('127.0.0.1', 'localhost')}?sslmode=verify-full&sslrootcert={ours}")
    assert "is for another host name: use the name in it" in wrong_name


def test_a_server_without_tls_is_named(postgres: PostgresServer) -> None:
    assert "it offers no TLS, and sslmode requires it" in connect(f"{postgres.url}?sslmode=require")
