"""Refusals of the OAuth endpoints, and how they are answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from openbell.market.errors import OpenbellError, Refused

log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache", "X-Content-Type-Options": "nosniff"}


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
