"""The list of attacks on the gateway that a test shows to be refused: docs/attacks.md is made from the names of the tests.

A test is in the list if its own name begins with `test_attack_`, or the name of its module with `test_attacks_`.
`python -m tests.gateway.attacks` writes the page anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "attacks.md"
INTRODUCTION = """\
# Attacks

Each row is an attack on the gateway and the test which shows that it is refused. The tests run in `make test` against real
sockets and processes. `make docs` writes this list from the names of the tests; a test fails if it is out of date.
"""


def attacks(folder: Path = ROOT / "tests") -> Iterator[tuple[str, str, int]]:
    """The module, the name and the line of each attack, by module and line."""
    for file in sorted(folder.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        is_list = file.name.startswith("test_attacks_")
        if is_list or "def test_attack_" in text:
            found = [
                each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            for each in sorted(found, key=lambda each: each.lineno):
                if each.name.startswith("test_" if is_list else "test_attack_"):
                    yield str(file.relative_to(ROOT)), each.name, each.lineno


def page() -> str:
    """The text of docs/attacks.md."""
    lines = [INTRODUCTION, "| attack | test |", "|---|---|"]
    for module, name, _ in attacks():
        words = name.removeprefix("test_").removeprefix("attack_").replace("_", " ")
        lines.append(f"| {words} | [{module.removeprefix('tests/')}](../{module}) `{name}` |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
