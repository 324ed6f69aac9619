"""Requests to the OAuth endpoints: parameters, each at most once and within limits, and how a refusal is answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from openbell.market.errors import OpenbellError, Refused

log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache", "X-Content-Type-Options": "nosniff"}
MOST_BYTES = 16_384
"""Bytes of a query or a body."""
_MOST_FIELDS = 50


class OAuthFault(Exception):
    """A request that is refused, with OAuth's name of the error."""

    def __init__(self, error: str, description: str, status: int = 400, **headers: str) -> None:
        """`headers` are added to the response; an underscore in a name stands for a hyphen."""
        super().__init__(description)
        self.error = error
        self.description = description
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def json_response(content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a response that no cache keeps."""
    return JSONResponse(dict(content), status, headers={**NO_STORE, **(headers or {})})


def answered(handler: Handler) -> Handler:
    """Returns the handler with its faults as JSON. A failing store is 503; a defect is logged and answered as 500."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except OAuthFault as fault:
            content = {"error": fault.error, "error_description": fault.description}
            return json_response(content, fault.status, fault.headers)
        except Refused as error:
            return json_response({"error": "access_denied", "error_description": error.message}, 403)
        except OpenbellError as error:
            log.warning("an OAuth request failed: %s", error.message)
            description = "the store of users and tokens does not answer: try again"
            content = {"error": "temporarily_unavailable", "error_description": description}
            return json_response(content, 503, {"Retry-After": "5"})
        except Exception:
            log.exception("an OAuth request failed")
            return json_response({"error": "server_error", "error_description": "see the log of the gateway"}, 500)

    return handle


def query_parameters(request: Request) -> dict[str, str]:
    """Returns the parameters of the query. Raises `OAuthFault`."""
    return _unique(request.scope["query_string"])


async def form_parameters(request: Request) -> dict[str, str]:
    """Returns the parameters of a form in the body. Raises `OAuthFault`."""
    return _unique(await body_of(request, "application/x-www-form-urlencoded"))


async def body_of(request: Request, content_type: str) -> bytes:
    """Returns the body. Raises `OAuthFault` if it is of another type or too large."""
    found = request.headers.getlist("content-type")
    if len(found) != 1 or found[0].partition(";")[0].strip().lower() != content_type:
        raise OAuthFault("invalid_request", f"the content type must be {content_type}", 415)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise OAuthFault("invalid_request", f"the body is larger than {MOST_BYTES} bytes", 413, Connection="close")
    return bytes(body)


def _unique(data: bytes) -> dict[str, str]:
    """Returns parameters by name. Those without a value count as left out (RFC 6749, 3.1)."""
    if len(data) > MOST_BYTES:
        raise OAuthFault("invalid_request", f"the parameters are larger than {MOST_BYTES} bytes", 413)
    try:
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise OAuthFault("invalid_request", "the parameters are not form-encoded UTF-8, or too many") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise OAuthFault("invalid_request", "a parameter is there twice")
        if "\0" in value:
            raise OAuthFault("invalid_request", "a parameter contains a null character")
        found[name] = value
    return {name: value for name, value in found.items() if value}


def required(parameters: dict[str, str], name: str) -> str:
    """Returns a parameter. Raises `OAuthFault` if it is missing."""
    if name not in parameters:
        raise OAuthFault("invalid_request", f"{name} is missing")
    return parameters[name]


def address_of(request: Request) -> str:
    """Returns the network address of the client; of IPv6 the network of 64 bits, which one host may own."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return "unknown"
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"
