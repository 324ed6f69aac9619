"""The manifest of the server arche, made of its tools: `mcp/manifest/mcp.json` (`make docs` writes it)."""

from __future__ import annotations

from typing import Any

from openbell.protocol.schema import schema_of
from openbell.servers.arche.shapes import ErrorObject
from openbell.servers.arche.tools import TOOLS, VERSION


def manifest() -> dict[str, Any]:
    """Returns the manifest."""
    return {
        "name": "arche-mcp",
        "version": VERSION,
        "description": "Arche MCP service exposing live and historical quotes over a stable, typed interface.",
        "contact": {"name": "Arche API", "url": "https://arche.io/", "email": "support@arche.io"},
        "license": {"name": "MIT"},
        "methods": [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.input_schema,
                "result_schema": tool.output_schema,
            }
            for tool in TOOLS
        ],
        "errors": {"schema": schema_of(ErrorObject)},
    }
