"""JSON Schemas from types, with references resolved and titles removed: every byte costs an agent tokens."""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """Returns the schema of a model or TypedDict as one self-contained object."""
    schema = TypeAdapter(kind).json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    return cast("dict[str, Any]", _plain(schema, definitions))


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(each, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _plain({**target, **rest}, definitions)
    return {
        key: _properties(value, definitions) if key == "properties" else _plain(value, definitions)
        for key, value in node.items()
        # Titles repeat the names, and the docstrings of types are for developers, not for agents.
        if key != "title" and not (key == "description" and "properties" in node)
    }


def _properties(table: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value, definitions) for name, value in table.items()}
