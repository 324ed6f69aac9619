"""All routes of the authorization server."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from openbell.gateway.guard.limits import CallLimits
from openbell.gateway.oauth.authorize import Authorize, as_pages
from openbell.gateway.oauth.clients import Clients
from openbell.gateway.oauth.documents import AUTH_METHODS, CODE_GRANT, REFRESH_GRANT, DocumentClient, Documents
from openbell.gateway.oauth.passphrases import Cost, SignIn
from openbell.gateway.oauth.recording import OAuthLog
from openbell.gateway.oauth.requests import answered
from openbell.gateway.oauth.resources import Resources, as_reached, metadata_url
from openbell.gateway.oauth.scopes import DEFAULT, in_order
from openbell.gateway.oauth.token_endpoint import TokenEndpoint
from openbell.market.clock import Clock, SystemClock
from openbell.protocol.session import Scope
from openbell.stores.access.store import AccessStore

AUTHORIZE = "/authorize"
CONSENT = "/authorize/consent"
TOKEN = "/token"  # noqa: S105 - a path
REGISTER = "/register"
REVOKE = "/revoke"
_HEADERS = {"Cache-Control": "max-age=300", "X-Content-Type-Options": "nosniff"}


def oauth_routes(
    store: AccessStore,
    resources: Resources,
    outbound: DocumentClient,
    clock: Clock | None = None,
    cost: Cost = Cost(),  # noqa: B008 - immutable
    *,
    limits: CallLimits | None = None,
    record: OAuthLog | None = None,
) -> list[Route]:
    """Returns the routes of the metadata, the authorization endpoint and its page, and the token endpoint.

    `outbound` fetches client-id metadata documents. `cost` is that of new comparisons with unknown users. `limits` has
    the rate of sign-ins of an address, `record` writes the audit log.
    """
    clock, record = clock or SystemClock(), record or OAuthLog()
    clients = Clients(store, Documents(store, outbound, clock), clock, record)
    sign_in = SignIn(store, clock, cost, limits)
    authorize = Authorize(store, clients, sign_in, resources, clock, record)
    tokens = TokenEndpoint(store, clients, resources, clock, record)
    return [
        *metadata_routes(resources),
        Route(AUTHORIZE, as_pages(authorize.show), methods=["GET"]),
        Route(CONSENT, as_pages(authorize.decide), methods=["POST"]),
        Route(TOKEN, answered(tokens.issue), methods=["POST"]),
        Route(REVOKE, answered(tokens.revoke), methods=["POST"]),
        Route(REGISTER, answered(clients.register), methods=["POST"]),
    ]


def metadata_routes(resources: Resources) -> list[Route]:
    """Returns the routes of all metadata."""
    server = Route("/.well-known/oauth-authorization-server", _constant(_server(resources.base)), methods=["GET"])
    described = (resources.base, *resources.endpoints)
    return [server, *(_resource_route(each, _resource(each, resources.base)) for each in described)]


def _resource_route(resource: str, content: dict[str, Any]) -> Route:
    async def answer(request: Request) -> Response:
        reached = as_reached(resource, request.headers.get("host", ""))
        return JSONResponse({**content, "resource": reached}, headers={**_HEADERS, "Vary": "Host"})

    return Route(urlsplit(metadata_url(resource)).path, answer, methods=["GET"])


def _server(base: str) -> dict[str, Any]:
    fields = {
        "issuer": base,
        "authorization_endpoint": base + AUTHORIZE,
        "token_endpoint": base + TOKEN,
        "registration_endpoint": base + REGISTER,
        "revocation_endpoint": base + REVOKE,
        "scopes_supported": list(Scope),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [CODE_GRANT, REFRESH_GRANT],
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }
    return OAuthMetadata.model_validate(fields).model_dump(mode="json", exclude_none=True)


def _resource(resource: str, base: str) -> dict[str, Any]:
    fields = {
        "resource": resource,
        "authorization_servers": [base],
        # Clients ask for all of these at first, and for more when a call is refused for the lack of a scope.
        "scopes_supported": in_order(DEFAULT),
        "bearer_methods_supported": ["header"],
        "resource_name": "Openbell",
    }
    return ProtectedResourceMetadata.model_validate(fields).model_dump(mode="json", exclude_none=True)


def _constant(content: dict[str, Any]) -> Any:
    async def answer(_request: Request) -> Response:
        return JSONResponse(content, headers=_HEADERS)

    return answer
