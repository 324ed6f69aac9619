"""How each contract says results and errors: the one place where the exception tree becomes a wire form.

`JsonRpcDialect` (chart-signals) answers plainly and raises real JSON-RPC errors. `EnvelopeDialect` (TradeStream) wraps
results as `{data, _metadata}` and errors as `{error, _metadata}` in a result that is marked as an error. `TextDialect`
(chartgen) answers plainly, with images, and says errors as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from openbell.market.errors import InputError, OpenbellError
from openbell.protocol.media import Media, Picture

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603


@dataclass(frozen=True, slots=True)
class Metrics:
    """What happened besides the answer."""

    latency_ms: float
    cached: bool = False
    cache_ttl_remaining: float | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A tool's answer before it meets a transport."""

    payload: Any
    """A JSON object; None where there are images only."""
    is_error: bool = False
    images: tuple[Picture, ...] = ()
    text: str | None = None
    """What the text block says where it is not the payload's JSON."""
    code: int | None = None
    """Set when the answer is a JSON-RPC error; the payload is then {code, message, data}."""
    truth: dict[str, Any] = field(default_factory=dict)


class Dialect(Protocol):
    """One contract's way of speaking."""

    @property
    def unknown_tool(self) -> int:
        """The JSON-RPC code for a tool that is not there."""

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """The schema of a result whose value has this one."""

    def result(self, value: Any, metrics: Metrics) -> Reply:
        """A success."""

    def error(self, error: OpenbellError, metrics: Metrics, tool: str) -> Reply:
        """A failure of a tool that has a place in the tree."""

    def bug(self, metrics: Metrics) -> Reply:
        """A failure that has none: a generic message; the trace is in the log."""


_METADATA = {
    "type": "object",
    "properties": {
        "latency_ms": {"type": "number"},
        "cached": {"type": "boolean"},
        # Branches instead of a list of types: some clients know only a single `type`.
        "cache_ttl_remaining": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "source": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["latency_ms", "cached", "cache_ttl_remaining", "source"],
}

BUG = "Internal error; the log on standard error has the details"


@dataclass(frozen=True, slots=True)
class JsonRpcDialect:
    """Plain results; errors as JSON-RPC errors under the contract's codes."""

    codes: dict[type[OpenbellError], tuple[int, str]]
    """For each class of error its code and the contract's words; the most specific class counts."""
    unknown_tool: int = METHOD_NOT_FOUND

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """The value's own."""
        return data

    def result(self, value: Any, metrics: Metrics) -> Reply:  # noqa: ARG002 - the port's signature
        """The value itself."""
        return Reply(value)

    def error(self, error: OpenbellError, metrics: Metrics, tool: str) -> Reply:  # noqa: ARG002
        """The contract's code and words, then ours; the facts as data."""
        code, words = _lookup(self.codes, error) or (INTERNAL_ERROR, "")
        return self._failure(code, _told(words, error.message), error.details)

    def bug(self, metrics: Metrics) -> Reply:  # noqa: ARG002
        """-32603."""
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
    """Where a tool's contract names an error otherwise: looked up first."""
    unknown_tool: int = INVALID_PARAMS

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """{data, _metadata}."""
        properties = {"data": data, "_metadata": _METADATA}
        return {"type": "object", "properties": properties, "required": ["data", "_metadata"]}

    def result(self, value: Any, metrics: Metrics) -> Reply:
        """{data, _metadata}."""
        remaining = metrics.cache_ttl_remaining
        meta = {
            "latency_ms": round(metrics.latency_ms, 3),
            "cached": metrics.cached,
            "cache_ttl_remaining": None if remaining is None else round(remaining, 3),
            "source": metrics.source,
        }
        return Reply({"data": value, "_metadata": meta})

    def error(self, error: OpenbellError, metrics: Metrics, tool: str) -> Reply:
        """{error, _metadata}."""
        codes = {**self.codes, **self.by_tool.get(tool, {})}
        default = "INVALID_PARAMETER" if isinstance(error, InputError) else "INTERNAL_ERROR"
        return self._failure(_lookup(codes, error) or default, error.message, error.details, metrics)

    def bug(self, metrics: Metrics) -> Reply:
        """INTERNAL_ERROR."""
        return self._failure("INTERNAL_ERROR", BUG, {}, metrics)

    @staticmethod
    def _failure(code: str, message: str, details: dict[str, Any], metrics: Metrics) -> Reply:
        body = {"code": code, "message": message, "details": details}
        return Reply({"error": body, "_metadata": {"latency_ms": round(metrics.latency_ms, 3)}}, is_error=True)


@dataclass(frozen=True, slots=True)
class TextDialect:
    """Plain results and images (chartgen); an error is a text in a result that is marked as one."""

    unknown_tool: int = INVALID_PARAMS

    def schema(self, data: dict[str, Any]) -> dict[str, Any]:
        """The value's own."""
        return data

    def result(self, value: Any, metrics: Metrics) -> Reply:  # noqa: ARG002 - the port's signature
        """The value itself, or images and what goes with them."""
        return Reply(value.payload, images=value.images) if isinstance(value, Media) else Reply(value)

    def error(self, error: OpenbellError, metrics: Metrics, tool: str) -> Reply:  # noqa: ARG002
        """The message."""
        return Reply({"error": error.message}, is_error=True, text=error.message)

    def bug(self, metrics: Metrics) -> Reply:  # noqa: ARG002
        """The generic message."""
        return Reply({"error": BUG}, is_error=True, text=BUG)


def _told(words: str, message: str) -> str:
    """The contract's words first, unless the message begins with them."""
    if words == "Insufficient data":
        return words  # as in the contract's own example, which leaves the rest to the data
    return message if message.startswith(words) else f"{words}: {message}"


def _lookup(table: Mapping[type[OpenbellError], Any], error: OpenbellError) -> Any:
    """The entry of the nearest class."""
    for kind in type(error).__mro__:
        if kind in table:
            return table[kind]
    return None
