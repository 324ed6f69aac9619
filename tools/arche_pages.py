"""The two pages about the manifest of the server arche: `MANIFEST.md` beside it, and `docs/mcp/README.md`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.arche_manifest import FILE, FOLDER, manifest

MANIFEST_PAGE = FOLDER / "MANIFEST.md"
"""In the repository."""
README = "mcp/README.md"
"""In the folder of the documentation."""
_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "quotes.live": {"tickers": ["AAPL", "BTC/USD"]},
    "quotes.historical": {"tickers": ["AAPL"], "from": "2026-01-05", "to": "2026-01-09", "interval": "1d"},
    "system.health": {},
    "system.metadata": {},
}
_SEMANTICS = {
    "type": "a stable name",
    "message": "for people; names the next step",
    "retryable": "true if the same call may succeed later",
    "http_status": "status of the HTTP API behind the server; null if it was not asked or did not answer",
    "http_code": "the phrase of that status, such as `Bad Request`",
    "trace_id": "the API's `X-Request-ID`, which its log has too",
    "retry_after_s": "seconds to wait before the next try, if the API names them",
}
_CHANGES = (
    "A change that can break a client (a field or method removed, a field newly required, another type or limit) needs a "
    "new major version; an addition that no client has to know a minor one; other words a patch."
)


def manifest_page() -> str:
    """Returns `MANIFEST.md`."""
    found = manifest()
    lines = [
        "# Arche MCP manifest",
        "",
        f"[{FILE.name}]({FILE.name}) describes the server `arche` for programs; this page describes it for people. Both are",
        "made of the server's tools (`make docs`), and a test fails if one is out of date. The manifest adds no HTTP",
        "endpoint: [quotes.md](../../docs/quotes.md) has those. [How to use the server](../../docs/mcp/README.md).",
        "",
        "| field | value |",
        "|---|---|",
        *(f"| `{name}` | {found[name]} |" for name in ("name", "version", "description")),
        f"| `contact` | {', '.join(found['contact'].values())} |",
        f"| `license` | {found['license']['name']} |",
        f"| `methods` | {', '.join(each['name'] for each in found['methods'])} |",
        "| `errors.schema` | the error object of every method |",
        "",
        "Each method has `name`, `description`, `input_schema` and `result_schema`. No object has fields beside these.",
        "",
    ]
    for method in found["methods"]:
        lines += [f"## {method['name']}", "", method["description"], ""]
        for title, schema in (("Arguments", method["input_schema"]), ("Result", method["result_schema"])):
            rows = [_row(*each) for each in _fields(schema)]
            table = ["| field | type | |", "|---|---|---|", *rows] if rows else ["None: call it with `{}`."]
            lines += [f"### {title} of {method['name']}", "", *table, ""]
    lines += ["## Errors", "", "| field | type | |", "|---|---|---|"]
    for name, schema, is_required in _fields(found["errors"]["schema"]):
        lines.append(_row(name, {**schema, "description": _SEMANTICS[name]}, is_required))
    lines += [
        "",
        "[arche.md](../../docs/arche.md#errors) lists the types of errors.",
        "",
        "## Versions",
        "",
        _CHANGES,
        "",
    ]
    lines += [
        f"`make docs` compares with the newest manifest in `{FOLDER.as_posix()}/released/` and refuses a version that is"
    ]
    lines += ["too low. `system.metadata` returns the version as `mcp_version`.", ""]
    return "\n".join(lines)


def readme() -> str:
    """Returns `docs/mcp/README.md`."""
    found = manifest()
    command = {"mcpServers": {"arche": {"command": "openbell", "args": ["mcp", "arche"]}}}
    lines = [
        "# Arche quotes over MCP",
        "",
        f"`openbell mcp arche` serves the methods of the [manifest](../../{MANIFEST_PAGE.as_posix()}), version",
        f"{found['version']}, on stdio; `openbell up` serves them at `/arche/mcp`. In the configuration of a client:",
        "",
        "```json",
        json.dumps(command),
        "```",
        "",
        "| method | what it does | try it |",
        "|---|---|---|",
        *(
            f"| {each['name']} | {each['description']} | "
            f"`openbell call arche {each['name']} '{json.dumps(_EXAMPLES[each['name']])}'` |"
            for each in found["methods"]
        ),
        "",
        "Prices are decimal strings. Pages run oldest first. `system.metadata` has the limits: read them there.",
        "",
        "## What stands beside the prices",
        "",
        "The result's schema allows no further field. A result of quotes.live and quotes.historical therefore has a second",
        "text block, one line for the agent: what the prices are (simulated, imported, a replay, live, of another service),",
        "how old they are, which tickers were not found and the nearest names.",
        "",
        "```text",
        "Prices are SIMULATED, not real; the oldest is 20 s old. Not found: APPL (did you mean 'AAPL'?).",
        "```",
        "",
        "`source_status` is 206 if some tickers have no answer. `openbell call` prints the line on standard error.",
        "",
        "## Errors",
        "",
        "An error is a result with `isError` and the manifest's error object as its text.",
        "[arche.md](../arche.md#errors) lists the types of errors.",
        "",
        "[arche.md](../arche.md) has the schemas, [quotes.md](../quotes.md) the HTTP API and which API the server asks.",
        "",
    ]
    return "\n".join(lines)


def _fields(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yields the fields of an object, those of the objects in its lists included: name, schema, and if it is required."""
    for name, each in schema.get("properties", {}).items():
        yield prefix + name, each, name in schema.get("required", ())
        yield from _fields(each.get("items", {}), f"{prefix}{name}[].")


def _row(name: str, schema: Mapping[str, Any], is_required: bool) -> str:
    kind = schema["type"]
    shown = " or ".join(kind) if isinstance(kind, list) else str(kind)
    remarks = ["required"] if is_required else []
    remarks += [f"default {schema['default']}"] if "default" in schema else []
    for key, word in (
        ("minItems", "at least"),
        ("maxItems", "at most"),
        ("minimum", "at least"),
        ("maximum", "at most"),
    ):
        remarks += [f"{word} {schema[key]}"] if key in schema else []
    remarks += ["one of " + ", ".join(f"`{value}`" for value in schema["enum"])] if "enum" in schema else []
    remarks += [schema["format"]] if "format" in schema else []
    remarks += [schema["description"]] if "description" in schema else []
    return f"| `{name}` | {shown} | {'; '.join(remarks)} |"
