"""The list of attacks on the gateway that a test shows to be refused: docs/attacks.md is made from the names of the tests.

A test is in the list if its own name begins with `test_attack_`, or the name of its module with `test_attacks_`. The code
that it uses decides which of the two tables it is in. `python -m tests.gateway.attacks` writes the page anew.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.markers import STARTERS, Reach

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "attacks.md"
INTRODUCTION = """\
# Attacks

Each row is an attack and the test which shows that it is refused. The tests run in `make test`. `make docs` writes this list
from the names and the code of the tests; a test fails if it is out of date.

## Against real sockets and processes

These tests start a gateway, a server, a service or a command, and attack it as somebody outside would.
"""
WITHIN = """
## Against one part, within the process of its test

These tests give hostile values and files to the part that has to refuse them, without a socket.
"""
REAL = STARTERS | {"serving"}
"""What starts a process or listens on a socket; `serving` is the gateway itself, in a thread."""


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


def _fixture(module: Any, name: str) -> Callable[..., Any] | None:
    """The function of a fixture that a module has, or a conftest above it."""
    parts = module.__name__.split(".")
    for depth in range(len(parts), 0, -1):
        holder = module
        if depth < len(parts):
            package = ".".join(parts[:depth])
            if not (ROOT / package.replace(".", "/") / "conftest.py").exists():
                continue
            holder = import_module(f"{package}.conftest")
        if wrapped := getattr(getattr(holder, name, None), "_get_wrapped_function", None):
            found: Callable[..., Any] = wrapped()
            return found
    return None


def _is_real(reach: Reach, module: Any, function: Callable[..., Any]) -> bool:
    """Returns True if a test or a fixture of it starts a process, or listens on a socket."""
    if reach.follows(function):
        return True
    fixtures = (_fixture(module, name) for name in inspect.signature(inspect.unwrap(function)).parameters)
    return any(_is_real(reach, import_module(each.__module__), each) for each in fixtures if each is not None)


def _function(module: Any, name: str) -> Callable[..., Any]:
    """A test of a module, or of a class in it."""
    holders = [module, *(each for each in vars(module).values() if isinstance(each, type))]
    found: Callable[..., Any] = next(vars(each)[name] for each in holders if name in vars(each))
    return found


def page() -> str:
    """The text of docs/attacks.md."""
    reach, tables = Reach(REAL), {True: list[str](), False: list[str]()}
    for path, name, _ in attacks():
        module = import_module(path.removesuffix(".py").replace("/", "."))
        words = name.removeprefix("test_").removeprefix("attack_").replace("_", " ")
        row = f"| {words} | [{path.removeprefix('tests/')}](../{path}) `{name}` |"
        tables[_is_real(reach, module, _function(module, name))].append(row)
    head = ["", "| attack | test |", "|---|---|"]
    return (
        "\n".join([INTRODUCTION.rstrip("\n"), *head, *tables[True], WITHIN.rstrip("\n"), *head, *tables[False]]) + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
