"""The pools of connections of the contract, counted and timed from outside: by the databases and by the system."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.contracts.rows import row, shown_by
from tests.contracts.tradestream.agent import Agent
from tests.contracts.tradestream.calls import BTC, CALLS, default_of
from tests.contracts.tradestream.conftest import Desk, import_minutes
from tests.gateway.services import Service
from tests.servers.desks import fresh_database
from tests.stalling import StallingProxy
from tests.stores.influx_server import InfluxServer
from tests.stores.records.postgres_server import PostgresServer
from tests.waiting import wait_for


class Pool:
    """A server on a database of its own, and the number of its connections there."""

    def __init__(self, postgres: PostgresServer, home: Path, **settings: str) -> None:
        self._postgres = postgres
        url = fresh_database(postgres)
        self._database = url.rpartition("/")[2]
        self.agent = Agent(home, "decisions", DATABASE_URL=url, **settings)

    def connections(self) -> int:
        """As PostgreSQL counts them."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name <> 'observer'"
        return int(self._postgres.ask(query, self._database)[0])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Inside, every query of the server waits."""
        import asyncio

        import asyncpg  # type: ignore[import-untyped]

        done, ready = threading.Event(), threading.Event()

        async def hold() -> None:
            url = self._postgres.url.rpartition("/")[0] + f"/{self._database}"
            connection = await asyncpg.connect(url, server_settings={"application_name": "observer"})
            async with connection.transaction():
                schema = await connection.fetchval("SELECT schemaname FROM pg_tables WHERE tablename = 'decisions'")
                await connection.execute(f'LOCK TABLE "{schema}".decisions IN ACCESS EXCLUSIVE MODE')
                ready.set()
                await asyncio.to_thread(done.wait)
            await connection.close()

        thread = threading.Thread(target=lambda: asyncio.run(hold()), daemon=True)
        thread.start()
        assert ready.wait(30)
        try:
            yield
        finally:
            done.set()
            thread.join(30)

    def use_all(self, most: int) -> None:
        """More calls at once than there may be connections; the rest waits and is answered."""
        self.agent.data("get_recent_decisions")
        calls = [str(number) for number in range(3 * most)]
        with self.locked():
            for number in calls:
                self.agent.send(number, "get_recent_decisions", offset=int(number), limit=1, force_refresh=True)
            wait_for(lambda: self.connections() >= most, f"{most} connections")
            assert self.connections() == most
        for number in calls:
            while (message := self.agent.client.receive()).get("id") not in calls:
                continue
            assert message["result"]["isError"] is False, (number, message)
        assert self.connections() <= most


@row("PostgreSQL pool min 2")
def test_two_connections_are_open_before_the_first_call_and_stay(postgres: PostgresServer, tmp_path: Path) -> None:
    pool = Pool(postgres, tmp_path)
    with pool.agent:
        wait_for(lambda: pool.connections() == 2, "two connections before the first call")
        pool.agent.data("get_recent_decisions")
        assert pool.connections() == 2
    assert default_of("pool_postgres_min") == 2


@row("PostgreSQL pool max 10")
def test_there_are_at_most_ten_connections(postgres: PostgresServer, tmp_path: Path) -> None:
    pool = Pool(postgres, tmp_path)
    with pool.agent:
        pool.use_all(10)


@row("PostgreSQL idle_timeout 300 s")
def test_idle_connections_are_closed_down_to_two(postgres: PostgresServer, tmp_path: Path) -> None:
    pool = Pool(postgres, tmp_path, POOL_POSTGRES_MAX="4", POOL_POSTGRES_IDLE="0.5")
    with pool.agent:
        pool.use_all(4)
        wait_for(lambda: pool.connections() == 2, "idle connections to be closed")
    assert default_of("pool_postgres_idle") == 300


def timed_refusal(agent: Agent, tool: str, **arguments: Any) -> tuple[str, float]:
    """The code of a call that is refused, and the seconds that its client has waited."""
    began = time.monotonic()
    code: str = agent.refusal(tool, **arguments)["error"]["code"]
    return code, time.monotonic() - began


@row("PostgreSQL connection_timeout 5 s")
def test_connecting_to_postgresql_ends_after_five_seconds(postgres: PostgresServer, tmp_path: Path) -> None:
    with StallingProxy(postgres.port) as proxy:
        proxy.stall()
        url = postgres.url.replace(f":{postgres.port}/", f":{proxy.port}/")
        with Agent(tmp_path, "decisions", DATABASE_URL=url) as agent:
            code, seconds = timed_refusal(agent, "get_recent_decisions")
    assert code in {"TIMEOUT", "DATABASE_ERROR"}
    assert 5 <= seconds < 10, "one try"


def connections_of(agent: Agent, port: int) -> int:
    """The open connections of a server's process to a port."""
    found = psutil.Process(agent.client.process.pid).net_connections("tcp")
    return sum(each.status == psutil.CONN_ESTABLISHED and each.raddr.port == port for each in found)


@row("InfluxDB pool max 5")
def test_there_are_at_most_five_connections_to_influxdb(influx: InfluxServer, tmp_path: Path) -> None:
    symbols = ("AAPL", "MSFT", "NVDA", "AMZN", "META", "TSLA", "GOOGL", "AMD", "NFLX", "INTC", "SPY", "QQQ")
    with StallingProxy(int(influx.url.rpartition(":")[2])) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        with Agent(tmp_path, "market-data", INFLUX_URL=url, FEED="none", INFLUX_DATABASE="pool") as agent:
            agent.result("get_candles", symbol=BTC)
            proxy.stall()
            for symbol in symbols:
                agent.send(symbol, "get_candles", symbol=symbol)
            wait_for(lambda: connections_of(agent, proxy.port) > 1, "calls at the same time")
            proxy.resume()
            for _ in symbols:
                assert connections_of(agent, proxy.port) <= 5
                agent.client.receive()
            assert proxy.connections <= 5, "none was opened beside those that are kept"
    assert default_of("pool_influx_connections") == 5


shown_by("InfluxDB pool max 5", "stores/test_influx.py::test_there_are_never_more_connections_than_allowed")


@row("InfluxDB idle_timeout 60 s")
def test_idle_connections_to_influxdb_are_closed(influx: InfluxServer, tmp_path: Path) -> None:
    port = int(influx.url.rpartition(":")[2])
    settings = {"INFLUX_URL": influx.url, "FEED": "none", "INFLUX_DATABASE": "idle"}
    import_minutes(tmp_path, settings)
    clock = ("--as-of", "2025-09-19T16:51:00Z")
    with Agent(tmp_path, "market-data", *clock, **settings) as patient:
        patient.data("get_candles", symbol="AAPL")
        assert connections_of(patient, port) > 0, "kept for the next call"
    with Agent(tmp_path, "market-data", *clock, **settings, POOL_INFLUX_IDLE="0.3") as agent:
        agent.data("get_candles", symbol="AAPL")
        wait_for(lambda: connections_of(agent, port) == 0, "the idle connection to be closed")
        agent.data("get_candles", symbol="AAPL", force_refresh=True)
    assert default_of("pool_influx_idle") == 60


@contextmanager
def unreachable() -> Iterator[int]:
    """A port on which connections are neither accepted nor refused: its queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = int(listener.getsockname()[1])
        waiting = []
        try:
            for _ in range(4):
                each = socket.socket()
                waiting.append(each)
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", port))
            yield port
        finally:
            for each in waiting:
                each.close()


@row("InfluxDB connection_timeout 3 s")
def test_connecting_to_influxdb_ends_after_three_seconds(tmp_path: Path) -> None:
    with unreachable() as port, Agent(tmp_path, "market-data", INFLUX_URL=f"http://127.0.0.1:{port}") as agent:
        found = [timed_refusal(agent, "get_current_price", symbol=BTC) for _ in range(2)]
    assert {code for code, _ in found} <= {"TIMEOUT", "DATABASE_ERROR"}
    # The first call also loads what it uses, which takes long on a busy machine.
    assert 3 <= min(seconds for _, seconds in found) < 6, "one try"


shown_by("gRPC pool max 3", "gateway/test_backtester.py::test_many_jobs_at_once_use_at_most_three_connections")


class PingProxy(StallingProxy):
    """Counts what a client sends."""

    sent = 0

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        if source.getsockname()[1] != self.port:
            super()._forward(source, sink)
            return
        while data := source.recv(65_536):
            self.sent += 1
            sink.sendall(data)


@row("gRPC keepalive 30 s / 10 s")
def test_idle_connections_to_the_backtester_are_pinged(research: Desk) -> None:
    assert default_of("pool_backtester_keepalive") == 30
    assert default_of("pool_backtester_keepalive_timeout") == 10
    server, arguments = CALLS["run_backtest"]
    with Service(research.home, workers=1) as service, PingProxy(int(service.address.rpartition(":")[2])) as proxy:
        often = {"POOL_BACKTESTER_KEEPALIVE": "1", "POOL_BACKTESTER_KEEPALIVE_TIMEOUT": "1"}
        with research.agent(server, BACKTESTER=f"127.0.0.1:{proxy.port}", **often) as agent:
            agent.data("run_backtest", **arguments)
            after = proxy.sent
            wait_for(lambda: proxy.sent >= after + 2, "pings")


shown_by(
    "gRPC keepalive 30 s / 10 s",
    "gateway/test_backtester.py::test_a_service_that_no_longer_answers_pings_is_unavailable",
)
