"""Servers of the contracts as processes on stdio, and what their answers hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.client import OPENBELL, Client


@contextmanager
def server(home: Path, name: str, *flags: str, **settings: str) -> Iterator[Client]:
    """`openbell mcp NAME`, after the handshake."""
    given = {"TIMEOUT": "60", **settings}
    with Client(home, command=[*OPENBELL, "mcp", name, *flags], **given) as client:
        client.initialize()
        yield client


def tools(client: Client) -> dict[str, dict[str, Any]]:
    """The tools that a server lists, by name."""
    return {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}


def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The object of a tool that succeeds; its text is the same object."""
    result = client.call(tool, arguments)["result"]
    assert result["isError"] is False, result
    found: dict[str, Any] = result["structuredContent"]
    assert json.loads(text_of(result)) == found
    return found


def refused(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool that fails says as an agent reads it: the object in its text, or the text itself."""
    result = client.call(tool, arguments)["result"]
    assert result["isError"] is True, result
    try:
        return json.loads(text_of(result))
    except ValueError:
        return text_of(result)


def text_of(result: dict[str, Any]) -> str:
    """The first text of a result."""
    text: str = next(item["text"] for item in result["content"] if item["type"] == "text")
    return text


def assert_readable_error(client: Client, tool: str, **arguments: Any) -> Any:
    """An error that every client shows: one text, and no structured content for a client to compare with a schema.

    Official clients compare structured content with the tool's outputSchema, also that of an error, and throw.
    """
    result = client.call(tool, arguments)["result"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert [item["type"] for item in result["content"]] == ["text"]
    return refused(client, tool, **arguments)
