"""Transactions are functions with arguments: no lambda that catches variables of its caller is handed to one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tracing import ROOT

SRC = ROOT / "src" / "openbell"


def lambdas_in_writes(text: str) -> Iterator[int]:
    """Yields the lines on which a lambda is the work of a write."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Attribute(attr="write"), args=[ast.Lambda(), *_]):
                yield node.lineno


def test_a_lambda_in_a_write_is_found() -> None:
    text = "records.write(work, 1)\nrecords.write(lambda journal: work(journal, 1), lease=lease)"
    assert list(lambdas_in_writes(text)) == [2]


def test_no_write_gets_a_lambda() -> None:
    found = [
        f"{path.relative_to(SRC)}:{line}"
        for path in sorted(SRC.rglob("*.py"))
        for line in lambdas_in_writes(path.read_text(encoding="utf-8"))
    ]
    assert not found


def test_no_function_catches_the_variable_of_a_loop() -> None:
    silenced = [path.name for path in sorted(SRC.rglob("*.py")) if "noqa: B023" in path.read_text(encoding="utf-8")]
    assert not silenced
