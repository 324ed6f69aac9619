"""The shape of the source: small files and small functions."""

from __future__ import annotations

import ast
from pathlib import Path

import openbell

SOURCE = Path(openbell.__file__).parent
LONGEST_FILE, LONGEST_FUNCTION = 350, 60
FILES = sorted(path for path in SOURCE.rglob("*.py") if "migrations/versions" not in path.as_posix())


def test_no_file_is_longer_than_a_reader_likes() -> None:
    lengths = {path.relative_to(SOURCE).as_posix(): len(path.read_text().splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{path.relative_to(SOURCE).as_posix()}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    }
    assert long == {}
