"""Comparisons of a tool, as tools/list has it, and of its results with the contract's JSON, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

NULLABLE = {
    "get_current_price": {"change_1h", "change_24h"},
    "get_positions": {"items[].current_price", "items[].unrealized_pnl"},
    "get_balance": {"total_balance", "margin_used", "unrealized_pnl"},
    "run_backtest": {"sharpe_ratio", "win_rate"},
    "get_historical_performance": {"sharpe"},
    "get_recent_decisions": {"items[].opportunity_score"},
    "get_top_specs": {"items[].avg_sharpe"},
    "get_implementations": {"items[].forward_sharpe", "items[].forward_accuracy"},
}
"""Fields for which there may be no number: without a trade, a price, an earlier price, or if none was given."""
DOCUMENTED = Path(__file__).parents[3] / "docs" / "answers.md"
"""The page that says when a field is null."""
ADDED = {"description", "minimum", "items"}
"""What our schema of a parameter may have beside the contract's."""
PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def check_parameters(tool: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Names, types, defaults, maxima, enums, formats and required parameters are the contract's."""
    schema, parameters = tool["inputSchema"], wanted["parameters"]
    assert schema["type"] == "object"
    assert schema.get("required", []) == parameters.get("required", [])
    assert list(schema["properties"]) == list(parameters["properties"])
    for name, contracts in parameters["properties"].items():
        # The contract has no last page; an offset beyond any database is refused.
        added = ADDED | {"maximum"} if name == "offset" else ADDED
        ours = {key: value for key, value in schema["properties"][name].items() if key in contracts or key not in added}
        assert without(ours, "description") == without(contracts, "description"), name


def check_words(tool: dict[str, Any], wanted: dict[str, Any]) -> None:
    """The descriptions of a tool and of its parameters begin with the contract's words."""
    pairs = [(tool, wanted)]
    for name, contracts in wanted["parameters"]["properties"].items():
        pairs.append((tool["inputSchema"]["properties"][name], contracts))
    for ours, contracts in pairs:
        if words := contracts.get("description"):
            assert re.match(rf"{re.escape(words)}(?!\w)", ours.get("description", "")), (words, ours.get("description"))


def check_returns(tool: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Every field of the contract is required, with its type, enum and format. Few may be null; the docs say when."""
    nullable = NULLABLE.get(tool["name"], set())
    declared = tool["outputSchema"]["properties"]["data"]
    assert {"data", "_metadata"} <= set(tool["outputSchema"]["required"])
    null = _check_declared(declared, wanted, "")
    assert null <= nullable
    lines = DOCUMENTED.read_text(encoding="utf-8").splitlines()
    for name in (path.rpartition(".")[2] for path in null):
        assert any(f"`{name}`" in line and tool["name"] in line for line in lines), f"{name} is not documented"


def _check_declared(declared: dict[str, Any], wanted: dict[str, Any], where: str) -> set[str]:
    """Compares one schema. Returns the fields in it that may be null."""
    kinds = declared.get("anyOf", [declared])
    null = {where} if any(kind["type"] == "null" for kind in kinds) else set()
    assert not null or "null" in declared.get("description", ""), f"{where} does not say when it is null"
    (ours,) = (kind for kind in kinds if kind["type"] != "null")
    ours = {**without(declared, "anyOf"), **ours}
    for key in ("type", "enum", "format"):
        assert key not in wanted or ours.get(key) == wanted[key], f"{where}: {key}"
    for name, contracts in wanted.get("properties", {}).items():
        path = f"{where}.{name}" if where else name
        assert name in ours["required"], f"{path} may be absent"
        null |= _check_declared(ours["properties"][name], contracts, path)
    if "items" in wanted:
        null |= _check_declared(ours["items"], wanted["items"], f"{where}[]")
    return null


def check_result(tool: str, data: Any, wanted: dict[str, Any]) -> None:
    """Every field of the contract is there, with a value of its type."""
    for where, value, contracts in _values(data, wanted, ""):
        if value is None:
            assert where in NULLABLE.get(tool, set()), f"{where} is null"
            continue
        assert isinstance(value, PYTHON[contracts["type"]]), where
        assert isinstance(value, bool) == (contracts["type"] == "boolean"), where
        assert value in contracts.get("enum", [value]), where
        if contracts.get("format") == "date-time":
            assert datetime.fromisoformat(str(value)).tzinfo, where


def _values(value: Any, wanted: dict[str, Any], where: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Each value that the contract describes, with its path. A field that is absent is a KeyError."""
    yield where, value, wanted
    for name, contracts in wanted.get("properties", {}).items():
        yield from _values(value[name], contracts, f"{where}.{name}" if where else name)
    for item in value if "items" in wanted else ():
        yield from _values(item, wanted["items"], f"{where}[]")


def without(schema: dict[str, Any], key: str) -> dict[str, Any]:
    """The schema without one key."""
    return {name: value for name, value in schema.items() if name != key}
