"""JSON-RPC messages of clients: whether JSON is one, and answers to requests that were sent to a client."""

from __future__ import annotations

from typing import Any

from openbell.gateway.streamable.sessions import SoftSession
from openbell.protocol.sdk import MCPError


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
    elif "id" not in message or ("result" in message) == ("error" in message):
        return "Invalid Request: neither a request nor a response"
    return None


def id_of(message: Any) -> Any:
    """Returns the id of something that may be a request; None if it has none."""
    given = message.get("id") if isinstance(message, dict) else None
    return given if key(given) is not None else None


def key(request: Any) -> tuple[str, Any] | None:
    """Returns a request id as a key that tells 1 from "1"; None if it is no id."""
    return (
        (type(request).__name__, request) if isinstance(request, str | int) and not isinstance(request, bool) else None
    )
