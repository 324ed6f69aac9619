"""The checks of revision 2026-07-28: each request carries its version, its client and, in headers, its method and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    NAME_BEARING_METHODS,
    InboundLadderRejection,
    classify_inbound_request,
    decode_header_value,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp_types import HEADER_MISMATCH, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from openbell.gateway.streamable import wire
from openbell.protocol.sdk import Server

_PARAMETER = "mcp-param-"


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


@dataclass(frozen=True, slots=True)
class Route:
    """A request that has passed the checks."""

    version: str
    client_info: Any
    capabilities: Any


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


def check(scope: wire.Scope, message: dict[str, Any], server: Server[Any]) -> Route | Rejection:
    """Returns how to serve a request, or why it is refused."""
    headers = [(name.decode("latin-1"), value.decode("latin-1").strip()) for name, value in scope["headers"]]
    if (twice := find_duplicated_routing_header(headers)) is not None:
        return Rejection(HEADER_MISMATCH, f"the header {twice} is given more than once")
    version = wire.text(wire.header(scope, wire.VERSION))
    if version is not None and not is_modern(None, message) and (unknown := check_version(version)) is not None:
        return unknown
    found = classify_inbound_request(message, headers=dict(headers))
    if isinstance(found, InboundLadderRejection):
        return _rejection(found)
    if message["method"] == "tools/call" and (wrong := _wrong_parameter(dict(headers), message, server)) is not None:
        return _rejection(wrong)
    return Route(found.protocol_version, found.client_info, found.client_capabilities)


def contradiction(scope: wire.Scope, message: dict[str, Any]) -> Rejection | None:
    """Returns why the headers of a request with handshake are refused; None if they are not.

    It needs no Mcp-Method and no Mcp-Name. A proxy that decides by them must not be shown others than those that run.
    """
    for name, value in scope["headers"]:
        if name == b"mcp-method":
            body: Any = message["method"]
        elif name == b"mcp-name":
            key = NAME_BEARING_METHODS.get(message["method"])
            body = None if key is None else (message.get("params") or {}).get(key)
        else:
            continue
        if decode_header_value(value.decode("latin-1").strip()) != body:
            return Rejection(HEADER_MISMATCH, f"the header {name.decode()} does not match the body")
    return None


def _wrong_parameter(
    headers: Mapping[str, str], message: dict[str, Any], server: Server[Any]
) -> InboundLadderRejection | None:
    """Returns the first header that contradicts an argument which the tool's schema wants repeated in a header."""
    params = message.get("params") or {}
    name, arguments = params.get("name"), params.get("arguments") or {}
    lookup = server.get_tool_input_schema
    if lookup is None or not isinstance(name, str) or not isinstance(arguments, Mapping):
        return None
    if not arguments and not any(each.startswith(_PARAMETER) for each in headers):
        return None
    schema = lookup(name)
    return None if schema is None else validate_mcp_param_headers(schema, arguments, headers)


def _rejection(found: InboundLadderRejection) -> Rejection:
    return Rejection(found.code, found.message, found.data)
