"""Generates the reference pages: `python -m tools.reference docs` writes them, and a test compares them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from openbell.desk.settings import all_settings
from openbell.market.errors import InputError, InvalidParameter
from openbell.protocol.service import Service
from openbell.protocol.tool import Tool
from openbell.servers import NAMES, load
from tools import arche_manifest, arche_pages, gallery, strategy_gallery


def pages() -> dict[str, str]:
    """Returns every generated page by file name."""
    servers = {f"{name}.md": _server(load(name)) for name in NAMES}
    servers["arche.md"] += arche_manifest.page()
    drawn = {"indicators.md": gallery.page(), "strategies.md": strategy_gallery.page()}
    return {"settings.md": _settings(), **drawn, **servers, arche_pages.README: arche_pages.readme()}


_SETTINGS = (
    "Set a name in `openbell.toml` in the home, or its environment variable, which takes precedence. An unknown name in the "
    "file is an error. A variable `OPENBELL_…` that is not a setting is ignored, with a warning at start that names the "
    "nearest one."
)


def _settings() -> str:
    lines = [
        "# Settings",
        "",
        _SETTINGS,
        "",
        "| name | variable | default | what it does |",
        "|---|---|---|---|",
    ]
    for each in all_settings().values():
        shown = str(each.default).lower() if isinstance(each.default, bool) else str(each.default)
        lines.append(f"| {each.name} | `{each.variable}` | {f'`{shown}`' if shown else ''} | {each.help} |")
    return "\n".join(lines) + "\n"


def _server(service: Service) -> str:
    lines = [f"# {service.name}", "", f"`openbell mcp {service.command or service.name}`. {service.instructions}", ""]
    for tool in service.tools:
        lines += _tool(service, tool)
    return "\n".join(lines)


def _tool(service: Service, tool: Tool) -> list[str]:
    lines = [f"## {tool.name}", "", tool.description, ""]
    if tool.method:
        lines += ["Also available as a JSON-RPC method of the same name.", ""]
    properties: dict[str, Any] = tool.input_schema.get("properties", {})
    if properties:
        required = tool.input_schema.get("required", [])
        lines += ["| argument | type | |", "|---|---|---|"]
        for name, schema in properties.items():
            lines.append(f"| {name} | {_kind(schema)} | {_remarks(name, schema, required)} |")
        lines.append("")
    if tool.errors:
        lines += [*_errors(service, tool), ""]
    if tool.output_schema:
        lines += ["<details><summary>Result schema</summary>", "", "```json"]
        lines += [json.dumps(tool.output_schema, indent=1), "```", "", "</details>", ""]
    return lines


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        fields = schema["items"].get("properties", {})
        inner = ", ".join(f"{name}: {_kind(each)}" for name, each in fields.items())
        return f"list of {{{inner}}}" if inner else f"list of {_kind(schema['items'])}"
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"] if each.get("type") != "null")
    return str(schema.get("type", ""))


def _remarks(name: str, schema: dict[str, Any], required: list[str]) -> str:
    remarks = ["required" if name in required else f"default {json.dumps(schema.get('default'))}"]
    remarks += [
        f"{word} {schema[key]}" for key, word in (("minimum", "at least"), ("maximum", "at most")) if key in schema
    ]
    if "description" in schema:
        remarks.append(schema["description"])
    return "; ".join(remarks)


def _errors(service: Service, tool: Tool) -> list[str]:
    """Returns the errors of a tool: the contract's codes in one line, or a list of sentences if it has no codes."""
    table = {**getattr(service.dialect, "codes", {}), **getattr(service.dialect, "by_tool", {}).get(tool.name, {})}
    if not table:
        return ["Errors:", "", *(f"- {(error.__doc__ or '').splitlines()[0]}" for error in tool.errors)]
    # The arguments of every tool are checked before it is called.
    checked = [InvalidParameter] if tool.input_schema.get("properties") and InputError in table else []
    errors = (*tool.errors, *checked)
    found = [next((table[kind] for kind in error.__mro__ if kind in table), error.__name__) for error in errors]
    codes = dict.fromkeys(" ".join(map(str, code)) if isinstance(code, tuple) else str(code) for code in found)
    return [f"Errors: {', '.join(codes)}."]


def write(folder: Path) -> None:
    """Write every page and its pictures, and the manifest of the server arche and its page beside their folder."""
    root = folder.resolve().parent
    arche_manifest.write(root)
    (root / arche_pages.MANIFEST_PAGE).write_text(arche_pages.manifest_page(), encoding="utf-8")
    (folder / "chart.png").write_bytes(gallery.showpiece())
    for file, text in pages().items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    for kind, pictures in (("indicators", gallery.pictures()), ("strategies", strategy_gallery.pictures())):
        (folder / kind).mkdir(exist_ok=True)
        for name, data in pictures.items():
            (folder / kind / f"{name}.png").write_bytes(data)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
