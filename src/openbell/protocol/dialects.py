"""Converts results and errors into the form of each contract. No other module maps the exception tree to wire forms.

`JsonRpcDialect` (chart-signals) returns values unwrapped and errors as JSON-RPC errors. `EnvelopeDialect` (TradeStream)
wraps results as `{data, _metadata}` and errors as `{error, _metadata}` with `isError` set. `TextDialect` (chartgen)
returns values unwrapped, with images, and errors as text with `isError` set. `ArcheDialect` (Arche) returns values unwrapped
and errors as `{type, message, retryable, http_status, http_code, trace_id, retry_after_s}` with `isError` set.
`ChartImageDialect` (chart-image) returns values unwrapped, with images, and errors as `{success: false, error}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from openbell.backtest.errors import BacktesterUnavailable, BacktestTimeout
from openbell.desk.pictures.chart_image.errors import ConfigRefused, VendorError
from openbell.desk.quotes.arche.errors import ArcheFailed
from openbell.market.errors import InputError, OpenbellError

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
_METADATA = {
    "type": "object",
    "properties": {
        "latency_ms": {"type": "number"},
        "cached": {"type": "boolean"},
        # anyOf instead of a list of types: some clients support only a single `type`.
        "cache_ttl_remaining": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "source": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["latency_ms", "cached", "cache_ttl_remaining", "source"],
}
BUG = "Internal error; the log of the desk has the details"
_BACKTESTER: dict[type[OpenbellError], str] = {
    BacktesterUnavailable: "GRPC_ERROR",
    BacktestTimeout: "BACKTEST_TIMEOUT",
}
"""The contract's codes for the backtester, in every server that uses it."""
_NO_RESPONSE = dict.fromkeys(("http_status", "http_code", "trace_id", "retry_after_s"))


@dataclass(frozen=True, slots=True)
class MediaPicture:
    """An image in a result."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Media:
    """A result with images; the payload, if any, follows them as text unless `repeated`."""

    images: tuple[MediaPicture, ...]
    payload: dict[str, Any] | None = None
    repeated: bool = False
    """True if the payload has the images too, as text. It comes first then."""


class ResultMetrics(NamedTuple):
    """How a result was produced: time taken, cache and source."""

    latency_ms: float
    cached: bool = False
    cache_ttl_remaining: float | None = None
    source: str | None = None


@dataclass(slots=True)
class Reply:
    """The reply to a call, independent of the transport."""

    payload: Any
    """A JSON object; None if the reply has only images."""
    is_error: bool = False
    images: tuple[MediaPicture, ...] = ()
    repeated: bool = False
    """True if the payload has the images too, as text."""
    text: str | None = None
    """The text block, if it is not the payload as JSON."""
    note: str | None = None
    """A second text block: what a reader must know and the contract's payload has no field for."""
    code: int | None = None
    """Set if the reply is a JSON-RPC error; the payload is then {code, message, data}."""
    truth: dict[str, Any] = field(default_factory=dict)
    """The truth header; the runner sets it."""


class Dialect(Protocol):
    """Converts results and errors into the form of one contract."""

    @property
    def unknown_tool(self) -> int:
        """The JSON-RPC code for an unknown tool."""

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """Returns the schema of a result whose value has the schema `data`."""

    def result(self, value: Any, metrics: ResultMetrics) -> Reply:
        """Returns the reply for a value."""

    def error(self, error: OpenbellError, metrics: ResultMetrics, tool: str) -> Reply:
        """Returns the reply for an error of the exception tree that the tool raised."""

    def bug(self, metrics: ResultMetrics, tool: str) -> Reply:
        """Returns the reply for any other exception: a generic message. The traceback is in the log."""


@dataclass(frozen=True, slots=True)
class JsonRpcDialect:
    """Unwrapped results; errors as JSON-RPC errors with the contract's codes."""

    codes: dict[type[OpenbellError], tuple[int, str]]
    """The code and the contract's wording of each error class; the most specific class applies."""
    unknown_tool: int = METHOD_NOT_FOUND

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """The value's own."""
        return data

    def result(self, value: Any, metrics: ResultMetrics) -> Reply:  # noqa: ARG002 - the port's signature
        """The value itself."""
        return Reply(value)

    def error(self, error: OpenbellError, metrics: ResultMetrics, tool: str) -> Reply:  # noqa: ARG002
        """Returns the contract's code and wording, followed by the error's message; its details are the data."""
        code, words = _lookup(self.codes, error) or (INTERNAL_ERROR, "")
        return self._failure(code, _message(words, error.message), error.details)

    def bug(self, metrics: ResultMetrics, tool: str) -> Reply:  # noqa: ARG002
        """Returns the code -32603."""
        return self._failure(INTERNAL_ERROR, BUG, {})

    @staticmethod
    def _failure(code: int, message: str, data: dict[str, Any]) -> Reply:
        payload: dict[str, Any] = {"code": code, "message": message}
        if data:
            payload["data"] = data
        return Reply(payload, is_error=True, code=code)


@dataclass(frozen=True, slots=True)
class EnvelopeDialect:
    """Results and errors in an envelope with metadata."""

    codes: Mapping[type[OpenbellError], str]
    by_tool: Mapping[str, Mapping[type[OpenbellError], str]] = field(default_factory=dict)
    """Codes of single tools that differ from `codes`; looked up first."""
    unknown_tool: int = INVALID_PARAMS

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """{data, _metadata}."""
        properties = {"data": data, "_metadata": _METADATA}
        return {"type": "object", "properties": properties, "required": ["data", "_metadata"]}

    def result(self, value: Any, metrics: ResultMetrics) -> Reply:
        """{data, _metadata}."""
        remaining = metrics.cache_ttl_remaining
        meta = {
            "latency_ms": round(metrics.latency_ms, 3),
            "cached": metrics.cached,
            "cache_ttl_remaining": None if remaining is None else round(remaining, 3),
            "source": metrics.source,
        }
        return Reply({"data": value, "_metadata": meta})

    def error(self, error: OpenbellError, metrics: ResultMetrics, tool: str) -> Reply:
        """{error, _metadata}."""
        codes = {**_BACKTESTER, **self.codes, **self.by_tool.get(tool, {})}
        default = "INVALID_PARAMETER" if isinstance(error, InputError) else "INTERNAL_ERROR"
        details = error.details or {"tool": tool}
        return self._failure(_lookup(codes, error) or default, error.message, details, metrics)

    def bug(self, metrics: ResultMetrics, tool: str) -> Reply:
        """Returns the code INTERNAL_ERROR."""
        return self._failure("INTERNAL_ERROR", BUG, {"tool": tool}, metrics)

    @staticmethod
    def _failure(code: str, message: str, details: dict[str, Any], metrics: ResultMetrics) -> Reply:
        body = {"code": code, "message": message, "details": details}
        return Reply({"error": body, "_metadata": {"latency_ms": round(metrics.latency_ms, 3)}}, is_error=True)


@dataclass(frozen=True, slots=True)
class TextDialect:
    """Unwrapped results and images; errors as text with `isError` set."""

    unknown_tool: int = INVALID_PARAMS

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """The value's own."""
        return data

    def result(self, value: Any, metrics: ResultMetrics) -> Reply:  # noqa: ARG002 - the port's signature
        """Returns the value, or its images and their payload."""
        return Reply(value.payload, images=value.images) if isinstance(value, Media) else Reply(value)

    def error(self, error: OpenbellError, metrics: ResultMetrics, tool: str) -> Reply:  # noqa: ARG002
        """Returns the error's message."""
        return Reply({"error": error.message}, is_error=True, text=error.message)

    def bug(self, metrics: ResultMetrics, tool: str) -> Reply:  # noqa: ARG002
        """Returns the generic message."""
        return Reply({"error": BUG}, is_error=True, text=BUG)


@dataclass(frozen=True, slots=True)
class ArcheDialect:
    """Unwrapped results; errors as the manifest's error object."""

    codes: Mapping[type[OpenbellError], str]
    """The types of errors that no quotes API has reported."""
    unknown_tool: int = INVALID_PARAMS

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """The value's own, with `anyOf` for the manifest's lists of types: some clients support a single `type` only."""
        found: dict[str, Any] = _single_types(data)
        return found

    def result(self, value: Any, metrics: ResultMetrics) -> Reply:  # noqa: ARG002 - the port's signature
        """The value itself."""
        return Reply(value)

    def error(self, error: OpenbellError, metrics: ResultMetrics, tool: str) -> Reply:  # noqa: ARG002
        """Returns the error object: what a quotes API has reported, or the type of any other error."""
        if isinstance(error, ArcheFailed):
            return Reply({"type": error.kind, "message": error.message, **error.fields}, is_error=True)
        default = "VALIDATION_ERROR" if isinstance(error, InputError) else "INTERNAL_ERROR"
        kind = _lookup(self.codes, error) or default
        retryable = kind in {"MARKET_DATA_UNAVAILABLE", "INTERNAL_ERROR"}
        return Reply({"type": kind, "message": error.message, "retryable": retryable, **_NO_RESPONSE}, is_error=True)

    def bug(self, metrics: ResultMetrics, tool: str) -> Reply:  # noqa: ARG002
        """Returns the type INTERNAL_ERROR."""
        return Reply({"type": "INTERNAL_ERROR", "message": BUG, "retryable": True, **_NO_RESPONSE}, is_error=True)


@dataclass(frozen=True, slots=True)
class ChartImageDialect:
    """Unwrapped results and images; errors as `{success: false, error}` with `retryAfter` and `details`."""

    unknown_tool: int = INVALID_PARAMS

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """The value's own."""
        return data

    def result(self, value: Any, metrics: ResultMetrics) -> Reply:  # noqa: ARG002 - the port's signature
        """Returns the value, or its images and their payload."""
        if not isinstance(value, Media):
            return Reply(value)
        return Reply(value.payload, images=value.images, repeated=value.repeated)

    def error(self, error: OpenbellError, metrics: ResultMetrics, tool: str) -> Reply:  # noqa: ARG002
        """Returns the error object of the contract."""
        payload: dict[str, Any] = {"success": False, "error": error.message}
        if isinstance(error, VendorError) and error.retry_after is not None:
            payload["retryAfter"] = error.retry_after
        if isinstance(error, ConfigRefused):
            payload["details"] = error.problems
        return Reply(payload, is_error=True)

    def bug(self, metrics: ResultMetrics, tool: str) -> Reply:  # noqa: ARG002
        """Returns the generic message."""
        return Reply({"success": False, "error": BUG}, is_error=True)


def _single_types(schema: Any) -> Any:
    """Returns a schema that allows the same values without lists of types."""
    if isinstance(schema, list):
        return [_single_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _single_types(each) for name, each in schema.items()}
    if isinstance(kinds := kept.get("type"), list):
        kept = {
            "anyOf": [{"type": kind} for kind in kinds],
            **{name: each for name, each in kept.items() if name != "type"},
        }
    return kept


def _message(words: str, message: str) -> str:
    """Puts the contract's wording before the message, unless the message begins with it."""
    if words == "Insufficient data":
        return words  # as in the contract's example, whose details are in the data
    return message if message.startswith(words) else f"{words}: {message}"


def _lookup(table: Mapping[type[OpenbellError], Any], error: OpenbellError) -> Any:
    """Returns the entry of the most specific class of the error, or None."""
    for kind in type(error).__mro__:
        if kind in table:
            return table[kind]
    return None
