"""The manifest's shapes: arguments and results of its methods, and its error object.

Each schema is the manifest's to the letter. What a schema cannot say, such as the form of a decimal text, is checked when an
upstream's answer is read (`answers.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, WithJsonSchema, with_config
from typing_extensions import TypedDict

from openbell.desk.quotes.arche.requests import DEFAULT_PAGE, INTERVALS, LARGEST_PAGE, MOST_TICKERS
from openbell.protocol.tool import Arguments

_DECIMAL = StringConstraints(pattern=r"^-?[0-9]{1,40}(\.[0-9]{1,40})?$", max_length=80)
_MOMENT = StringConstraints(
    pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
_NAME = StringConstraints(min_length=1, max_length=64)


def _real_moment(text: str) -> str:
    """Returns a time that exists. Raises `ValueError` for the 99th of a month."""
    datetime.fromisoformat(text)
    return text


Name = Annotated[str, _NAME, WithJsonSchema({"type": "string"})]
Price = Annotated[str, _DECIMAL, WithJsonSchema({"type": "string"})]
LivePrice = Annotated[str, _DECIMAL, WithJsonSchema({"type": "string", "description": "Decimal string"})]
Moment = Annotated[
    str, _MOMENT, AfterValidator(_real_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]


def _nullable(kind: str, description: str = "") -> WithJsonSchema:
    """Returns the schema of a value or null as the manifest writes it."""
    return WithJsonSchema({"type": [kind, "null"]} | ({"description": description} if description else {}))


_STATUS = "HTTP status code returned by the underlying Arche endpoint."
RequestId = Annotated[str | None, _nullable("string", "Underlying Arche X-Request-ID for correlation.")]
_CLOSED = ConfigDict(extra="forbid")
_DATE: dict[str, Any] = {"format": "date"}


class LiveInput(Arguments):
    """Input of quotes.live."""

    tickers: Annotated[
        list[str],
        Field(
            min_length=1,
            max_length=MOST_TICKERS,
            description="Ticker symbols (case-insensitive, normalized to UPPERCASE).",
        ),
    ]


class HistoricalInput(Arguments):
    """Input of quotes.historical."""

    tickers: Annotated[list[str], Field(min_length=1, max_length=MOST_TICKERS)]
    first: Annotated[
        str, Field(alias="from", description="Start date (YYYY-MM-DD, inclusive).", json_schema_extra=_DATE)
    ]
    to: Annotated[str, Field(description="End date (YYYY-MM-DD, inclusive).", json_schema_extra=_DATE)]
    interval: Annotated[str, Field(description="Supported bar interval.", json_schema_extra={"enum": list(INTERVALS)})]
    page: Annotated[int, Field(ge=1)] = 1
    page_size: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = DEFAULT_PAGE


@with_config(_CLOSED)
class QuoteShape(TypedDict):
    """The newest price of a ticker."""

    ticker: Name
    price: LivePrice
    currency: Name
    as_of: Moment
    volume: NotRequired[Annotated[int | None, _nullable("integer")]]


@with_config(_CLOSED)
class LiveQuotesShape(TypedDict):
    """The result of quotes.live."""

    quotes: list[QuoteShape]
    request_id: NotRequired[RequestId]
    source_status: NotRequired[Annotated[int, Field(description=_STATUS)]]


@with_config(_CLOSED)
class Bar(TypedDict):
    """One closed bar; the timestamp is its open time."""

    ticker: Name
    timestamp: Moment
    open: Price
    high: Price
    low: Price
    close: Price
    volume: NotRequired[Annotated[Price | None, _nullable("string")]]
    interval: Name


@with_config(_CLOSED)
class HistoricalPage(TypedDict):
    """The result of quotes.historical."""

    items: list[Bar]
    page: int
    page_size: int
    total: int
    request_id: NotRequired[RequestId]
    source_status: NotRequired[int]


@with_config(_CLOSED)
class HealthShape(TypedDict):
    """The result of system.health."""

    status: Literal["ok", "degraded", "down"]
    request_id: NotRequired[Annotated[str | None, _nullable("string")]]
    source_status: NotRequired[int]


@with_config(_CLOSED)
class Metadata(TypedDict):
    """The result of system.metadata."""

    mcp_version: str
    api_version: str
    quotes_contract_version: str
    supported_intervals: list[str]
    max_page_size: int
    max_range_days: int
    max_tickers_per_request: int


@with_config(_CLOSED)
class ErrorObject(TypedDict):
    """The manifest's error object."""

    type: Annotated[str, Field(description="Stable error type (e.g. VALIDATION_ERROR, RATE_LIMITED).")]
    message: str
    retryable: bool
    http_status: NotRequired[Annotated[int | None, _nullable("integer")]]
    http_code: NotRequired[Annotated[str | None, _nullable("string")]]
    trace_id: NotRequired[Annotated[str | None, _nullable("string")]]
    retry_after_s: NotRequired[Annotated[float | None, _nullable("number")]]
