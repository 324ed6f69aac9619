"""JSON-RPC messages of clients: whether JSON is one, and answers to requests that were sent to a client."""

from __future__ import annotations

import json
import re
from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY
from pydantic_core import from_json

from openbell.gateway.streamable.sessions import SoftSession
from openbell.protocol.sdk import MCPError

_KEY = re.compile(rb'"[ \t\r\n]*:')
"""The end of each key of an object. A text may also contain it, behind a backslash."""


def parse(body: bytes) -> Any:
    """Returns the JSON of a body. Raises `ValueError` if it is none, has NaN, or has an object with a key twice.

    Programs disagree about which of two equal keys counts: one could check a message that another runs.
    """
    found = from_json(body, allow_inf_nan=False)
    if len(_KEY.findall(body)) != _count_keys(found):
        json.loads(body, object_pairs_hook=_once)
    return found


def _count_keys(value: Any) -> int:
    count, left = 0, [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            count += len(each)
            left.extend(each.values())
        elif isinstance(each, list):
            left.extend(each)
    return count


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def resolve(soft: SoftSession, message: dict[str, Any]) -> None:
    """Give the answer of the client to the handler that waits for it."""
    future = soft.waiting.get(message.get("id") if isinstance(message.get("id"), str) else "")  # type: ignore[arg-type]
    if future is None or future.done():
        return
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict):
        future.set_result(result)
    else:
        known = error if isinstance(error, dict) else {}
        code, text = known.get("code"), known.get("message")
        future.set_exception(MCPError(code if isinstance(code, int) else -32603, str(text)[:500], None))


def wrong(message: Any) -> str | None:
    """Returns why JSON is not a message; None if it is one."""
    if isinstance(message, list):
        return "Invalid Request: batches are not supported, send one message"
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return "Invalid Request: not a JSON-RPC 2.0 message"
    if "method" in message:
        params = message.get("params")
        if not isinstance(message["method"], str) or not (params is None or isinstance(params, dict)):
            return "Invalid Request: method must be a string and params an object"
        if "id" in message and key(message["id"]) is None:
            return "Invalid Request: the id must be a string or an integer"
        if "result" in message or "error" in message:
            return "Invalid Request: both a request and a response"
    elif "id" not in message or ("result" in message) == ("error" in message):
        return "Invalid Request: neither a request nor a response"
    return None


def tool_of(message: dict[str, Any]) -> tuple[Any, bool]:
    """Returns the name of the tool that a request may call, and True if the SDK need not check its parameters.

    A tool is called by tools/call or, if it is a method too, by its own name.
    """
    if message["method"] != "tools/call":
        return message["method"], False
    params = message.get("params") or {}
    return params.get("name"), isinstance(params.get("arguments"), dict | None) and _is_plain(params.get("_meta"))


def _is_plain(meta: Any) -> bool:
    """Returns True if `_meta` is absent, or its values have the types that the protocol names."""
    if meta is None:
        return True
    if not isinstance(meta, dict) or key(meta.get("progressToken", "")) is None:
        return False
    return all(isinstance(meta.get(name, meta), dict) for name in (CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY))


def id_of(message: Any) -> Any:
    """Returns the id of something that may be a request; None if it has none."""
    given = message.get("id") if isinstance(message, dict) else None
    return given if key(given) is not None else None


def key(request: Any) -> tuple[str, Any] | None:
    """Returns a request id as a key that tells 1 from "1"; None if it is no id."""
    return (
        (type(request).__name__, request) if isinstance(request, str | int) and not isinstance(request, bool) else None
    )
