"""The shape of the source: no six equal lines in two places. Long files and functions are warnings, printed by the tests."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import openbell

SOURCE = Path(openbell.__file__).parent
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_COPY = 500, 60, 5
FILES = sorted(path for path in SOURCE.rglob("*.py") if "migrations/versions" not in path.as_posix())


def test_long_files_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    lengths = {path.relative_to(SOURCE).as_posix(): len(path.read_text().splitlines()) for path in FILES}
    warn(capfd, {name: length for name, length in lengths.items() if length > LONGEST_FILE}, LONGEST_FILE)


def test_long_functions_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    lengths = {
        f"{path.relative_to(SOURCE).as_posix()}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    warn(capfd, {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}, LONGEST_FUNCTION)


def warn(capfd: pytest.CaptureFixture[str], long: dict[str, int], most: int) -> None:
    """Print what is longer than a reader likes, whether or not the test passes."""
    with capfd.disabled():
        for name, length in sorted(long.items()):
            print(f"\nWARNING: {name} has {length} lines, more than {most}", end="")


def test_public_classes_have_names_of_their_own() -> None:
    """A reader who meets a name knows which class it is."""
    places = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(SOURCE).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_six_equal_lines_are_in_two_places() -> None:
    assert copies({path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}) == []


def test_a_copy_is_found_whatever_its_indentation_and_the_comments_between() -> None:
    lines = [f"a{n} = {n}" for n in range(6)]
    block = "\n".join(lines)
    inner = "def f():\n    " + "\n\n    # why\n    ".join(lines)
    assert copies({"one.py": block, "two.py": f"import os\n{inner}"}) == [["one.py:1", "two.py:3"]]
    assert copies({"one.py": f"{block}\nprint()\n{block}"}) == [["one.py:1", "one.py:8"]]
    assert copies({"one.py": block, "two.py": inner.replace("a3", "b")}) == []


def copies(texts: dict[str, str]) -> list[list[str]]:
    """The places of every run of six equal lines that is in more than one place."""
    places = defaultdict(list)
    for name, text in sorted(texts.items()):
        lines = code_lines(text)
        for first in range(len(lines) - LONGEST_COPY):
            run = lines[first : first + LONGEST_COPY + 1]
            places[tuple(line for _, line in run)].append(f"{name}:{run[0][0]}")
    return [found for found in places.values() if len(found) > 1]


def code_lines(text: str) -> list[tuple[int, str]]:
    """The numbered lines of a module without indentation, imports, docstrings, comments and lines of brackets only."""
    left_out: set[int] = set()
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ):
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    return [
        (number, line)
        for number, line in lines
        if number not in left_out and not line.startswith("#") and any(map(str.isalnum, line))
    ]
