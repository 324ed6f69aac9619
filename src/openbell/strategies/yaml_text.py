"""YAML as plain data: no tags, no objects, and no aliases, with which a small file can hold billions of values."""

from __future__ import annotations

from typing import Any

from openbell.strategies.errors import ProblemKind, SpecProblem, SpecRefused

MAX_TEXT = 100_000
"""Characters of a file."""
MAX_DEPTH = 40
"""Lists and mappings inside each other. The parser in C overflows its stack at some ten thousand and ends the process."""


def read_yaml(text: str) -> Any:
    """Returns the data of a YAML text. Raises `SpecRefused`."""
    import yaml

    if len(text) > MAX_TEXT:
        raise _refused(f"is longer than {MAX_TEXT:,} characters")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(text, loader)
        return yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise _refused(f"is not YAML: {' '.join(str(error).split())[:200]}") from None


def write_yaml(data: Any) -> str:
    """Returns a YAML text of which `read_yaml` returns the same data."""
    import yaml

    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    return text


def _check_events(text: str, loader: Any) -> None:
    """Refuse aliases and deep nesting, before any value is built."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise _refused("has aliases (*name): write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _refused(f"is nested more than {MAX_DEPTH} levels deep")


def _refused(reason: str) -> SpecRefused:
    return SpecRefused("", [SpecProblem(ProblemKind.SCHEMA, "file", reason)])
