"""Turns the response of a quotes API into a result, or into the manifest's error object. Both ways of asking end here.

Nothing in a response is trusted: its shape is checked, texts that are passed on are bounded, and the key is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from openbell.desk.quotes.arche.errors import STATUSES, ArcheFailed, UpstreamTooLarge, UpstreamUnreachable
from openbell.desk.quotes.arche.requests import LARGEST_PAGE, MOST_TICKERS, ArcheResponse
from openbell.market.foreign_text import one_visible_line
from openbell.protocol.validation_messages import explain, faults_of
from openbell.servers.arche.shapes import Bar, QuoteShape

T = TypeVar("T")

_LONGEST_MESSAGE = 500
_LONGEST_WAIT = 86_400.0
_CODE = re.compile(r"[A-Za-z0-9_. -]{1,64}")
_TRACE = re.compile(r"[A-Za-z0-9._-]{1,128}")
_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_CLEAR = frozenset({401, 402, 403, 429})
"""Statuses that say enough without a body."""


class _Batch(TypedDict):
    items: Annotated[list[QuoteShape], Field(max_length=MOST_TICKERS)]


class _LiveBody(TypedDict):
    data: _Batch


class PageBody(TypedDict):
    """The body of a page of bars."""

    items: Annotated[list[Bar], Field(max_length=LARGEST_PAGE)]
    page: Annotated[int, Field(ge=1)]
    page_size: Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
    total: Annotated[int, Field(ge=0)]


_LIVE: TypeAdapter[_LiveBody] = TypeAdapter(_LiveBody)
_PAGE: TypeAdapter[PageBody] = TypeAdapter(PageBody)


def quotes_of(response: ArcheResponse, secret: str = "") -> list[QuoteShape]:
    """Returns the quotes of a response. Raises `ArcheFailed`."""
    return _checked(_LIVE, response, secret)["data"]["items"]


def page_of(response: ArcheResponse, secret: str = "") -> PageBody:
    """Returns the page of a response. Raises `ArcheFailed`."""
    return _checked(_PAGE, response, secret)


def asked_page(response: ArcheResponse, page: int, size: int, interval: str, secret: str = "") -> PageBody:
    """Returns the page of a response, which must be the one that was asked for. Raises `ArcheFailed`."""
    found = page_of(response, secret)
    intervals = {each["interval"] for each in found["items"]}
    if (found["page"], found["page_size"]) != (page, size) or len(found["items"]) > size or not intervals <= {interval}:
        raise _failed("UPSTREAM_SCHEMA_ERROR", "The quotes API has answered with another page", response)
    return found


def health_of(response: ArcheResponse, secret: str = "") -> str:
    """Returns the state that a response reports: its own word, else `ok` for success. A status of 500 and more is no `ok`.

    Raises `ArcheFailed` if the API refuses to tell.
    """
    fields = _object(response.body)
    status = fields.get("status") if isinstance(fields, Mapping) else None
    word = status if isinstance(status, str) and status in {"ok", "degraded", "down"} else None
    if response.status >= 500:
        return "degraded" if word == "degraded" else "down"
    if response.status >= 300:
        raise _reported(response, secret)
    if word is not None:
        return word
    if fields is None:
        raise _failed("NON_JSON_RESPONSE", "The quotes API did not answer with JSON", response)
    return "ok"


def transport_failure(error: UpstreamUnreachable | UpstreamTooLarge, request_id: str, secret: str = "") -> ArcheFailed:
    """Returns the error for a request without a usable response."""
    message = _bounded(error.message, secret)
    if isinstance(error, UpstreamTooLarge):
        code = _phrase(error.status)
        return ArcheFailed(
            "UPSTREAM_SCHEMA_ERROR", message, http_status=error.status, http_code=code, trace_id=request_id
        )
    return ArcheFailed("NETWORK_ERROR", message, trace_id=request_id)


def _checked(wanted: TypeAdapter[T], response: ArcheResponse, secret: str) -> T:
    if response.status not in {200, 206}:
        raise _reported(response, secret)
    if secret and secret.encode() in response.body:
        raise _failed("UPSTREAM_SCHEMA_ERROR", "The answer of the quotes API repeats the key", response)
    try:
        return wanted.validate_json(response.body, strict=True, extra="ignore")
    except ValidationError as error:
        if error.errors(include_input=False, include_url=False, include_context=False)[0]["type"] == "json_invalid":
            raise _failed("NON_JSON_RESPONSE", "The quotes API did not answer with JSON", response) from None
        reason = explain(faults_of(error), _object(response.body), "the body")[:200]
        message = f"The answer of the quotes API is not of its contract: {reason}"
        raise _failed("UPSTREAM_SCHEMA_ERROR", message, response) from None


def _reported(response: ArcheResponse, secret: str) -> ArcheFailed:
    """Returns the error that a response reports by its status and its envelope."""
    body = _object(response.body)
    if 300 <= response.status < 400:
        return _failed("UPSTREAM_SCHEMA_ERROR", "The quotes API redirects: set OPENBELL_ARCHE_URL to its URL", response)
    if body is None and response.status < 500 and response.status not in _CLEAR:
        return _failed("NON_JSON_RESPONSE", "The quotes API did not answer with JSON", response)
    given = body.get("error") if isinstance(body, Mapping) else None
    fields: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    code, trace = _word(fields.get("code"), _CODE, secret), _word(fields.get("trace_id"), _TRACE, secret)
    message = fields.get("message")
    shown = _bounded(message, secret) if isinstance(message, str) else ""
    kind, default = _kind(response.status, code), f"The quotes API answered with status {response.status}"
    if response.status == 404 and (code == "NOT_FOUND" or not fields):  # it is about the path, not about tickers
        kind, default = "UPSTREAM_SCHEMA_ERROR", "There is no quotes API at this URL"
    return _failed(kind, shown or default, response, trace)


def _kind(status: int, code: str | None) -> str:
    """Returns the type of a reported error: the envelope's code if it belongs to the status, else that of the status.

    A failure of the API that names no such code is UPSTREAM_ERROR, whatever its status: 503 of a proxy is not about prices.
    """
    by_status = {number: name for name, number in STATUSES.items()}
    if status in _CLEAR:
        return by_status[status]
    if code in STATUSES and (STATUSES[str(code)] == status or status not in by_status):
        return str(code)
    if status >= 500:
        return "UPSTREAM_ERROR"
    if status in by_status:
        return by_status[status]
    return "VALIDATION_ERROR" if status >= 400 else "UPSTREAM_SCHEMA_ERROR"


def _failed(kind: str, message: str, response: ArcheResponse, trace: str | None = None) -> ArcheFailed:
    return ArcheFailed(
        kind,
        message,
        http_status=response.status,
        http_code=_phrase(response.status),
        trace_id=trace or response.headers["x-request-id"],
        retry_after_s=retry_after(response.headers.get("retry-after", ""), datetime.now(UTC)),
    )


def retry_after(text: str, now: datetime) -> float | None:
    """Returns the seconds of a Retry-After header, which names seconds or a date; None if it names neither."""
    try:
        seconds = float(text) if _SECONDS.fullmatch(text) else _until(text, now)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT) if isfinite(seconds) else None


def _until(text: str, now: datetime) -> float:
    moment = parsedate_to_datetime(text)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()


def _object(body: bytes) -> Any:
    """Returns the JSON value of a body; None if it is not JSON."""
    try:
        return from_json(body)
    except ValueError:
        return None


def _word(value: Any, form: re.Pattern[str], secret: str) -> str | None:
    """Returns a text of a form; None for anything else, and for a text with the secret."""
    if not isinstance(value, str) or not form.fullmatch(value) or (secret and secret in value):
        return None
    return value


def _bounded(text: str, secret: str) -> str:
    """Returns a text on one line, without control characters and without the secret, cut if it is long."""
    line = one_visible_line(text)  # first: invisible characters could divide the secret
    line = line.replace(secret, "[key]") if secret else line
    return one_visible_line(" ".join(line.split()), _LONGEST_MESSAGE)


def _phrase(status: int) -> str | None:
    """Returns the text of a status, such as `Bad Request`; None if it has none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return None
