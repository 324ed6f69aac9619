"""Campaigns: tests with a count that is larger in `make soak`, found in the source of their modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def campaign_names(path: Path) -> frozenset[str]:
    """The tests of a file, or its classes, that run longer or only in the soak."""
    counted = {name.partition("::")[2] for name, *_ in campaigns_in(path)}
    parts = {name: names_used(node) for node in tree_of(path).body for name in names_defined(node)}
    tests = (node for node in ast.walk(tree_of(path)) if isinstance(node, FUNCTIONS) and node.name.startswith("test_"))
    return frozenset(counted | {test.name for test in tests if "SOAK" in names_reached(test, parts)})


def campaigns_in(path: Path) -> Iterator[tuple[str, str, int, int]]:
    """Every count that a file declares, with each test that uses it, or with its class if no test of the file does."""
    file, tree = path.relative_to(TESTS).as_posix(), tree_of(path)
    parts = {name: names_used(node) for node in tree.body for name in names_defined(node)}
    tests = {
        node.name: node for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and node.name.startswith("test_")
    }
    owners = {"": tree.body} | {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
    declared = 0
    for owner, body in owners.items():
        for node in body:
            if isinstance(node, ast.Assign) and (counts := counts_of(node.value)):
                declared += 1
                (name,) = names_defined(node)
                users = [user for user, test in tests.items() if name in names_reached(test, parts)]
                for user in users or [owner]:
                    yield f"{file}::{user}", f"{owner}.{name}" if owner else name, *counts
    assert declared == sum(counts_of(node) is not None for node in ast.walk(tree)), f"{path}: assign runs() to a name"


def counts_of(node: ast.AST) -> tuple[int, int] | None:
    """The counts in `runs(ordinary, soak=count)`; None for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "runs":
        return ast.literal_eval(node.args[0]), ast.literal_eval(node.keywords[0].value)
    return None


def names_defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, FUNCTIONS) else []


def names_used(node: ast.AST) -> set[str]:
    every = (each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute))
    return {each.id if isinstance(each, ast.Name) else each.attr for each in every}


def names_reached(node: ast.AST, parts: dict[str, set[str]]) -> set[str]:
    """The names that a function uses, by itself and through the functions and values of its module."""
    found: set[str] = set()
    waiting = names_used(node)
    while waiting:
        found |= waiting
        waiting = {name for each in waiting for name in parts.get(each, ())} - found
    return found
