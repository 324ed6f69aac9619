"""The metadata of the authorization server (RFC 8414) and of each protected resource (RFC 9728)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from openbell.gateway.oauth.descriptions import AUTH_METHODS, CODE_GRANT, REFRESH_GRANT
from openbell.gateway.oauth.resources import Resources, as_reached, metadata_url
from openbell.gateway.oauth.scopes import DEFAULT, in_order
from openbell.protocol.session import Scope

AUTHORIZE = "/authorize"
CONSENT = "/authorize/consent"
TOKEN = "/token"  # noqa: S105 - a path
REGISTER = "/register"
REVOKE = "/revoke"
_HEADERS = {"Cache-Control": "max-age=300", "X-Content-Type-Options": "nosniff"}


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
