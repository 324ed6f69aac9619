"""The gateway of a desk: an ASGI application with MCP servers, OAuth, quotes, charts, webhooks, metrics and health checks.

Paths are looked up in a table: exact ones first, then the routes of OAuth and webhooks. chartgen is at /mcp and, for older
clients, at POST /, POST /message and GET /sse; every other server is at /SERVER/mcp.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property, partial
from typing import Self

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from openbell.desk.alerts.inbox import Inbox
from openbell.desk.desk import Desk
from openbell.desk.operations.health.asking import PATH as HEALTH_REPORT
from openbell.desk.pictures.chart_image.pictures import PATH as PICTURES
from openbell.desk.quotes.arche.requests import HEALTH, LIVE
from openbell.desk.settings import Settings
from openbell.desk.settings.access import make_access
from openbell.gateway.admission import Admission, AnyOf
from openbell.gateway.calls import CallWatch
from openbell.gateway.chart_img import charts
from openbell.gateway.chart_img.endpoint import CHART, ChartEndpoint
from openbell.gateway.chart_img.endpoint import TOOLS as CHART_TOOLS
from openbell.gateway.guard.audit import AuditLog
from openbell.gateway.guard.bodies import Bodies
from openbell.gateway.guard.hosts import Hosts, allowed_by
from openbell.gateway.guard.limits import CallLimits, rates_of
from openbell.gateway.guard.metrics import GatewayMetrics, HealthReport, MetricsPage, Readiness
from openbell.gateway.guard.refusals import Count, Form, GuardRefusal, plain_form, uncounted
from openbell.gateway.guard.responses import Responses, page_headers
from openbell.gateway.oauth.credentials import OAuthCredentials, StaticTokens
from openbell.gateway.oauth.recording import OAuthLog
from openbell.gateway.oauth.resources import Resources, challenge
from openbell.gateway.oauth.routes import oauth_routes
from openbell.gateway.outbound import Outbound
from openbell.gateway.quotes.endpoint import PREFIX, QuotesEndpoint, body_of
from openbell.gateway.quotes.endpoint import TOOLS as QUOTES
from openbell.gateway.streamable import wire
from openbell.gateway.streamable.endpoint import Endpoint, session_of
from openbell.gateway.streamable.pushes import Listening, PushStreams
from openbell.gateway.webhooks.inbound import inbound_route
from openbell.market.clock import SystemClock
from openbell.protocol.server import build
from openbell.protocol.service import Runner
from openbell.protocol.session import Scope
from openbell.protocol.tool import pushed_methods
from openbell.servers import NAMES, load
from openbell.stores.threads import Threads

MAIN = "chartgen"
_ALIASES = {"POST": frozenset({"/", "/message"}), "GET": frozenset({"/sse"})}


def paths_of(*, chart_signals: bool) -> dict[str, str]:
    """Returns the servers by path. The contract of chart-signals knows stdio only, so that it is served by setting."""
    names = [name for name in NAMES if name != MAIN and (chart_signals or name != "chart-signals")]
    return {"/mcp": MAIN} | {f"/{name}/mcp": name for name in names}


class Gateway:
    """The application. Use as a context manager, within the desk's."""

    def __init__(self, desk: Desk, port: int | None = None) -> None:
        """`port` is the one that was bound, if the setting is 0."""
        settings = self._settings = desk.settings
        self._desk = desk
        self.port = settings.port if port is None else port
        self.paths = paths_of(chart_signals=settings.chart_signals_http)
        self.base = settings.public_url.rstrip("/") or f"http://{_shown(settings.host)}:{self.port}"
        self._resources = Resources(self.base, (*self.paths, LIVE, CHART))
        self._services = {name: load(name, underscore_names=settings.underscore_names) for name in self.paths.values()}
        tools = {name: tuple(service.by_name) for name, service in self._services.items()}
        self.metrics = GatewayMetrics({**tools, "quotes": QUOTES.values(), "chart-img": CHART_TOOLS})
        self._pushes = PushStreams(self._inbox, supervisor=desk.supervisor)
        self._threads = Threads("messages")
        self.withdraw: Callable[[], None] = lambda: None
        """Removes the file that tells this machine's programs where the gateway is."""
        self._stack = AsyncExitStack()
        self._endpoints: dict[str, Endpoint] = {}

    @cached_property
    def _audit(self) -> AuditLog | None:
        return None if self._settings.read_only else AuditLog(self._settings.home)

    @cached_property
    def _admission(self) -> Admission:
        clock = SystemClock()
        kinds = (
            StaticTokens(self._access, self._resources, clock),
            OAuthCredentials(self._access, self._resources, clock),
        )
        return Admission(AnyOf(*kinds), challenge, open_reading=self._settings.open_reading)

    @property
    def streams(self) -> int:
        """The number of open streams of pushes."""
        return self._pushes.open

    async def __aenter__(self) -> Self:
        self._access = make_access(self._settings)
        self._stack.push_async_callback(self._access.close)
        self._watch = CallWatch(self._settings, self.metrics, self._audit)
        if self._audit is not None:
            self._stack.push_async_callback(asyncio.to_thread, self._audit.close)
        # Origins that webhooks may reach are no origins from which strangers may have documents fetched.
        limits, record = CallLimits(rates_of(self._settings)), OAuthLog(self._audit)
        oauth = oauth_routes(self._access, self._resources, Outbound(), limits=limits, record=record)
        routes: list[Route] = [*oauth, inbound_route(self._desk)]
        self._router = Router(routes, redirect_slashes=False, default=self._unknown)
        self._ready = Readiness(self._desk.health.checks)
        self._desk.arche.is_gateway = True
        self.quotes = QuotesEndpoint(self._desk, self._admission, self._watch, self.base)
        self._charts = ChartEndpoint(self._desk, self._admission, self._watch, self.base)
        self._app = guarded(self._route, self._settings, self.port, self.metrics.refused, _refusal_body)
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close_streams()
        self._threads.abandon()
        await self._stack.aclose()

    async def close_streams(self) -> None:
        """End all streams of pushes, so that clients resume them at another process."""
        await self._pushes.close()

    async def __call__(self, scope: wire.Scope, receive: wire.Receive, send: wire.Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    async def _route(self, scope: wire.Scope, receive: wire.Receive, send: wire.Send) -> None:
        path = scope["path"]
        if path in self.paths:
            await self._endpoint(path)(scope, receive, send)
        elif path in _ALIASES.get(scope["method"], ()):
            await self._endpoint("/mcp")(scope, receive, send)
        elif path == HEALTH:
            await self.quotes.health(scope, receive, send)
        elif path == "/readyz":
            await self._ready(scope, receive, send)
        elif path == "/metrics" and self._settings.metrics:
            self.metrics.streams = self.streams
            await MetricsPage(self.metrics, self._is_admin, self._desk.health.look)(scope, receive, send)
        elif path == HEALTH_REPORT:
            await HealthReport(self._desk.health, self._may_watch)(scope, receive, send)
        elif charts.is_chart_img(path):
            await self._charts(scope, receive, send)
        elif path.startswith(PICTURES):
            await self._charts.picture(scope, receive, send)
        elif path.startswith(PREFIX):
            await self.quotes(scope, receive, send)
        else:
            await self._router(scope, receive, send)

    async def _unknown(self, scope: wire.Scope, _receive: wire.Receive, send: wire.Send) -> None:
        """Answer a request for a path that there is not: name the setting, or the servers."""
        off = {"/chart-signals/mcp": "OPENBELL_CHART_SIGNALS_HTTP=true", "/metrics": "OPENBELL_METRICS=true"}
        if (setting := off.get(scope["path"])) is not None:
            text = f"{scope['path']} is served with {setting} only."
        else:
            text = f"There is no such path. The MCP servers are at {', '.join(self.paths)}."
        await GuardRefusal(404, "not_found", text).send(send)

    async def _may_watch(self, scope: wire.Scope) -> list[tuple[bytes, bytes]] | None:
        """Returns the headers of the answer for this home's own programs and for admins; None for others."""
        if self.quotes.own_key.opens(scope):
            return self.quotes.own_key.answer(scope)
        return [] if await self._is_admin(scope) else None

    async def _is_admin(self, scope: wire.Scope) -> bool:
        found = await self._admission.admit(scope, self._resources.endpoints[0])
        return Scope.ADMIN in getattr(found, "scopes", ())

    def _endpoint(self, path: str) -> Endpoint:
        if path not in self._endpoints:
            name = self.paths[path]
            runner = Runner(self._services[name], self._desk)
            pushed = partial(pushed_methods, self._services[name].pushes, self._settings)
            server = build(runner, session_of, pushes=False, listen=Listening(self._pushes, pushed))
            self._endpoints[path] = Endpoint(
                name,
                self._services[name],
                server,
                runner=runner,
                resource=f"{self._resources.base}{path}",
                admission=self._admission,
                pushes=self._pushes,
                pushed=pushed,
                watch=self._watch,
                threads=self._threads,
            )
        return self._endpoints[path]

    def _inbox(self) -> Inbox | None:
        """Returns the inbox; None if this desk cannot record how far its pushes have come."""
        return self._desk.trading.inbox if self._desk.trading.writes else None


def _refusal_body(scope: wire.Scope, refusal: GuardRefusal) -> bytes:
    """Returns the body of a refusal in the form of the API that was asked."""
    form = charts.refusal_body if charts.is_chart_img(scope["path"]) else body_of
    return form(scope, refusal)


def _shown(host: str) -> str:
    """Returns the name by which clients on this machine reach an address that the gateway listens on."""
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def guarded(
    app: ASGIApp, settings: Settings, port: int | None = None, count: Count = uncounted, form: Form = plain_form
) -> ASGIApp:
    """Returns the application behind the guard. `port` is the one that was bound, if the setting is 0.

    A request gets its id first, so that every refusal carries it. Host and Origin come before the body, which is not read
    before the application reads it. `count` is called with the reason of each refusal, `form` returns its body.
    """
    bodies = Bodies(app, limit=settings.body_limit, seconds=settings.body_timeout, count=count, form=form)
    return Responses(Hosts(bodies, allowed_by(settings, port), count, form), page_headers(settings))
