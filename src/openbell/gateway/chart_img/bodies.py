"""Responses in the vendor's form: errors are `{"message": …}`, lists are `{"updatedAt", "payload"}`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from starlette.types import Scope, Send

from openbell.charts.config.problems import ConfigProblem
from openbell.gateway.guard.refusals import GuardRefusal, Headers

PREFIXES = ("/v1/tradingview/", "/v2/tradingview/", "/v3/tradingview/")
_MESSAGES = {
    "unauthorized": "Missing or invalid API key: send a token of openbell token add NAME --scopes read as x-api-key",
    "rate_limited": "Too Many Requests",
    "too_many_requests": "Too Many Requests",
}


@dataclass(frozen=True, slots=True)
class ChartResponse:
    """A response."""

    status: int
    body: bytes
    type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    async def send(self, send: Send, more: Headers) -> None:
        """Send the response."""
        headers = [
            (b"content-type", self.type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            *((name.encode(), value.encode()) for name, value in self.headers.items()),
            *more,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def answer(status: int, value: Any, **headers: str) -> ChartResponse:
    """Returns a JSON response."""
    return ChartResponse(status, json.dumps(value, allow_nan=False).encode(), headers=headers)


def failure(status: int, message: str | Sequence[Mapping[str, Any]], **headers: str) -> ChartResponse:
    """Returns an error."""
    return answer(status, {"message": message}, **headers)


def invalid(problems: Sequence[ConfigProblem], given: Mapping[str, Any]) -> ChartResponse:
    """Returns the error of a config with invalid fields; of an invalid symbol alone, the vendor's words."""
    if [each.field for each in problems] == ["symbol"]:
        return failure(422, "Invalid Symbol")
    faults = [
        {"value": _value(given.get(each.field)), "msg": each.message, "param": each.field, "location": "body"}
        for each in problems
    ]
    return failure(422, faults)


def _value(value: Any) -> Any:
    """Returns what a client has sent, if it is short."""
    if isinstance(value, str):
        return value[:100]
    return value if isinstance(value, int) or (isinstance(value, float) and isfinite(value)) else None


def is_chart_img(path: str) -> bool:
    """Returns True if a path belongs to this API."""
    return path.startswith(PREFIXES)


def refusal_body(_scope: Scope, refusal: GuardRefusal) -> bytes:
    """Returns the body of a gateway's refusal."""
    return json.dumps({"message": _MESSAGES.get(refusal.reason, refusal.message)}).encode()
