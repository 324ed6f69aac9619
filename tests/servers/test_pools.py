"""The connections of a server to its databases, counted from outside: how many, since when, and for how long."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.client import OPENBELL, Client
from tests.servers.desks import data, fresh_database
from tests.stores import influx_server
from tests.stores.records.postgres_server import PostgresServer
from tests.waiting import wait_for

AS_OF = "2026-01-07T15:00:00Z"
CONNECT_S = 5.0


def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The whole payload of an error."""
    result = client.call(tool, arguments)["result"]
    assert result["isError"] is True, result
    payload: dict[str, Any] = json.loads(result["content"][0]["text"])
    return payload


# PostgreSQL


@pytest.mark.parametrize("server", ["strategy", "portfolio", "decisions", "strategy-db"])
def test_the_least_connections_to_postgresql_are_open_before_the_first_call(
    postgres: PostgresServer, tmp_path: Path, server: str
) -> None:
    url = fresh_database(postgres)
    count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{url.rpartition('/')[2]}'"
    with Client(tmp_path, command=[*OPENBELL, "mcp", server], DATABASE_URL=url, POOL_POSTGRES_MIN="3") as client:
        client.initialize()
        wait_for(lambda: postgres.ask(count)[0] >= 3, "three connections")


def test_a_server_starts_without_its_database(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"postgresql://nobody:secret@127.0.0.1:{nobody.getsockname()[1]}/desk"
        with Client(tmp_path, command=[*OPENBELL, "mcp", "decisions"], DATABASE_URL=url) as client:
            assert client.initialize()["serverInfo"]["name"] == "decisions-mcp"
            assert refused(client, "get_recent_decisions")["error"]["code"] == "DATABASE_ERROR"


# InfluxDB


def connections(client: Client, url: str) -> int:
    """The connections of a server process to an address that are established now."""
    port = int(url.rpartition(":")[2])
    found = psutil.Process(client.process.pid).net_connections("tcp")
    return sum(each.status == psutil.CONN_ESTABLISHED and each.raddr.port == port for each in found if each.raddr)


def test_an_idle_connection_to_influxdb_is_closed_and_the_next_call_opens_another(tmp_path: Path) -> None:
    own = influx_server.started()
    settings = {"INFLUX_URL": own.url, "AS_OF": AS_OF, "TIMEOUT": "60", "POOL_INFLUX_IDLE": "2"}
    try:
        with Client(tmp_path, command=[*OPENBELL, "mcp", "market-data"], **settings) as client:
            client.initialize()
            for symbol in ("BTC/USD", "ETH/USD"):
                assert data(client, "get_candles", symbol=symbol, timeframe="1m", limit=5)["items"]
                assert connections(client, own.url) > 0
                wait_for(lambda: connections(client, own.url) == 0, "the connections to be closed")
    finally:
        own.close()


@contextmanager
def full_listener() -> Iterator[str]:
    """A socket that listens and never accepts, with as many connections waiting as it has room for."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(8)]
        try:
            for each in waiting:
                each.setblocking(False)
                with suppress(BlockingIOError):
                    each.connect(listener.getsockname())
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for each in waiting:
                each.close()


@pytest.mark.parametrize("tool", ["get_candles", "get_current_price", "get_volatility"])
def test_a_call_waits_once_for_a_connection_to_influxdb(tmp_path: Path, tool: str) -> None:
    with full_listener() as url:
        settings = {"INFLUX_URL": url, "TIMEOUT": "60", "POOL_INFLUX_CONNECT": f"{CONNECT_S}", "AS_OF": AS_OF}
        with Client(tmp_path, command=[*OPENBELL, "mcp", "market-data"], **settings) as client:
            client.initialize()
            payload = refused(client, tool, symbol="BTC/USD")
    assert payload["error"]["code"] == "TIMEOUT"
    assert CONNECT_S * 1000 <= payload["_metadata"]["latency_ms"] < 2 * CONNECT_S * 1000, "not as long as two tries"


class SilentServer:
    """Accepts connections, reads what comes, and never answers."""

    def __init__(self) -> None:
        self.read = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                self._open.append(accepted)
                threading.Thread(target=self._follow, args=(accepted,), daemon=True).start()

    def _follow(self, accepted: socket.socket) -> None:
        with suppress(OSError):
            while chunk := accepted.recv(65536):
                self.read += chunk

    def close(self) -> None:
        self._listener.close()
        for each in self._open:
            each.close()


def test_a_call_asks_a_silent_influxdb_once_and_the_next_call_asks_again(tmp_path: Path) -> None:
    silent = SilentServer()
    settings = {"INFLUX_URL": silent.url, "TIMEOUT": "60", "POOL_INFLUX_CONNECT": "1", "AS_OF": AS_OF}
    try:
        with Client(tmp_path, command=[*OPENBELL, "mcp", "market-data"], **settings) as client:
            client.initialize()
            for number in (1, 2):
                assert refused(client, "get_candles", symbol="BTC/USD")["error"]["code"] == "TIMEOUT"
                assert silent.read.count(b" HTTP/1.1\r\n") == number
    finally:
        silent.close()
