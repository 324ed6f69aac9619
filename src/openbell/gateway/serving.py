"""Runs the gateway on a socket until it is told to stop; requests in progress are answered first."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import cast
from urllib.parse import urlsplit

import uvicorn

from openbell.desk.desk import Desk
from openbell.desk.quotes.arche import gateway_file
from openbell.desk.quotes.arche.gateway_file import NAME
from openbell.desk.research.backtester import quiet_grpc
from openbell.desk.research.strategies.specs import canonical_specs
from openbell.desk.settings import Settings
from openbell.gateway.admission import OwnKey
from openbell.gateway.app import Gateway
from openbell.gateway.guard.connections import (
    AcceptedConnection,
    Acceptor,
    TimedProtocol,
    most_connections,
    server_options,
)
from openbell.indicators.registry import all_indicators
from openbell.market.errors import SettingsError
from openbell.net.http import authorities

log = logging.getLogger(__name__)

DRAIN_SECONDS = 3
"""How long requests in progress may take when the gateway stops: the process ends within 5 s."""
_BACKLOG = 2048
_FIRST_USES = (
    "openbell.charts.account.paint",
    "openbell.charts.compose",
    "openbell.charts.language.construct",
    "openbell.charts.payload",
    "openbell.charts.picture",
    "openbell.desk.alerts.service",
    "openbell.desk.operations.health.monitor",
    "openbell.desk.orders.account_overlays",
    "openbell.desk.pictures.chart_image.directory",
    "openbell.desk.pictures.chart_image.documentation",
    "openbell.desk.quotes.arche.historical",
    "openbell.desk.research.backtests",
    "openbell.desk.research.strategies.desk",
    "openbell.desk.trading_desk",
)
"""Modules that the desk and the tools import when they are first used, with what these import."""
_AT_A_SERVICE = ("openbell.backtest.wire.methods", "grpc.aio")
"""The same if backtests run at a service."""


def bind(settings: Settings) -> socket.socket:
    """Returns a socket that listens on the settings' address. Raises `SettingsError` if the address is not free."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        file = gateway_file.read(settings.home)
        if file is not None and urlsplit(file.url).port == settings.port:
            raise SettingsError(
                f"a desk of this home runs already and listens on {file.url}: use it, or stop it first"
            ) from None
        raise SettingsError(
            f"the gateway cannot listen on {settings.host}:{settings.port} ({error.strerror or error}): another program may "
            "use it; set OPENBELL_PORT to another port"
        ) from None


@asynccontextmanager
async def serving(desk: Desk, listener: socket.socket) -> AsyncIterator[Gateway]:
    """Serve while the context lasts; at its end, streams are closed and requests in progress are answered."""
    await asyncio.to_thread(_load_first_uses, desk.settings)
    async with Gateway(desk, listener.getsockname()[1]) as gateway:
        http = _Http(gateway, desk.settings, listener)
        task = desk.supervisor.background("gateway", http.run)
        try:
            with _announced(desk.settings, gateway):
                yield gateway
        finally:
            await gateway.close_streams()
            http.stop()
            await asyncio.wait({task}, timeout=DRAIN_SECONDS + 1)
            task.cancel()
            # Those that came while the gateway stopped.
            for left in list(http.server.server_state.connections):
                left.transport.abort()
            await asyncio.sleep(0)  # lets the loop close them


def _load_first_uses(settings: Settings) -> None:
    """Load what the first calls of tools need. In the event loop, other requests would wait for up to 0.2 s.

    A stdio server loads it when its client asks for it: it starts sooner, and nobody else waits.
    """
    if settings.backtester:
        quiet_grpc()
    for name in (*_FIRST_USES, *(_AT_A_SERVICE if settings.backtester else ())):
        import_module(name)
    all_indicators()
    canonical_specs()
    authorities()


@contextmanager
def _announced(settings: Settings, gateway: Gateway) -> Iterator[None]:
    """Tell this machine's programs in `gateway.json` where the gateway is, while the context lasts."""
    file = gateway_file.describe(settings, gateway.port)
    if file is None:
        yield
        return
    gateway.quotes.own_key = OwnKey(file)
    try:
        gateway_file.write(settings.home, file)
    except OSError as error:
        log.warning("%s cannot be written: %s; programs of this machine do not find the gateway", NAME, error)
    gateway.withdraw = lambda: gateway_file.remove(settings.home, file)
    try:
        yield
    finally:
        gateway.withdraw()


class _Http:
    """Serves HTTP on a socket; a server that fails is replaced by a new one."""

    def __init__(self, gateway: Gateway, settings: Settings, listener: socket.socket) -> None:
        options = server_options(settings)
        self._config = uvicorn.Config(gateway, lifespan="off", timeout_graceful_shutdown=DRAIN_SECONDS, **options)
        self._listener = listener
        self._stopping = False
        self.server = _Server(self._config)

    async def run(self) -> None:
        """Serve until `stop` was called. Raises what makes the server fail."""
        self.server = _Server(self._config)
        self.server.should_exit = self._stopping
        try:
            await self.server.serve([self._listener])
        except Exception:
            for each in self.server.servers:
                each.close()
            raise
        if not self._stopping:
            raise RuntimeError("the HTTP server has ended")

    def stop(self) -> None:
        """Accept no more connections, answer the requests in progress, and end."""
        self._stopping = self.server.should_exit = True


class _Server(uvicorn.Server):
    """uvicorn with a limit of connections, and without its signal handlers: the command stops the whole desk."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        most = most_connections()

        def make() -> TimedProtocol:
            made = TimedProtocol(self.config, self.server_state, self.lifespan.state)
            made.most = most
            return made

        connections = cast("set[AcceptedConnection]", self.server_state.connections)
        self.servers = [Acceptor(each, make, connections, most) for each in sockets or ()]  # type: ignore[misc]
        self.started = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures nothing."""
        yield
