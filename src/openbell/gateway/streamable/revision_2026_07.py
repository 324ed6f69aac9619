"""The checks of revision 2026-07-28: each request carries its version, its client and, in headers, its method and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    decode_header_value,
    find_duplicated_routing_header,
    find_invalid_x_mcp_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import HEADER_MISMATCH, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from openbell.gateway.guard.headers import RequestHeaders
from openbell.protocol.sdk import Server

_METHOD, _NAME = MCP_METHOD_HEADER.encode(), MCP_NAME_HEADER.encode()
_ROUTING = {each: each.encode() for each in (MCP_PROTOCOL_VERSION_HEADER, MCP_METHOD_HEADER, MCP_NAME_HEADER)}


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a request is not of this revision."""

    code: int
    message: str
    data: Any = None

    @property
    def status(self) -> int:
        """The HTTP status of the response."""
        return status_of(self.code)


def status_of(code: int) -> int:
    """Returns the HTTP status of a JSON-RPC error code."""
    return ERROR_CODE_HTTP_STATUS.get(code, 200)


def is_modern(version: str | None, message: Any) -> bool:
    """Returns True if a message is of a revision without handshake, by its header or its envelope."""
    if version is not None:
        return version not in HANDSHAKE_PROTOCOL_VERSIONS
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta and message.get("method") != "initialize"


def check_version(version: str) -> Rejection | None:
    """Returns why a revision without handshake is refused; None if it is served."""
    found = unsupported_protocol_version_rejection(version)
    return None if found is None else _rejection(found)


class HeaderChecks:
    """The checks of the requests to one server."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._repeated: dict[str, Mapping[str, Any] | None] = {}
        """The schema of each tool that wants arguments repeated in headers, and None for other tools."""

    def route(
        self, version: str | None, headers: RequestHeaders, message: dict[str, Any]
    ) -> InboundModernRoute | Rejection:
        """Returns how to serve a request, or why it is refused. `version` is the one of the headers."""
        if headers.has_repeats and (twice := find_duplicated_routing_header(_texts(headers))) is not None:
            return Rejection(HEADER_MISMATCH, f"the header {twice} is given more than once")
        if version is not None and not is_modern(None, message) and (unknown := check_version(version)) is not None:
            return unknown
        given = {
            name: value.decode("latin-1").strip()
            for name, key in _ROUTING.items()
            if (value := headers.first(key)) is not None
        }
        found = classify_inbound_request(message, headers=given)
        if isinstance(found, InboundLadderRejection):
            return _rejection(found)
        if message["method"] == "tools/call" and (wrong := self._wrong_parameter(headers, message)) is not None:
            return _rejection(wrong)
        return found

    def _wrong_parameter(self, headers: RequestHeaders, message: dict[str, Any]) -> InboundLadderRejection | None:
        """Returns the first header that contradicts an argument which the tool's schema wants repeated in a header."""
        params = message.get("params") or {}
        name, arguments = params.get("name"), params.get("arguments") or {}
        schema = self._repeated_schema(name) if isinstance(name, str) else None
        if schema is None or not isinstance(arguments, Mapping):
            return None
        return validate_mcp_param_headers(schema, arguments, dict(_texts(headers)))

    def _repeated_schema(self, tool: str) -> Mapping[str, Any] | None:
        """Returns the schema of a tool if it wants arguments repeated in headers; schemas do not change."""
        if tool not in self._repeated:
            lookup = self._server.get_tool_input_schema
            schema = None if lookup is None else lookup(tool)
            if schema is None:
                return None
            wants = find_invalid_x_mcp_header(schema) is None and x_mcp_header_map(schema)
            self._repeated[tool] = schema if wants else None
        return self._repeated[tool]


def contradiction(headers: RequestHeaders, message: dict[str, Any]) -> Rejection | None:
    """Returns why the headers of a request with handshake are refused; None if they are not.

    It needs no Mcp-Method and no Mcp-Name. A proxy that decides by them must not be shown others than those that run.
    """
    if _METHOD not in headers and _NAME not in headers:
        return None
    for name, value in headers.pairs:
        if name == _METHOD:
            body: Any = message["method"]
        elif name == _NAME:
            key = NAME_BEARING_METHODS.get(message["method"])
            body = None if key is None else (message.get("params") or {}).get(key)
        else:
            continue
        if decode_header_value(value.decode("latin-1").strip()) != body:
            return Rejection(HEADER_MISMATCH, f"the header {name.decode()} does not match the body")
    return None


def _texts(headers: RequestHeaders) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1").strip()) for name, value in headers.pairs]


def _rejection(found: InboundLadderRejection) -> Rejection:
    return Rejection(found.code, found.message, found.data)
