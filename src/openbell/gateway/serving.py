"""Runs the gateway on a socket until it is told to stop; requests in progress are answered first."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn

from openbell.desk.arche import gateway_file
from openbell.desk.arche.gateway_file import NAME
from openbell.gateway.app import Gateway
from openbell.gateway.guard.connections import server_options
from openbell.gateway.quotes.keys import OwnKey
from openbell.market.errors import SettingsError

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.desk.settings import Settings

log = logging.getLogger(__name__)

DRAIN_SECONDS = 20
"""How long requests in progress may take when the gateway stops."""
_BACKLOG = 2048


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
    async with Gateway(desk, listener.getsockname()[1]) as gateway:
        options = server_options(desk.settings)
        config = uvicorn.Config(gateway, lifespan="off", timeout_graceful_shutdown=DRAIN_SECONDS, **options)
        server = _Server(config)
        task = asyncio.create_task(server.serve([listener]), name="gateway")
        try:
            with _announced(desk.settings, gateway):
                yield gateway
        finally:
            await gateway.close_streams()
            server.should_exit = True
            await task
            # Those that came while the gateway stopped.
            for left in list(server.server_state.connections):
                left.transport.abort()
            await asyncio.sleep(0)  # lets the loop close them


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


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the command stops the whole desk."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures nothing."""
        yield
