"""The errors of the quotes API and of the server that asks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openbell.market.errors import OpenbellError

STATUSES = {
    "VALIDATION_ERROR": 400,
    "UNAUTHENTICATED": 401,
    "PROVIDER_QUOTA_EXCEEDED": 402,
    "FORBIDDEN": 403,
    "SYMBOL_NOT_FOUND": 404,
    "RATE_LIMITED": 429,
    "INTERNAL_ERROR": 500,
    "UPSTREAM_SCHEMA_ERROR": 502,
    "MARKET_DATA_UNAVAILABLE": 503,
}
"""The codes of error envelopes, each with its HTTP status."""
ADAPTER = ("UPSTREAM_ERROR", "NETWORK_ERROR", "NON_JSON_RESPONSE")
"""The types of errors that an upstream does not report itself: the server that asks it finds them."""
RETRYABLE = frozenset({429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed. A request without a response may too."""


class ApiFault(OpenbellError):
    """The quotes API does not answer a request with quotes; `faults` are the details of the error envelope."""

    def __init__(self, code: str, message: str, faults: Sequence[dict[str, str]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.faults = list(faults)


class UpstreamUnreachable(OpenbellError):
    """A quotes API did not respond, or its response ended too early."""


class UpstreamTooLarge(OpenbellError):
    """The response of a quotes API is larger than any that its contract allows."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ArcheFailed(OpenbellError):
    """A quotes API refused a request, failed, or sent what its contract does not allow; `fields` is the error object."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        http_status: int | None = None,
        http_code: str | None = None,
        trace_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.fields: dict[str, Any] = {
            "retryable": http_status in RETRYABLE if http_status is not None else True,
            "http_status": http_status,
            "http_code": http_code,
            "trace_id": trace_id,
            "retry_after_s": retry_after_s,
        }
        self.kind = kind
