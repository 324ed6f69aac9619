"""Refusals of the gateway as error envelopes, for the paths of the quotes API."""

from __future__ import annotations

import json

from starlette.types import Scope

from openbell.desk.quotes.arche.bodies import envelope
from openbell.desk.quotes.arche.errors import STATUSES
from openbell.desk.quotes.arche.requests import API_VERSION
from openbell.gateway.guard.refusals import GuardRefusal

PREFIX = f"/{API_VERSION}/"
_CODES = {status: code for code, status in STATUSES.items()} | {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}
"""The codes of refusals. Two are not in the contract: they are about the path and the method, not about quotes."""


def body_of(scope: Scope, refusal: GuardRefusal) -> bytes:
    """Returns the body of a refusal: an error envelope for the quotes API, else the gateway's own form."""
    return enveloped(scope, refusal) if scope["path"].startswith(PREFIX) else refusal.body()


def enveloped(scope: Scope, refusal: GuardRefusal) -> bytes:
    """Returns a refusal as an error envelope."""
    code = _CODES.get(refusal.status, "VALIDATION_ERROR")
    return json.dumps(envelope(code, refusal.status, refusal.message, request_id_of(scope))).encode()


def request_id_of(scope: Scope) -> str:
    """Returns the id of a request, which the guard has given to it."""
    return str(scope.get("state", {}).get("request_id", ""))
