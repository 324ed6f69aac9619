"""The manifest of the server arche, made of its tools: its file, its version, and the part of its page about both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from openbell.desk.quotes.arche.errors import ADAPTER, RETRYABLE, STATUSES
from openbell.market.errors import SettingsError
from openbell.protocol.tool import schema_of
from openbell.servers.arche.shapes import ErrorObject
from openbell.servers.arche.tools import TOOLS, VERSION
from tools.arche_versions import is_enough, needed_bump

FOLDER = Path("mcp/manifest")
"""In the repository."""
FILE = FOLDER / "mcp.json"

MEANINGS = {
    "VALIDATION_ERROR": "an argument is missing or wrong",
    "UNAUTHENTICATED": "the API does not accept the key: set OPENBELL_ARCHE_KEY",
    "PROVIDER_QUOTA_EXCEEDED": "the quota of the API's data provider is used up",
    "FORBIDDEN": "the key has not the scope read, or the settings do not allow the call",
    "SYMBOL_NOT_FOUND": "no ticker is known",
    "RATE_LIMITED": "too many requests: retry after retry_after_s",
    "INTERNAL_ERROR": "a bug; the log has the details",
    "UPSTREAM_SCHEMA_ERROR": "the API sent JSON of another shape, a redirect or more bytes than any answer has",
    "MARKET_DATA_UNAVAILABLE": "no ticker has current data: the feed or a store fails, or prices are stale",
    "UPSTREAM_ERROR": "the API failed with status 500 or more and named none of the types above",
    "NETWORK_ERROR": "the API did not answer, or its answer broke off",
    "NON_JSON_RESPONSE": "the API sent something else, such as a page of a proxy",
}

_SOMETIMES = {
    "UPSTREAM_SCHEMA_ERROR": "if the API reports it",
    "UPSTREAM_ERROR": f"if the status is {', '.join(str(status) for status in sorted(RETRYABLE) if status >= 500)}",
}


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


def text() -> str:
    """Returns the content of the file."""
    return json.dumps(manifest(), indent=1) + "\n"


def last_released(folder: Path) -> dict[str, Any]:
    """Returns the released manifest with the highest version of those in a folder."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in (folder / "released").glob("*.json")]
    newest: dict[str, Any] = max(found, key=lambda each: [int(part) for part in each["version"].split(".")])
    return newest


def write(root: Path) -> None:
    """Write the file. Raises `SettingsError` if the version is not the one that the changes need."""
    released, now = last_released(root / FOLDER), manifest()
    if not is_enough(released, now):
        needed = needed_bump(released, now).name.lower()
        raise SettingsError(
            f"the manifest of arche has changed since {released['version']} and needs a {needed} version: change VERSION in "
            "servers/arche/tools.py"
        )
    (root / FILE).write_text(text(), encoding="utf-8")


def _error_types() -> list[str]:
    """Returns the table of the types of errors."""
    lines = ["| type | HTTP status | retryable | what it means |", "|---|---|---|---|"]
    for kind in (*STATUSES, *ADAPTER):
        status = STATUSES.get(kind)
        retryable = _SOMETIMES.get(kind) or ("yes" if status in RETRYABLE or kind == "NETWORK_ERROR" else "no")
        shown = "500 and more" if kind == "UPSTREAM_ERROR" else status or ""
        lines.append(f"| {kind} | {shown} | {retryable} | {MEANINGS[kind]} |")
    return lines


def page() -> str:
    """Returns the part of the page."""
    lines = [
        "",
        "## Errors",
        "",
        "An error is a result with `isError` and this object: `type`, `message`, `retryable`, and, if an API has answered,",
        "`http_status`, `http_code` (the phrase of the status), `trace_id` and `retry_after_s`; otherwise these are null.",
        "",
        *_error_types(),
        "",
        "## Manifest",
        "",
        f"[{FILE.name}](../{FILE.as_posix()}) describes the methods for programs,",
        f"[MANIFEST.md](../{FOLDER.as_posix()}/MANIFEST.md) for people, and [mcp/README.md](mcp/README.md) shows how to",
        f"use them. The version is {manifest()['version']}, which `system.metadata` returns too. `make docs` makes the",
        "files of the tools and refuses changes whose version is too low. [quotes.md](quotes.md) describes the HTTP API",
        "behind the server.",
        "",
    ]
    return "\n".join(lines)
