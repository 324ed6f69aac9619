"""The authorization server as clients see it: uvicorn on a real socket, with two protected endpoints behind its tokens."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from openbell.desk.settings import load
from openbell.desk.settings.access import make_access
from openbell.gateway.admission import AnyOf
from openbell.gateway.oauth.credentials import OAuthCredentials, StaticTokens
from openbell.gateway.oauth.passphrases import Cost, hashed
from openbell.gateway.oauth.resources import Resources, challenge
from openbell.gateway.oauth.routes import oauth_routes
from openbell.market.errors import OpenbellError
from openbell.stores.access import users
from openbell.stores.access.store import AccessStore
from openbell.stores.access.users import User
from tests.clocks import HandClock

PATHS = ("/mcp", "/portfolio/mcp")
PASSPHRASE = "correct horse battery staple"
CHEAP = Cost(n=16, r=8, p=1)
"""For tests that are not about the cost."""
START = 1_790_000_000.0


class OutboundRefused(OpenbellError):
    """As `gateway/outbound.py` raises it for addresses that are not public."""


class OutboundFailed(OpenbellError):
    """As it raises it for everything else."""


@dataclass(frozen=True)
class Fetched:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Web:
    """The rest of the web: what each URL answers. A document, a response, or an error."""

    pages: dict[str, Any] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        limit: int = 65_536,
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Fetched:
        assert (method, body, dict(headers)) == ("GET", b"", {"Accept": "application/json"})
        assert limit <= 65_536
        assert timeout <= 10
        self.fetched.append(url)
        page = self.pages.get(url, OutboundFailed("no such host"))
        if isinstance(page, Exception):
            raise page
        if isinstance(page, Fetched):
            if len(page.body) > limit:
                raise OutboundFailed("too large")
            return page
        answer = httpx2.Response(200, json=page)
        return Fetched(200, answer.headers, answer.content)


class Gateway:
    """One gateway process, in a thread. Use as a context manager."""

    def __init__(
        self,
        home: Path,
        *,
        clock: HandClock | None = None,
        database: str = "",
        cost: Cost = CHEAP,
        port: int = 0,
        public_url: str = "",
    ) -> None:
        """`public_url` is the one that clients use if there is a proxy in between."""
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.bind(("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.clock = clock or HandClock(START)
        self.cost = cost
        self.web = Web()
        self.resources = Resources(public_url or self.url, PATHS)
        self._settings = load({}, home=home, database_url=database)
        config = uvicorn.Config(self._app(), log_config=None, ws="none", lifespan="on", http="h11")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]}, daemon=True)
        self._clients: list[httpx2.Client] = []
        self.loop: asyncio.AbstractEventLoop
        self.store: AccessStore

    def _app(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            self.loop, self.store = asyncio.get_running_loop(), make_access(self._settings)
            app.router.routes += oauth_routes(self.store, self.resources, self.web, self.clock, self.cost)
            oauth = OAuthCredentials(self.store, self.resources, self.clock)
            self.credentials = AnyOf(oauth, StaticTokens(self.store, self.resources, self.clock))
            yield
            await self.store.close()

        return Starlette(routes=[Route(path, self._protected) for path in PATHS], lifespan=lifespan)

    async def _protected(self, request: Request) -> Response:
        resource = self.url + request.url.path
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        principal = await self.credentials.principal(token, resource) if scheme.lower() == "bearer" else None
        if principal is None:
            error = "invalid_token" if token else None
            return Response(status_code=401, headers={"WWW-Authenticate": challenge(resource, error, "read")})
        return JSONResponse({"subject": principal.subject, "scopes": sorted(principal.scopes)})

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            assert self._thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join(30)
        self._listening.close()

    def run(self, work: Any) -> Any:
        """Await something in the gateway's own loop."""

        async def awaited() -> Any:
            return await work

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop).result(30)

    def add_user(self, name: str = "local", scopes: str = "read trade admin", passphrase: str = PASSPHRASE) -> None:
        """Add a user, or change the passphrase."""
        user = User(name, hashed(passphrase, self.cost), frozenset(scopes.split()))
        self.run(self.store.write(lambda connection: users.put(connection, user, self.clock.epoch())))

    def connect(self) -> httpx2.Client:
        """A new HTTP client, with cookies of its own; closed when the gateway ends."""
        client = httpx2.Client(base_url=self.url, verify=False)
        self._clients.append(client)
        return client

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx2.Response:
        """The answer to a request of a new client."""
        return self.connect().get(path, headers=headers)

    def asks(self, token: str, path: str = "/mcp") -> httpx2.Response:
        """The answer of a protected endpoint to a token."""
        return self.get(path, {"Authorization": f"Bearer {token}"})
