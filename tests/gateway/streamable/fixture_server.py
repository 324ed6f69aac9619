"""The conformance suite's tools behind tokens of two principals: they send requests to clients and close their streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openbell.gateway.admission import Admission
from openbell.gateway.app import guarded
from openbell.gateway.calls import CallWatch
from openbell.gateway.guard.metrics import GatewayMetrics
from openbell.gateway.streamable.endpoint import Endpoint
from openbell.gateway.streamable.pushes import Listening, PushStreams
from openbell.gateway.streamable.sessions import ClientStates
from openbell.protocol.dialects import JsonRpcDialect
from openbell.protocol.service import Service
from openbell.protocol.session import Principal, Scope
from tests.gateway.conformance import everything
from tests.gateway.guard.serving import Served, settings_of
from tests.gateway.streamable.gateways import Client

TOKENS = {name: f"token-of-{name}" for name in ("alice", "bob")}


class _Tokens:
    async def principal(self, token: str, _resource: str) -> Principal | None:
        return next((Principal(name, frozenset(Scope)) for name, text in TOKENS.items() if text == token), None)


class Fixtures(Client):
    """A client of the served fixtures, and what the server keeps of its clients."""

    def __init__(self, port: int, sessions: ClientStates, pushes: PushStreams) -> None:
        super().__init__(port, TOKENS)
        self.sessions = sessions
        self.pushes = pushes


@contextmanager
def fixtures(home: Path, sessions: ClientStates | None = None, pushes: PushStreams | None = None) -> Iterator[Fixtures]:
    """Serves the fixtures in a thread."""
    settings = settings_of(home, rate_read=0)
    kept = ClientStates() if sessions is None else sessions
    streams = PushStreams(lambda: None) if pushes is None else pushes

    def make(port: int) -> Any:
        endpoint = Endpoint(
            everything.NAME,
            Service(everything.NAME, everything.NAME, "", (), JsonRpcDialect({})),
            everything.build(Listening(streams, everything.pushed)),
            resource=f"http://127.0.0.1:{port}/mcp",
            admission=Admission(_Tokens(), lambda *_: "Bearer"),
            pushes=streams,
            pushed=everything.pushed,
            watch=CallWatch(settings, GatewayMetrics({}), None),
            sessions=kept,
        )
        return guarded(endpoint, settings, port)

    with Served(make, settings) as served:
        yield Fixtures(served.port, kept, streams)
